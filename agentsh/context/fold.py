"""Events to state. Deterministic and total: any events in any order fold to some state and never fail."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from agentsh.context import compaction, jobs, surroundings
from agentsh.context.messages import kept
from agentsh.context.state import (
    AgentItem,
    CallState,
    CommandItem,
    OpenTurn,
    RunningCommand,
    SessionState,
    Told,
    UserItem,
    add_cost,
    add_spent,
    event_call_seq,
)  # fmt: skip
from agentsh.events import compaction as facts
from agentsh.events import model, session, tool, turn, user
from agentsh.events.base import Text
from agentsh.events.event import Event, Opaque
from agentsh.ports.snapshots import Step

LOST_REPLY = turn.AgentMessage(
    text="[a reply of the model is damaged in the log]", reasoning=None, model="", finish="cut", usage=None,
    cost_usd=None,
)  # fmt: skip

FOLD_VERSION = 3
"""Grows when the same events fold to another state of the same shape: checkpoints of before are passed over then."""
KEPT_DAMAGES = 1_000
"""Places of the log that are known to have been told of; `agentsh verify` tells of any number."""
KEPT_OUTPUTS = 8
"""Newest partial_output facts that are kept for a call: each is at most 4,000 bytes, a result shows 10,000."""

Handler = Callable[[SessionState, Event, Any], None]


def fold(events: Iterable[Event]) -> SessionState:
    """Return the state after all `events`."""
    state = SessionState()
    for event in events:
        apply(state, event)
    return state


def apply(state: SessionState, event: Event) -> None:
    """Bring `state` up to and including `event`. An event of a type that is not known changes nothing.

    A rewind of the conversation leaves it `behind`: see `context.rewinds`.
    """
    state.last_seq = max(state.last_seq, event.seq)
    if not isinstance(event.fact, Opaque):
        HANDLERS[event.fact.type](state, event, event.fact)


def trim(state: SessionState) -> None:
    """Forget what no request can hold any more, so that the state grows with the context and not with the log.

    To be called by the handler of every event that moves the start of the context on.
    """
    state.talk[:] = kept(state.talk, compaction.first_needed(state))
    jobs.trim(state)
    surroundings.trim(state)


def _nothing(state: SessionState, event: Event, fact: Any) -> None:
    """Facts that are for the record and the screen only, or whose meaning is not built yet."""


def _session_init(state: SessionState, event: Event, fact: session.SessionInit) -> None:
    state.id, state.title, state.created = fact.id, fact.title, event.ts
    state.cwd, state.project, state.model, state.mode = fact.cwd, fact.project, fact.model, fact.mode
    state.workspace, state.workspace_path = fact.workspace, fact.workspace.path


def _environment(state: SessionState, event: Event, fact: session.EnvironmentChanged) -> None:
    if fact.changes and state.environment is not None:
        if fact.tools != state.environment.tools:
            state.meter.changed()
        state.changes += [Told(event.seq, change.what, change.text) for change in fact.changes]
        state.environment = state.environment.model_copy(update={"tools": fact.tools})
    else:
        state.meter.changed()
        state.environment, state.changes = fact, []
    state.surroundings = fact
    if fact.request is not None:
        state.request = fact.request


def _opened(state: SessionState, event: Event, fact: session.Opened) -> None:
    state.epoch = fact.epoch
    compaction.died(state)


def _mode(state: SessionState, event: Event, fact: session.ModeChanged) -> None:
    state.mode = fact.mode


def _model(state: SessionState, event: Event, fact: session.ModelChanged) -> None:
    state.meter.another_model()
    state.model = fact.model
    state.compacting.failed = 0  # another model may do better
    if fact.request is not None:
        if fact.request.get("host") != (state.request or {}).get("host"):
            state.windows.clear()  # a name means nothing at another host
        state.request = fact.request


def _renamed(state: SessionState, event: Event, fact: session.Renamed) -> None:
    state.title = fact.title


def _tagged(state: SessionState, event: Event, fact: session.Tagged) -> None:
    state.tags = fact.tags


def _moved(state: SessionState, event: Event, fact: session.WorkspaceMoved) -> None:
    state.workspace_path = fact.path


def _snapshot(state: SessionState, event: Event, fact: session.SnapshotTaken) -> None:
    state.snapshot, state.unfinished = Step(event.seq, fact.snapshot, fact.by), None
    if fact.by == "rewind":
        state.winding = None


def _edited(state: SessionState, event: Event, fact: tool.CodeEdit) -> None:
    if fact.snapshot is not None:
        state.snapshot, state.unfinished = Step(event.seq, fact.snapshot, "tool"), None


def _rewound(state: SessionState, event: Event, fact: session.Rewound) -> None:
    state.undoable.append(event.seq)
    state.taken_back[event.seq] = fact.what
    _back(state, event.seq, fact.to_seq, fact.what, fact.files)
    tell(state, event)


def _rewind_undone(state: SessionState, event: Event, fact: session.RewindUndone) -> None:
    state.undoable = [seq for seq in state.undoable if seq < fact.rewound]
    _back(state, event.seq, fact.rewound - 1, state.taken_back.get(fact.rewound, "both"), fact.files)
    tell(state, event)


def tell(state: SessionState, event: Event) -> None:
    """Have the model told of a rewind what it cannot see: how the files are now."""
    if isinstance(event.fact, session.Rewound | session.RewindUndone) and event.fact.told is not None:
        state.changes.append(Told(event.seq, "files", event.fact.told))


def _back(state: SessionState, seq: int, to_seq: int, what: str, files: int | None) -> None:
    state.behind = state.behind or (what != "files" and to_seq < seq)
    if files:
        state.winding, state.unfinished = (seq, to_seq), "rewind"


def _user(state: SessionState, event: Event, fact: turn.UserMessage) -> None:
    if event.cause is not None:
        state.queue.pop(event.cause, None)
    opens_turn = state.turn is None
    if opens_turn:
        state.turn = OpenTurn(event.seq)
        state.totals.turns += 1
    state.talk.append(UserItem(event.seq, fact, opens_turn))
    state.changes = [c if c.joins else replace(c, joins=event.seq) for c in state.changes]
    jobs.told(state, state.jobs)


def _queued(state: SessionState, event: Event, fact: turn.TextQueued) -> None:
    state.queue[event.seq] = fact


def _withdrawn(state: SessionState, event: Event, fact: turn.TextWithdrawn) -> None:
    state.queue.pop(fact.queued, None)


def _built(state: SessionState, event: Event, fact: turn.ContextBuilt) -> None:
    if fact.aside is not None:
        return
    state.partial.clear()
    if fact.summary is not None:
        compaction.asked(state, event)
        return
    state.meter.built(event.seq, fact)
    if fact.cut is not None:
        state.context_from = fact.cut.from_seq
        state.pruned_before = max(state.pruned_before, fact.cut.pruned_before or 0)
        state.images_from = max(state.images_from, fact.cut.images_from or 0)
        compaction.moved_on(state)
        trim(state)
    if state.turn is not None:
        state.turn.steps += 1


def _partial(state: SessionState, event: Event, fact: turn.PartialMessage) -> None:
    state.partial.append(fact)


def _agent(state: SessionState, event: Event, fact: turn.AgentMessage) -> None:
    state.partial.clear()
    state.meter.replied(fact.usage, event.cause)
    state.talk.append(AgentItem(event.seq, fact))
    add_spent(state, fact.usage, fact.cost_usd)
    state.model = state.model or fact.model  # the beginning, which names it, does not read


def _compaction(state: SessionState, event: Event, fact: facts.Compaction) -> None:
    compaction.made(state, event, fact)
    trim(state)


def _dropped(state: SessionState, event: Event, fact: turn.ImageDropped) -> None:
    if fact.from_seq is not None:
        state.dropped_images.append((fact.from_seq, event.seq))
        state.meter.changed()


def _todo(state: SessionState, event: Event, fact: turn.TodoChanged) -> None:
    state.todo = fact.items


def _shell(state: SessionState, event: Event, fact: tool.ShellChanged) -> None:
    state.shell = fact


def _call(state: SessionState, event: Event, fact: tool.ToolCall) -> None:
    asker = next((i for i in reversed(state.talk) if isinstance(i, AgentItem)), None)
    if asker is None or asker.seq != event.cause:  # its reply was in a damaged place: stand in for it
        newest = state.talk[-1].seq if state.talk else 0
        asker = AgentItem(event.cause if event.cause and event.cause > newest else event.seq, LOST_REPLY)
        state.talk.append(asker)
    call = CallState(event.seq, asker.seq, fact.call, fact.name, fact.arguments)
    asker.calls.append(call)
    state.meter.grown(asker.seq)
    state.calls[event.seq] = call


def _asked(state: SessionState, event: Event, fact: tool.ApprovalAsked) -> None:
    if event.cause is not None:
        grants = (fact.grant,) if fact.grant is not None and not fact.rules else ()
        state.questions[event.seq] = (event.cause, grants + fact.rules)


def _answered(state: SessionState, event: Event, fact: tool.ApprovalAnswered) -> None:
    _, grants = state.questions.pop(event.cause or 0, (0, ()))
    if fact.answer in ("session", "project"):
        state.grants.update(grants)


def _output(state: SessionState, event: Event, fact: tool.PartialOutput) -> None:
    call_seq = event_call_seq(state, event)
    output: list[Text] | None = None
    if call_seq is not None:
        output = state.calls[call_seq].output
    elif state.command is not None and state.command.seq == event.cause:
        output = state.command.output
    if output is not None:
        output.append(fact.text)
        del output[:-KEPT_OUTPUTS]


def _recovered(state: SessionState, event: Event, fact: session.Recovered) -> None:
    told: list[str] = []
    for damage in fact.damages:
        if isinstance(damage, dict):  # its place has another name once a rescue has taken the lines around it along
            told.append(str(damage.get("where")))
            if damage.get("kind") != "blob":
                told.append(f"after {damage.get('after_seq')}")
    if (fact.damages_total or 0) > len(fact.damages):
        told.append(f"before {event.seq}")
    state.known_damages.update(told[: max(KEPT_DAMAGES - len(state.known_damages), 0)])


def _started(state: SessionState, event: Event, fact: tool.ToolStarted) -> None:
    call_seq = event_call_seq(state, event)
    if call_seq is not None:
        state.calls[call_seq].started_seq = event.seq
        state.calls[call_seq].effects = fact.effects
        if tool.CHANGING & set(fact.effects):
            state.unfinished = "tool"


def _result(state: SessionState, event: Event, fact: tool.ToolResult) -> None:
    jobs.told(state, fact.jobs)
    call_seq = event_call_seq(state, event)
    if call_seq is not None:
        call = state.calls.pop(call_seq)
        call.result = fact
        state.meter.grown(call.agent_seq)
        call.output.clear()
        if fact.status not in ("unknown", "interrupted") and state.unfinished == "tool":
            state.unfinished = None  # nothing had changed
    elif not _was_answered(state, event.cause):
        told = turn.UserMessage(text=fact.for_model, attachments=fact.images)
        state.talk.append(UserItem(event.seq, told, opens_turn=False, orphan=True))


def _was_answered(state: SessionState, cause: int | None) -> bool:
    """Tell whether a result is there twice, or answers what no request holds any more."""
    if cause is None:
        return False
    if state.talk and cause < state.talk[0].seq and (state.context_from or state.compaction):
        return True
    calls = (call for item in state.talk if isinstance(item, AgentItem) for call in item.calls)
    return any(cause in (call.seq, call.started_seq) for call in calls)


def _window(state: SessionState, event: Event, fact: model.WindowLearned) -> None:
    if fact.request_tokens is not None:
        state.meter.refused(fact.request_tokens, event.cause)
    before = state.windows.get(fact.model)
    # A list that names more than was refused is not believed: requests go through a provider that takes less.
    if before is None or before.source != model.REFUSAL or fact.window <= before.window:
        state.windows[fact.model] = fact


def _finished(state: SessionState, event: Event, fact: turn.TurnFinished) -> None:
    state.turn = None
    state.partial.clear()
    state.questions.clear()


def _command(state: SessionState, event: Event, fact: user.UserCommand) -> None:
    if event.cause is not None:
        state.queue.pop(event.cause, None)
    state.command = RunningCommand(event.seq, fact.command, fact.joins)


def _command_ended(state: SessionState, event: Event, fact: user.UserCommandEnded) -> None:
    command = state.command
    if command is not None and command.seq == event.cause:
        state.command = None
        if command.joins:
            state.talk.append(CommandItem(event.seq, command.command, fact, state.turn is None))


def _side_question(state: SessionState, event: Event, fact: user.SideQuestion) -> None:
    state.asides[event.seq] = fact


def _side_answer(state: SessionState, event: Event, fact: user.SideAnswer) -> None:
    state.asides.pop(event.cause or 0, None)
    state.totals.usage = state.totals.usage.plus(fact.usage)
    state.totals.cost_usd = add_cost(state.totals.cost_usd, fact.cost_usd)


HANDLERS: dict[str, Handler] = {
    "session_init": _session_init,
    "environment_changed": _environment,
    "opened": _opened,
    "recovered": _recovered,
    "mode_changed": _mode,
    "model_changed": _model,
    "renamed": _renamed,
    "tagged": _tagged,
    "checkpoint": _nothing,
    "workspace_moved": _moved,
    "snapshot_taken": _snapshot,
    "rewound": _rewound,
    "rewind_undone": _rewind_undone,
    "note": _nothing,
    "user_message": _user,
    "text_queued": _queued,
    "text_withdrawn": _withdrawn,
    "context_built": _built,
    "agent_message": _agent,
    "partial_message": _partial,
    "turn_finished": _finished,
    "summary_tried": compaction.tried,
    "compaction": _compaction,
    "compaction_undone": compaction.undone,
    "image_dropped": _dropped,
    "todo_changed": _todo,
    "tool_call": _call,
    "approval_asked": _asked,
    "approval_answered": _answered,
    "tool_started": _started,
    "code_edit": _edited,
    "tool_result": _result,
    "partial_output": _output,
    "hook_answered": _nothing,
    "shell_changed": _shell,
    "job_changed": jobs.changed,
    "window_learned": _window,
    "user_command": _command,
    "user_command_ended": _command_ended,
    "side_question": _side_question,
    "side_answer": _side_answer,
}
"""One handler for each type; a test holds the table against the vocabulary."""
