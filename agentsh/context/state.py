"""The folded state of a session: everything that is derived from its log and needed to go on.

Owned by the journal, which alone applies events to it; everybody else only reads.
"""

from dataclasses import dataclass, field

from agentsh.events.base import NO_USAGE, Text, Usage
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged, Mode, WorkspaceOrigin
from agentsh.events.tool import Effect, ToolResult
from agentsh.events.turn import AgentMessage, PartialMessage, TextQueued, UserMessage


@dataclass(slots=True)
class CallState:
    """A tool call on its way: asked, started (started_seq), finished (result).

    seq: of the tool_call; the key, since models reuse their own ids. agent_seq: the reply that asked.
    output: what it printed so far, while it has no result.
    """

    seq: int
    agent_seq: int
    call: str
    name: str
    arguments: Text
    started_seq: int | None = None
    effects: tuple[Effect, ...] = ()
    result: ToolResult | None = None
    output: list[Text] = field(default_factory=list)


@dataclass(slots=True)
class OpenTurn:
    """The turn that is running. user_seq: its user message. cost_usd: None until a priced reply came."""

    user_seq: int
    steps: int = 0
    usage: Usage = NO_USAGE
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class UserItem:
    """A user message in the conversation. opens_turn: False for one that joined a running turn."""

    seq: int
    fact: UserMessage
    opens_turn: bool


@dataclass(frozen=True, slots=True)
class AgentItem:
    """A reply in the conversation, with the calls it asked for, in source order."""

    seq: int
    fact: AgentMessage
    calls: list[CallState] = field(default_factory=list)


TalkItem = UserItem | AgentItem


@dataclass(slots=True)
class Totals:
    """Sums over the session. cost_usd: None where no reply had a price."""

    turns: int = 0
    usage: Usage = NO_USAGE
    cost_usd: float | None = None


@dataclass(slots=True)
class SessionState:
    """See the module. talk: the conversation by seq, as far as `fold.trim` leaves it. queue: texts that wait, by seq.

    calls: open calls by the seq of their tool_call. partial: text of a reply that has no agent_message yet.
    grants: what the user allowed for the session. questions: asked and not answered: the call, and what a lasting yes
    grants. known_damages: places of the log that were told of, as `ORDINAL:OFFSET` and as `after SEQ`; `before SEQ`
    where not all of them were named. context_from: first event of the context, by recorded cut.
    """

    id: str = ""
    title: str | None = None
    created: str = ""
    cwd: str = ""
    project: str | None = None
    model: str = ""
    mode: Mode = "ask"
    workspace: WorkspaceOrigin | None = None
    workspace_path: str | None = None
    tags: tuple[str, ...] = ()
    environment: EnvironmentChanged | None = None
    epoch: int = 1
    last_seq: int = 0
    turn: OpenTurn | None = None
    talk: list[TalkItem] = field(default_factory=list)
    calls: dict[int, CallState] = field(default_factory=dict)
    partial: list[PartialMessage] = field(default_factory=list)
    queue: dict[int, TextQueued] = field(default_factory=dict)
    grants: set[str] = field(default_factory=set)
    questions: dict[int, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    known_damages: set[str] = field(default_factory=set)
    context_from: int = 0
    totals: Totals = field(default_factory=Totals)

    @property
    def open_calls(self) -> list[CallState]:
        """Calls without a result, in order of seq."""
        return list(self.calls.values())


def add_cost(a: float | None, b: float | None) -> float | None:
    """Return the sum of two costs, where None means that the price is not known."""
    if b is None:
        return a
    return b if a is None else a + b


def event_call_seq(state: SessionState, event: Event) -> int | None:
    """Return the seq of the open call that `event` answers, through the tool_started where there was one."""
    cause = event.cause
    if cause is None:
        return None
    if cause in state.calls:
        return cause
    return next((c.seq for c in state.calls.values() if c.started_seq == cause), None)
