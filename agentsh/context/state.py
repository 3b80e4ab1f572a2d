"""The folded state of a session: everything that is derived from its log and needed to go on.

Owned by the journal, which alone applies events to it; everybody else only reads.
"""

from typing import Any, Literal

from agentsh.base.light import dataclass, field
from agentsh.context.meter import Meter
from agentsh.events.base import NO_USAGE, JsonValue, Text, Usage
from agentsh.events.event import Event
from agentsh.events.model import WindowLearned
from agentsh.events.session import EnvironmentChanged, Mode, WorkspaceOrigin
from agentsh.events.tool import Effect, ShellChanged, ToolResult
from agentsh.events.turn import AgentMessage, PartialMessage, TextQueued, UserMessage
from agentsh.events.user import SideQuestion, UserCommandEnded
from agentsh.ports.snapshots import By, Step


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
    """A user message in the conversation. opens_turn: False for one that joined a running turn.

    orphan: it is the result of a call that the log has lost, which can only be told as a message.
    """

    seq: int
    fact: UserMessage
    opens_turn: bool
    orphan: bool = False


@dataclass(frozen=True, slots=True)
class AgentItem:
    """A reply in the conversation, with the calls it asked for, in source order."""

    seq: int
    fact: AgentMessage
    calls: list[CallState] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CommandItem:
    """A command that the user ran, in the talk. seq: of its user_command_ended. between: it was in no turn."""

    seq: int
    command: Text
    fact: UserCommandEnded
    between: bool


TalkItem = UserItem | AgentItem | CommandItem


@dataclass(slots=True)
class RunningCommand:
    """A command of the user's that has no end yet. output: what it printed so far."""

    seq: int
    command: Text
    joins: bool
    output: list[Text] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Told:
    """A change of the surroundings, told at the start of the user message `joins`; 0 while that is to come."""

    seq: int
    what: str
    text: Text
    joins: int = 0


@dataclass(frozen=True, slots=True)
class JobState:
    """A background job. seq: of its newest event. state: as in job_changed; told: its end is known to the model."""

    job: str
    seq: int
    command: Text
    state: str
    exit: int | None = None
    output_bytes: int = 0
    duration_ms: int = 0
    for_model: Text | None = None
    told: bool = False


@dataclass(frozen=True, slots=True)
class Compacted:
    """The compaction that holds: `summary` stands in requests for what came up to `upto_seq`. seq: its event.

    tokens_before, tokens_after: of the request without and with it; 0 where the log does not say.
    """

    seq: int
    from_seq: int
    upto_seq: int
    summary: Text
    by: str = ""
    made: str = ""
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class Replaced:
    """What the context was before the newest compaction: its undo goes back to it."""

    context_from: int
    pruned_before: int
    compaction: Compacted | None
    images_from: int = 0


@dataclass(slots=True)
class Compacting:
    """What decides whether to compact again, from the log alone.

    asked: seq of a request for a summary that has no answer yet. failed: requests in a row that came to nothing.
    reference_tokens, budget: the size of the context after the last compaction, or before the one that was undone,
    and the budget it was made for; 0 where there was none. undone: the last one was taken back.
    """

    asked: int | None = None
    failed: int = 0
    reference_tokens: int = 0
    budget: int = 0
    undone: bool = False


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
    environment: what requests start with. surroundings: the newest of its kind: what is so now. changes: what was
    told since. request: the wire, its options, the profile and the host of the requests from here on.
    pruned_before: results of calls below this seq are shown to the model as stubs. images_from: images of events
    below it are named only, and so are dropped_images, by first and last seq. compaction: the one that holds.
    replaced: for the undo of it. todo: the newest list. shell: what the last command left to the next, if anything.
    jobs: by id, all that run and the newest of the others.
    meter: what the provider has counted. windows: how much each model takes, as far as that was learned.
    snapshot: the last one of the workspace. unfinished: who may have changed files since then. undoable: seqs of the
    rewinds that hold. taken_back: what each rewind took back. winding: (seq, the seq that it goes back to) of one
    whose files are not all taken back yet. behind: the conversation went back to where it was earlier, which only
    the log knows: `context.rewinds`. command: of the user's, that runs. asides: questions aside without an answer.
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
    surroundings: EnvironmentChanged | None = None
    changes: list[Told] = field(default_factory=list)
    request: dict[str, Any] | None = None
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
    pruned_before: int = 0
    images_from: int = 0
    dropped_images: list[tuple[int, int]] = field(default_factory=list)
    compaction: Compacted | None = None
    replaced: Replaced | None = None
    compacting: Compacting = field(default_factory=Compacting)
    todo: tuple[JsonValue, ...] = ()
    shell: ShellChanged | None = None
    jobs: dict[str, JobState] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    meter: Meter = field(default_factory=Meter)
    windows: dict[str, WindowLearned] = field(default_factory=dict)
    snapshot: Step | None = None
    unfinished: By | None = None
    undoable: list[int] = field(default_factory=list)
    taken_back: dict[int, Literal["conversation", "files", "both"]] = field(default_factory=dict)
    winding: tuple[int, int] | None = None
    behind: bool = False
    command: RunningCommand | None = None
    asides: dict[int, SideQuestion] = field(default_factory=dict)

    @property
    def open_calls(self) -> list[CallState]:
        """Calls without a result, in order of seq."""
        return list(self.calls.values())


def add_spent(state: SessionState, usage: Usage | None, cost_usd: float | None) -> None:
    """Count what a reply took, for the session and the turn that runs."""
    for sums in (state.totals, state.turn):
        if sums is not None:
            sums.cost_usd = add_cost(sums.cost_usd, cost_usd)
            sums.usage = sums.usage.plus(usage)


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
