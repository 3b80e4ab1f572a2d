"""Fact to draft and record to event. The only module that turns the one into the other."""

from typing import TYPE_CHECKING, cast

from agentsh.base.typed import Misfit
from agentsh.events.event import Event, Opaque
from agentsh.events.union import KINDS
from agentsh.events.upcast import upcast
from agentsh.log.record import Draft, Record

if TYPE_CHECKING:
    from agentsh.events.base import Fact
    from agentsh.events.union import AnyFact


def encode(fact: "Fact | Opaque", *, ts: str, cause: int | None = None) -> Draft:
    """Return the draft of a fact: members in the order of the class, unset optional ones left out."""
    if isinstance(fact, Opaque):
        return Draft(fact.type, ts, fact.payload, cause)
    payload = fact.model_dump(exclude_unset=True)
    payload.pop("type", None)
    return Draft(fact.type, ts, payload, cause)


def decode(record: Record) -> Event:
    """Return the event of a record. Never fails: what does not fit comes back as Opaque."""
    kind = KINDS.get(record.type)
    fact: AnyFact | Opaque
    if kind is None:
        fact = Opaque(record.type, record.payload)
    else:
        try:
            fact = cast("AnyFact", kind.model_validate(upcast(record.type, record.payload)))
        except Misfit as misfit:
            fact = Opaque(record.type, record.payload, str(misfit))
    return Event(record.seq, record.ts, record.cause, fact, record.raw)
