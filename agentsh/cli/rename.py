"""`agentsh rename`: give a session a title."""

from typing import TYPE_CHECKING

from agentsh.app.lifecycle import record
from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.cli.writable import find_writable

if TYPE_CHECKING:
    from agentsh.context.state import SessionState
    from agentsh.events.session import Renamed

MAX_CHARS = 200


def run(session: str, words: list[str]) -> int:
    """Rename it; return 0."""
    title = one_line(" ".join(words), MAX_CHARS)
    if not title:
        raise UsageProblem("a title needs a word")
    place = find_writable(session)

    def retitle(state: "SessionState") -> "Renamed | None":
        from agentsh.events.session import Renamed

        return Renamed(title=title, by="user") if title != state.title else None

    record(place, retitle)
    print(f"{place.id}  {title}")
    return 0
