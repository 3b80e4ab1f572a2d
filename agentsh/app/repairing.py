"""What `repair` writes into a log and says of it in plain words. Loads no pydantic, unless the beginning is lost."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agentsh.app.paths import Home
from agentsh.base.text import plural
from agentsh.log.record import Draft
from agentsh.log.repair import Plan, Repaired, Words
from agentsh.log.unarchive import Taken
from agentsh.stores.repair import Repairer, repairing


@contextmanager
def session_repair(home: Home, session: str, progress: Callable[[int], None] | None = None) -> Iterator[Repairer]:
    """Hold a session for its repair. progress, and what it raises: as of `repairing`."""
    words = WORDS._replace(beginning=lambda ts: _beginning(home, session, ts))
    with repairing(str(home.sessions), session, words, progress=progress) as repairer:
        yield repairer


def _beginning(home: Home, session: str, ts: str) -> Draft:
    from agentsh.app.beginning import beginning  # pydantic

    return beginning(home, session, ts)


def _epoch(raw: bytes) -> int:
    """Return the epoch of an `opened` event, 0 for any other line."""
    if b'"type":"opened"' not in raw[:120]:
        return 0
    try:
        epoch = json.loads(raw)["payload"]["epoch"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return 0
    return epoch if type(epoch) is int else 0


def _filler(seq: int, first: int, last: int, ts: str) -> Draft:
    if seq != first:
        return Draft("note", ts, {"text": f"event {seq} is lost too"})
    what, of = (f"event {first} is", "it") if first == last else (f"events {first} to {last} are", "them")
    return Draft("note", ts, {"text": f"{what} lost: nothing is left of {of} that reads (see `quarantine/`)"})


def _report(done: Repaired) -> Draft:
    names = ", ".join(f"quarantine/{name}" for name in done.quarantined)
    said = "; ".join(_what(done.plan)) or "nothing was lost"
    return Draft("note", done.now, {"text": f"repaired: {said}. As it was: {names or 'there was no file'}"})


WORDS = Words(_epoch, _filler, _report)


def _what(plan: Plan) -> list[str]:
    found, said = plan.salvage, []
    for first, last in found.lost[:5]:
        said.append(f"event {first} is lost" if first == last else f"events {first} to {last} are lost")
    if len(found.lost) > 5:
        said.append(f"so are others, in {plural(len(found.lost) - 5, 'place')}")
    if plan.begins_anew:
        said.append("the first event is made anew from what else is known of the session")
    if plan.checkpoints:
        said.append(f"its checkpoint still has the state up to event {max(plan.checkpoints)}")
    for branch in found.branches:
        what = plural(branch.lines, "event")
        said.append(f"{what} that another program wrote at the same time ({branch.first} to {branch.last}) left out")
    return said


def outlook(session: str, plan: Plan) -> list[str]:
    """Return what a repair will do, a line each."""
    found = plan.salvage
    lines = [
        f"The log of {session} has {plural(len(plan.damages), 'damaged place')}. Repair will",
        f"  write anew what reads: {plural(found.kept, 'event')} from event {found.first_seq} on"
        if found.kept
        else "  begin the log anew, as nothing of it reads",
    ]
    if found.doubled:
        stand = "stands" if found.doubled == 1 else "stand"
        lines.append(f"  leave out {plural(found.doubled, 'line')} that {stand} there twice")
    lines += [f"  note in the log that {what}" for what in _what(plan)]
    if found.segments:
        lines.append(f"  keep the original in quarantine/: {', '.join(found.segments)}")
    return lines


def outcome(session: str, done: Repaired) -> list[str]:
    """Return what a repair has done, a line each."""
    found = done.plan.salvage
    lines = [f"{session} is repaired: {'; '.join(_what(done.plan)) or 'nothing was lost'}"]
    lines += [f"  as it was: sessions/{session}/quarantine/{name}" for name in done.quarantined]
    if found.branches:
        lines.append("  the other program's events are in the file that ends in other-writer.jsonl")
    return lines


def damage_told(taken: Taken) -> str:
    """Return what is to be said of a damaged archive behind its name, nothing of one that was whole."""
    if taken.kept is None:
        return ""
    if taken.whole:
        return f": that was damaged, but all of it could be read (kept: quarantine/{taken.kept})"
    return f": that was damaged, and a part is lost (kept: quarantine/{taken.kept})"
