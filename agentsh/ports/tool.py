"""The port to a tool."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from agentsh.base.light import dataclass, field
from agentsh.events.base import Fact
from agentsh.events.tool import Effect
from agentsh.events.turn import Attachment
from agentsh.ports.services import NO_SERVICES, Services
from agentsh.ports.workspace import Workspace

LEAVE = "outside_sandbox"
"""An argument of this name, true, asks to run outside of the sandbox; that is always asked about."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a tool says of itself. parameters: a JSON schema object. effects: the most it may do.

    subject: names the argument that says in one line what a call is about, for the screen and for approvals.
    tryable: it changes nothing but through the workspace it is given, so that it can be tried on one in memory.
    paths: reads from the arguments of a call which files it is about; None where `path` and `paths` say it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effects: frozenset[Effect]
    subject: str | None = None
    tryable: bool = False
    paths: Callable[[Mapping[str, Any]], Sequence[str]] | None = None

    @property
    def read_only(self) -> bool:
        """Whether calls have no effects, so that they may run together and need no approval."""
        return self.effects <= {"read"}


@dataclass(frozen=True, slots=True)
class Edit:
    """A file that a tool changed. before, after: its bytes, None where absent."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a call came to.

    for_model: all that the model is told. for_user: what the screen shows: first line the summary, then detail.
    output: the whole output, where for_model holds only a part of it. images: shown to a model that takes images,
    and named to others; each made by `workspace.images.image_attachment`. facts: what it changed in the session, to
    be recorded with its result. jobs: background jobs whose end for_model tells.
    """

    for_model: str
    for_user: str
    status: Literal["ok", "error", "timed_out"] = "ok"
    exit: int | None = None
    edits: tuple[Edit, ...] = ()
    output: bytes | None = None
    images: tuple[Attachment, ...] = ()
    facts: tuple[Fact, ...] = ()
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """All that a tool gets; a fifth field needs an ADR, as the fourth did (0010).

    progress: shows new output while it runs; may be dropped. services: what else the session offers.
    """

    workspace: Workspace
    call_id: str
    progress: Callable[[str], None] = field(default=lambda text: None)
    services: Services = field(default=NO_SERVICES)


class Tool(Protocol):
    """One thing a model can do."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema, effects. Constant."""
        ...

    def parse(self, arguments: str) -> Mapping[str, Any]:
        """Return the checked arguments of a call.

        Raises:
            BadArguments: not JSON, or not fitting the schema; the message tells the model what to mend.
        """
        ...

    async def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Do it. Cancellation undoes nothing, but leaves no process behind.

        Raises:
            ToolFailed: told to the model as the result. Anything else is a bug, and told as such.
        """
        ...
