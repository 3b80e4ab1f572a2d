"""An event: a fact with its place in the log. Loads no pydantic at run time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentsh.events.base import Fact
    from agentsh.events.union import AnyFact


class Opaque(NamedTuple):
    """A fact that this version cannot read: a newer type, or members that do not fit. Kept and shown.

    problem: why, in one line; empty for a type that is merely unknown.
    """

    type: str
    payload: Mapping[str, Any]
    problem: str = ""


class Event(NamedTuple):
    """One line of the log. cause: seq of the event that this one answers. raw: the exact line, LF included."""

    seq: int
    ts: str
    cause: int | None
    fact: "AnyFact | Opaque"
    raw: bytes


class NewFact(NamedTuple):
    """A fact to record. cause: seq of the event that it answers.

    within: place in the same batch of the fact that it answers instead, where that has no seq yet.
    """

    fact: "Fact"
    cause: int | None = None
    within: int | None = None
