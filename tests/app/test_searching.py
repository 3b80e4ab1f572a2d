"""Looking through what was said in sessions: what is found, and that it ends when nobody waits for it."""

import threading
from collections.abc import Iterator
from pathlib import Path

from agentsh.app.catalog import Place, places
from agentsh.app.searching import search
from tests.app.rig import a_home, a_session, an_id


def test_it_finds_words_whatever_their_case_and_ends_where_it_is_told(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    for n in (1, 2, 3):
        a_session(home, an_id(n), prompt=f"The Zebra number {n} is striped", second=n)
    known = list(places((home,)))
    found = search(known, "zebra", threading.Event())
    assert sorted(found) == [an_id(n) for n in (1, 2, 3)]
    assert all("Zebra number" in where for where in found.values())
    stop = threading.Event()

    def until_the_first() -> Iterator[Place]:
        yield known[0]
        stop.set()
        yield known[1]
        raise AssertionError("it went on")

    assert list(search(until_the_first(), "zebra", stop)) == [known[0].id]
    assert search(known, "zebra", stop) == {}
