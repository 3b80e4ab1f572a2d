"""The port to whoever can say yes or no."""

from typing import Literal, Protocol

from agentsh.base.light import dataclass
from agentsh.events.tool import Effect


@dataclass(frozen=True, slots=True)
class Question:
    """A call that needs a yes. subject: what is to be done, one line. preview: a diff or the whole command.

    why: what of it needs the question. rules: what a yes for the session or the project allows from then on; empty
    where such a yes is not offered, or (for the session only) allows this very call alone.
    """

    tool: str
    subject: str
    preview: str
    effects: tuple[Effect, ...]
    why: str = ""
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer. `session`: yes, and do not ask again for this in this session; `project`: nor in any other session
    of this project. reason: told to the model on a no.
    """

    verdict: Literal["yes", "session", "project", "no"]
    reason: str | None = None


class Approver(Protocol):
    """Asks. Where nobody can be asked, the engine is given None instead of one of these."""

    async def ask(self, question: Question) -> Answer:
        """Return the answer, however long it takes. Cancellation withdraws the question."""
        ...
