"""Which session of the trash is meant."""

from pathlib import Path

import pytest

from agentsh.app.catalog import places
from agentsh.app.lifecycle import restore
from agentsh.app.paths import Home
from agentsh.base.errors import SessionAmbiguous
from agentsh.stores.trash import Trash
from tests.app.homes import add, sid


def test_several_that_fit_are_named(tmp_path: Path) -> None:
    for n in (1, 2):
        add(tmp_path, n)
    trash = Trash(str(tmp_path))
    home = Home(tmp_path, True)
    for place in places([home]):
        trash.put(place.id, why="test", workspace=None)
    with pytest.raises(SessionAmbiguous, match="fits 2 sessions in the trash") as caught:
        restore(home, "2026")
    assert sorted(caught.value.candidates) == [sid(1), sid(2)]
    assert restore(home, sid(2)).session == sid(2)
