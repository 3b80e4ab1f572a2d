"""Facts in words that more than one renderer uses."""

from agentsh.base.text import one_line, plural
from agentsh.events.compaction import Compaction
from agentsh.events.session import Recovered


def recovered(fact: Recovered) -> str:
    """Return in one line what an opening found and put right."""
    found = []
    if fact.turn:
        found.append("the last turn was cut off")
    if fact.may_have_run:
        found.append(f"{plural(len(fact.may_have_run), 'call')} may have run: {', '.join(fact.may_have_run)}")
    if fact.calls:
        found.append(f"{plural(fact.calls, 'open tool call')} closed, none run again")
    if fact.cut_bytes:
        found.append(f"{plural(fact.cut_bytes, 'damaged byte')} moved to quarantine")
    if any(name.startswith("archive.") for name in fact.quarantined):
        found.append("the damaged archive of the session moved to quarantine")
    blobs = sum(isinstance(damage, dict) and damage.get("kind") == "blob" for damage in fact.damages)
    if places := (fact.damages_total or len(fact.damages)) - blobs:
        found.append(f"{plural(places, 'damaged place')} left as found")
    if blobs:
        found.append(f"{plural(blobs, 'long text')} missing or damaged, of which only the two ends are left")
    if fact.newline_added:
        found.append("the last line was completed")
    return "recovered: " + ("; ".join(found) or "nothing was lost")


def compacted(fact: Compaction) -> str:
    """Return in one line what a compaction did, and how to take it back."""
    said = f"compacted {plural(max(fact.upto_seq - fact.from_seq + 1, 0), 'event')}"
    if fact.tokens_before is not None and fact.tokens_after is not None:
        mark = "~" if (fact.estimator or "~").startswith("~") else ""
        said += f": {mark}{thousands(fact.tokens_before)} -> {mark}{thousands(fact.tokens_after)} tokens"
    if fact.made == "mechanical":
        said += ", from the log alone" + (f" ({one_line(fact.error, 200)})" if fact.error else "")
    return f"{said} (undo: /compact undo)"


def thousands(n: int) -> str:
    """Return `950`, `4.9k`, `96k`."""
    return str(n) if n < 1000 else f"{n / 1000:.1f}k" if n < 10_000 else f"{n / 1000:.0f}k"
