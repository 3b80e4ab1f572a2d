"""The first facts of a session and of each later opening."""

from collections.abc import Callable
from dataclasses import dataclass

from agentsh.context.fold import fold
from agentsh.context.repairs import repairs
from agentsh.context.state import SessionState
from agentsh.engine.journal import Journal
from agentsh.events.base import Text
from agentsh.events.codec import decode
from agentsh.events.event import Event, NewFact
from agentsh.events.session import EnvironmentChanged, Note, Opened, Recovered, SessionInit
from agentsh.events.tool import ToolResult
from agentsh.log.store import Damage, Recovery
from agentsh.log.store import Opened as OpenedLog
from agentsh.ports.texts import Texts, with_gap

MAX_DAMAGES = 20
"""In one recovered event; `agentsh verify` lists them all."""


@dataclass(frozen=True, slots=True)
class Writer:
    """This process, as `opened` names it."""

    version: str
    host: str
    pid: int


async def begin(journal: Journal, init: SessionInit, environment: EnvironmentChanged) -> None:
    """Record the birth of a session; durable before anybody sees it."""
    await journal.record_all([NewFact(init), NewFact(environment)], durable=True)


def past(opened: OpenedLog) -> tuple[list[Event], SessionState]:
    """Return the events of a log that was opened, and the state they fold to."""
    events = [decode(record) for record in opened.records]
    return events, fold(events)


async def renew_environment(journal: Journal, texts: Texts, make: Callable[[], EnvironmentChanged]) -> bool:
    """Record the environment anew where it cannot be read any more; return whether that was so.

    Without it requests would have no system prompt and no tools: the event was damaged, or its blobs are gone.
    """
    environment = journal.state.environment
    if environment is not None and _reads(texts, environment.tools) and _reads(texts, environment.system_prompt):
        return False
    note = Note(text="the system prompt and the tools could not be read any more; they are recorded anew as of today")
    await journal.record_all([NewFact(note), NewFact(make())], durable=True)
    return True


def _reads(texts: Texts, value: Text) -> bool:
    return isinstance(value, str) or texts.text(value) != with_gap(value)


async def reopen(journal: Journal, recovery: Recovery, writer: Writer) -> None:
    """Record a later opening and close what a dead process left open. Runs nothing again."""
    opened = Opened(epoch=journal.state.epoch + 1, version=writer.version, host=writer.host, pid=writer.pid)
    closing = repairs(journal.state, lost_after=recovery.lost_after(journal.state.last_seq))
    facts = [NewFact(opened)]
    # Damage in the middle stays where it is and is found at every opening: it is told once. What was an unsynced
    # write then would look like rot now, because later lines say that all before them was synced.
    new = [d for d in recovery.damages if not d.harmless and not _was_told(d, journal.state.known_damages)]
    if recovery.cut_bytes or recovery.newline_added or recovery.quarantined or new or closing:
        fact = Recovered(
            cut_bytes=recovery.cut_bytes,
            quarantined=recovery.quarantined,
            damages=tuple(damage._asdict() for damage in new[:MAX_DAMAGES]),
            calls=sum(isinstance(r.fact, ToolResult) for r in closing),
            turn=journal.state.turn is not None,
        )
        if recovery.newline_added:
            fact = fact.model_copy(update={"newline_added": True})
        if len(new) > MAX_DAMAGES:
            fact = fact.model_copy(update={"damages_total": len(new)})
        facts.append(NewFact(fact, within=0))
    await journal.record_all([*facts, *closing], durable=True)


def _was_told(damage: Damage, known: set[str]) -> bool:
    if damage.where in known or f"after {damage.after_seq}" in known:
        return True
    return any(damage.after_seq < int(k.removeprefix("before ")) for k in known if k.startswith("before "))
