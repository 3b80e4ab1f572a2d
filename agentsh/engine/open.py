"""The first facts of a session and of each later opening."""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentsh.base.text import one_line
from agentsh.context.fold import KEPT_DAMAGES, apply
from agentsh.context.jobs import lost
from agentsh.context.repairs import repairs
from agentsh.context.state import CallState, SessionState
from agentsh.context.state_codec import decode_state
from agentsh.context.surroundings import readable
from agentsh.engine.journal import Journal
from agentsh.events.codec import decode
from agentsh.events.event import NewFact
from agentsh.events.session import EnvironmentChanged, Note, Opened, Recovered, SessionInit
from agentsh.events.tool import ToolResult
from agentsh.log.store import Damage, Recovery
from agentsh.log.store import Opened as OpenedLog
from agentsh.ports.texts import Texts

MAX_DAMAGES = 20
"""In one recovered event; `agentsh verify` lists them all."""
MAX_BEGUN = 3
MAX_ABOUT_CHARS = 100


class Writer(NamedTuple):
    """This process, as `opened` names it."""

    version: str
    host: str
    pid: int


async def begin(journal: Journal, init: SessionInit, environment: EnvironmentChanged) -> None:
    """Record the birth of a session; durable before anybody sees it."""
    await journal.record_all([NewFact(init), NewFact(environment)], durable=True)


class Refolded(NamedTuple):
    """What a log was folded to. events, size: the records that had to be folded for it, and their bytes."""

    state: SessionState
    events: int
    size: int


def refold(opened: OpenedLog) -> Refolded:
    """Return what a log that was opened folds to: its checkpoint, where it has one, and the records behind that.

    Raises:
        ValueError: the checkpoint was made by other code; the log is to be opened without it.
    """
    state = decode_state(opened.folded.state) if opened.folded is not None else SessionState()
    events = size = 0
    for record in opened.records:
        apply(state, decode(record))
        events, size = events + 1, size + len(record.raw)
    return Refolded(state, events, size)


async def renew_environment(journal: Journal, texts: Texts, make: Callable[[], EnvironmentChanged]) -> bool:
    """Record the environment anew where it cannot be read any more; return whether that was so.

    Without it requests would have no system prompt and no tools: the event was damaged, or its blobs are gone.
    """
    environment = journal.state.environment
    if environment is not None and readable(environment, texts):
        return False
    note = Note(text="the system prompt and the tools could not be read any more; they are recorded anew as of today")
    await journal.record_all([NewFact(note), NewFact(make())], durable=True, happened=True)
    return True


async def reopen(journal: Journal, recovery: Recovery, writer: Writer) -> None:
    """Record a later opening and close what a dead process left open. Runs nothing again."""
    opened = Opened(epoch=journal.state.epoch + 1, version=writer.version, host=writer.host, pid=writer.pid)
    closing = repairs(journal.state, lost_after=recovery.lost_after(journal.state.last_seq))
    ended = lost(journal.state)
    facts = [NewFact(opened)]
    new = untold(journal.state, recovery.damages)
    if recovery.cut_bytes or recovery.newline_added or recovery.quarantined or new or closing:
        fact = _recovered(new).model_copy(
            update={
                "cut_bytes": recovery.cut_bytes,
                "quarantined": recovery.quarantined,
                "calls": sum(isinstance(r.fact, ToolResult) for r in closing),
                "turn": journal.state.turn is not None,
            }
        )
        if begun := _begun(journal.state, closing):
            fact = fact.model_copy(update={"may_have_run": begun})
        if recovery.newline_added:
            fact = fact.model_copy(update={"newline_added": True})
        facts.append(NewFact(fact, within=0))
    await journal.record_all([*facts, *closing, *ended], durable=True, happened=True)


def _begun(state: SessionState, closing: Sequence[NewFact]) -> tuple[str, ...]:
    """Return what the first calls were about of which nobody knows how far they came."""
    unknown = {n.cause for n in closing if isinstance(n.fact, ToolResult) and n.fact.status == "unknown"}
    calls = [c for c in state.calls.values() if unknown & {c.seq, c.started_seq}]
    return tuple(_about(call) for call in calls[:MAX_BEGUN])


def _about(call: CallState) -> str:
    """Return the command or the path of a call, on one line, else its tool's name."""
    text = call.arguments if isinstance(call.arguments, str) else ""
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        arguments = None
    values = [v for v in arguments.values() if isinstance(v, str)] if isinstance(arguments, dict) else []
    return f"`{one_line(values[0] if values else call.name, MAX_ABOUT_CHARS)}`"


def untold(state: SessionState, damages: Sequence[Damage]) -> list[Damage]:
    """Return the damages that cost something and were not told of: what stays where it is is found at every opening.

    What was an unsynced write when it was told would look like rot now, because later lines say that all before them
    was synced. None once a session knows of so many that it does not remember more.
    """
    known = state.known_damages
    if len(known) >= KEPT_DAMAGES:
        return []
    return [d for d in damages if not d.harmless and not _was_told(d, known)]


def _was_told(damage: Damage, known: set[str]) -> bool:
    if damage.where in known or f"after {damage.after_seq}" in known:
        return True
    return any(damage.after_seq < int(k.removeprefix("before ")) for k in known if k.startswith("before "))


async def tell(journal: Journal, damages: Sequence[Damage]) -> None:
    """Record what was found in the part of the log that a checkpoint had spared the opening, if it is new."""
    new = untold(journal.state, damages)
    if new:
        await journal.record(_recovered(new), durable=True)


def unread(state: SessionState, refs: Sequence[str]) -> Recovered | None:
    """Return what to record of blobs that the conversation needs and that are gone or damaged, where that is new.

    Whoever reads them gets their two ends instead.
    """
    new = [Damage(ref, "blob", 0, state.last_seq, rot=True) for ref in refs if ref not in state.known_damages]
    return _recovered(new) if new and len(state.known_damages) < KEPT_DAMAGES else None


def _recovered(damages: Sequence[Damage]) -> Recovered:
    told = tuple(damage._asdict() for damage in damages[:MAX_DAMAGES])
    fact = Recovered(cut_bytes=0, quarantined=(), damages=told, calls=0, turn=False)
    return fact.model_copy(update={"damages_total": len(damages)}) if len(damages) > MAX_DAMAGES else fact
