"""What openings have said of damage: that decides later whether it is rot. Loads no pydantic and no framework.

Rot is told from a lost write by `dur`: a later line that says that the missing one was synced. But once a session has
gone on behind a lost write, its new lines say so of all before them. The opening that found it first knew better, and
its `recovered` event keeps that.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agentsh.app.paths import Home
from agentsh.events.upcast import upcast
from agentsh.log.chain import LogScan
from agentsh.log.files import RealFiles
from agentsh.log.record import Record
from agentsh.log.scan import peek, to_record
from agentsh.log.store import Damage


class Lost(NamedTuple):
    """What was told as lost, not as rot: by place, by the seq before it; or not named, behind and before these."""

    places: frozenset[str]
    after: frozenset[int]
    spans: tuple[tuple[int, int], ...]

    def has(self, damage: Damage) -> bool:
        """Tell whether a damage was told as a lost write."""
        seq = damage.after_seq
        return damage.where in self.places or seq in self.after or any(a <= seq < b for a, b in self.spans)


def as_told(home: Home, session: str, damages: Sequence[Damage]) -> tuple[Damage, ...]:
    """Return damages with their `rot` as the first opening that found them judged it."""
    if not any(damage.rot for damage in damages):
        return tuple(damages)
    try:
        scan = LogScan(RealFiles(), str(home.sessions / session), session)
        try:
            lost = lost_writes(to_record(e[1] + b"\n") for e in scan.entries() if peek(e[1])[0] == b"recovered")
        finally:
            scan.close()
    except OSError:
        return tuple(damages)
    return tuple(d._replace(rot=d.rot and not lost.has(d)) for d in damages)


def lost_writes(recovered: Iterable[Record]) -> Lost:
    """Return what `recovered` events say was lost unsynced. Of events that make no sense: nothing."""
    places, after, spans = set[str](), set[int](), []
    for record in recovered:
        try:
            payload = upcast(record.type, record.payload)
            found = [(str(d["where"]), int(d["after_seq"]), bool(d["rot"])) for d in payload["damages"]]
            total = int(payload.get("damages_total", 0))
        except (ValueError, OverflowError, TypeError, KeyError, AttributeError):
            continue
        places |= {where for where, _, rot in found if not rot}
        after |= {behind for _, behind, rot in found if not rot}
        if total > len(found) > 0 and not any(rot for _, _, rot in found):
            spans.append((min(behind for _, behind, _ in found), record.seq))
    return Lost(frozenset(places), frozenset(after), tuple(spans))
