"""The facts that close what a dead process, an interruption, or a fork left open. Pure and idempotent.

Nothing is ever run again: a call that was asked but not started did not run; one that was started may have.
"""

from typing import Literal

from agentsh.base.text import tail_bytes
from agentsh.context.state import CallState, SessionState
from agentsh.events.event import NewFact
from agentsh.events.tool import ResultStatus, ToolResult
from agentsh.events.turn import AgentMessage, TurnFinished
from agentsh.events.user import SideAnswer, UserCommandEnded

MAX_MODEL_BYTES = 20_000
"""Cap of a result for the model: 7,000 tokens by the estimate of three bytes each, and it stays in its log line."""
MAX_SHOWN_BYTES = 3_000
MAY_HAVE_RUN = "The session stopped while this ran. It may have run in part or to its end: check before repeating it."
MAY_BE_LOST = (
    "The log is damaged behind this call, so whether it ran is not known. It may have run: check before repeating it."
)
DID_NOT_RUN = "The session stopped before this ran. It had no effects."
NO_ANSWER = "the session stopped before the answer came"
WAS_INTERRUPTED = "The user interrupted before this ran. It had no effects."
FORKED_IN_IT = (
    "This session was forked from another one while this ran. What it had done by then may be here in part: check."
)
FORKED_BEFORE = "This session was forked from another one before this ran. It had no effects here."


def close_calls(state: SessionState, *, interrupted: bool = False, lost_after: int = 0) -> list[NewFact]:
    """Return one result for each open call. lost_after: see `repairs`."""
    return [_close(call, interrupted, lost=call.seq <= lost_after) for call in state.open_calls]


def _close(call: CallState, interrupted: bool, *, lost: bool) -> NewFact:
    if call.started_seq is None and lost:
        return _result(call, "unknown", MAY_BE_LOST, "it may have run: the log is damaged there")
    if call.started_seq is None:
        text = WAS_INTERRUPTED if interrupted else DID_NOT_RUN
        note = "interrupted before it ran" if interrupted else "stopped before it ran"
        return _result(call, "denied", text, f"denied: {note}")
    if interrupted and set(call.effects) <= {"read"}:
        return _result(call, "interrupted", "The user interrupted this. It had no effects.", "interrupted")
    output = "".join(text for text in call.output if isinstance(text, str))
    if not output:
        return _result(call, "unknown", MAY_HAVE_RUN, "it may have run")
    text = f"{MAY_HAVE_RUN}\nOutput so far:\n{tail_bytes(output, MAX_MODEL_BYTES // 2)}"
    # What was on the screen stays there.
    return _result(call, "unknown", text, f"it may have run\n{tail_bytes(output, MAX_SHOWN_BYTES)}")


def _result(call: CallState, status: ResultStatus, for_model: str, for_user: str) -> NewFact:
    fact = ToolResult(call=call.call, status=status, for_model=for_model, for_user=for_user, duration_ms=0)
    return NewFact(fact, call.started_seq or call.seq)


def close_reply(state: SessionState, *, finish: Literal["cut", "interrupted"]) -> list[NewFact]:
    """Return the agent_message for text that was shown but whose reply never came to its end."""
    text = "".join(p.text for p in state.partial if isinstance(p.text, str))
    reasoning = "".join(p.reasoning for p in state.partial if isinstance(p.reasoning, str))
    if not text and not reasoning:
        return []
    message = AgentMessage(
        text=text, reasoning=reasoning or None, model=state.model, finish=finish, usage=None, cost_usd=None
    )
    return [NewFact(message, state.turn.user_seq if state.turn else None)]


def _beside(state: SessionState) -> list[NewFact]:
    """Close what the user had going on beside the turns."""
    found = [NewFact(SideAnswer(text="", error=NO_ANSWER), seq) for seq in state.asides]
    if state.command is not None:
        output = tail_bytes("".join(t for t in state.command.output if isinstance(t, str)), MAX_MODEL_BYTES // 2)
        ended = UserCommandEnded(status="unknown", exit=None, text=output, duration_ms=0)
        found.append(NewFact(ended, state.command.seq))
    return found


def forked(state: SessionState) -> list[NewFact]:
    """Return what closes in a fork what goes on in its parent: nothing died, and nobody is told that anything did."""
    found = [_left_behind(new) for new in repairs(state)]
    return close_reply(state, finish="interrupted") + [n for n in found if not isinstance(n.fact, AgentMessage)]


def _left_behind(new: NewFact) -> NewFact:
    fact = new.fact
    if isinstance(fact, TurnFinished):
        return new._replace(fact=fact.model_copy(update={"reason": "interrupted"}))
    if isinstance(fact, SideAnswer):
        return new._replace(fact=fact.model_copy(update={"error": "the session was forked before the answer came"}))
    if isinstance(fact, ToolResult):
        began = fact.status == "unknown"
        told = {
            "for_model": FORKED_IN_IT if began else FORKED_BEFORE,
            "for_user": "forked while it ran" if began else "denied: forked before it ran",
        }
        return new._replace(fact=fact.model_copy(update=told))
    return new


def repairs(state: SessionState, *, lost_after: int = 0) -> list[NewFact]:
    """Return what a newly opened session must append before anything else; empty for one that ended well.

    lost_after: the log lacks something behind this seq, so a call up to it may have run although its start is not
    there; 0 where nothing is missing.
    """
    found = close_reply(state, finish="cut") + close_calls(state, lost_after=lost_after) + _beside(state)
    if state.turn is not None:
        found.append(
            NewFact(
                TurnFinished(
                    reason="crashed", steps=state.turn.steps, usage=state.turn.usage,
                    cost_usd=state.turn.cost_usd, duration_ms=0,
                ),
                state.turn.user_seq,
            )
        )  # fmt: skip
    return found


def unfinished(state: SessionState) -> list[NewFact]:
    """Return what a session that goes on must append before its next turn or command: what was not closed then.

    Questions aside are left alone: they are being answered.
    """
    return [new for new in repairs(state) if not isinstance(new.fact, SideAnswer)]
