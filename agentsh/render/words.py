"""Facts in words that more than one renderer uses."""

from agentsh.base.text import plural
from agentsh.events.session import Recovered


def recovered(fact: Recovered) -> str:
    """Return in one line what an opening found and put right."""
    found = []
    if fact.turn:
        found.append("the last turn was cut off")
    if fact.calls:
        found.append(f"{plural(fact.calls, 'open tool call')} closed, none run again")
    if fact.cut_bytes:
        found.append(f"{plural(fact.cut_bytes, 'damaged byte')} moved to quarantine")
    if fact.damages:
        places = fact.damages_total or len(fact.damages)
        found.append(f"{plural(places, 'damaged place')} left as found")
    if fact.newline_added:
        found.append("the last line was completed")
    return "recovered: " + ("; ".join(found) or "nothing was lost")
