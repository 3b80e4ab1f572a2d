"""`agentsh tag`: put tags on a session, or take them off."""

import os
from typing import TYPE_CHECKING

from agentsh.app.catalog import find, row_of
from agentsh.app.lifecycle import record
from agentsh.app.paths import find_homes, here
from agentsh.base.errors import UsageProblem
from agentsh.base.text import clean
from agentsh.cli.writable import find_writable

if TYPE_CHECKING:
    from agentsh.context.state import SessionState
    from agentsh.events.session import Tagged

MAX_CHARS = 60


def run(session: str, words: list[str]) -> int:
    """Apply `+tag` and `-tag`, and print the tags; return 0."""
    for word in words:
        name = word[1:]
        if word[:1] not in ("+", "-") or not name or len(name) > MAX_CHARS or clean(name) != name or " " in name:
            raise UsageProblem(f"{clean(word)[:80]!r} is neither +TAG nor -TAG", hint="`agentsh tag ID +done -wip`")
    if not words:
        print(clean(" ".join(row_of(find(find_homes(here(), os.environ), session)).summary.get("tags") or ())))
        return 0
    now: tuple[str, ...] = ()

    def retag(state: "SessionState") -> "Tagged | None":
        from agentsh.events.session import Tagged

        nonlocal now
        now = state.tags
        for word in words:
            now = tuple(tag for tag in now if tag != word[1:]) + ((word[1:],) if word[0] == "+" else ())
        return Tagged(tags=now) if set(now) != set(state.tags) else None

    record(find_writable(session), retag)
    print(clean(" ".join(now)))
    return 0
