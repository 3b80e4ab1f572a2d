"""After every end-to-end test: each request of each session in its home can be built again, byte for byte.

And no event names another that is not there before it.
"""

import os
from pathlib import Path

from agentsh.app.catalog import Place, check_plain, places
from agentsh.app.contexts import Contexts
from agentsh.app.paths import Home
from agentsh.app.stores import event_store
from agentsh.base.errors import AgentshError

COUNT = "AGENTSH_TEST_CONTEXTS"
"""Names a file that gets the number of requests of each test, for who wants to know how many there were."""


def damaged(home: Home, session: str) -> bool:
    try:
        check_plain(Place(home, session, 0, 0, ""))
        return any(not d.harmless and d.kind != "torn" for d in event_store(home).damages(session))
    except AgentshError:
        return True


def dangling(home: Home, session: str) -> None:
    """Fail where a cause is not there (field report A24)."""
    known: set[int] = set()
    for record in event_store(home).read(session):
        assert record.cause is None or record.cause in known, f"{session}: event {record.seq} names {record.cause}"
        known.add(record.seq)


def proven(root: Path) -> None:
    """Fail where a request cannot be built again. Sessions whose log a test has damaged are passed over."""
    home = Home(root, trusted=True)
    if not home.sessions.is_dir():
        return
    for place in places((home,)):
        if damaged(home, place.id):
            continue
        dangling(home, place.id)
        checks = Contexts(place).check()
        assert checks.problems == (), f"{place.id}: {checks.problems[:3]}"
        if COUNT in os.environ:
            with open(os.environ[COUNT], "a", encoding="utf-8") as file:
                file.write(f"{checks.requests}\n")
