"""What stands in the way of opening a session is named, so that somebody can move it."""

from pathlib import Path

import pytest

from agentsh.app.repairing import WORDS
from agentsh.base.errors import LogWriteFailed
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.repair import repairing
from tests.log.disks import UnsyncedFiles
from tests.log.logs import SESSION, header, lines


@pytest.mark.parametrize(("name", "is_dir"), [("lock", True), ("quarantine", False)])
async def test_something_else_has_a_name_that_opening_needs(tmp_path: Path, name: str, is_dir: bool) -> None:
    place = tmp_path / SESSION
    place.mkdir()
    data = header().raw + b"".join(lines(header(), 1, 3)) + b'{"seq":'
    (place / "events.jsonl").write_bytes(data)
    (place / name).mkdir() if is_dir else (place / name).write_bytes(b"")
    store = JsonlStore(tmp_path, FileBlobs(tmp_path / "blobs"), files=UnsyncedFiles())
    with pytest.raises(LogWriteFailed, match=f"cannot open session {SESSION}: {name}: "):
        await store.open(SESSION)
    assert (place / "events.jsonl").read_bytes() == data
    assert len(list(store.read(SESSION))) == 3


async def test_a_link_to_nothing_in_the_place_of_quarantine(tmp_path: Path) -> None:
    """It was told as `No such file or directory`, and by `repair` as `no session`."""
    place = tmp_path / SESSION
    place.mkdir()
    data = header().raw + b"".join(lines(header(), 1, 3)) + b'{"seq":'
    (place / "events.jsonl").write_bytes(data)
    (place / "quarantine").symlink_to(tmp_path / "nowhere")
    said = "quarantine: a link to nothing, not a directory"
    with pytest.raises(LogWriteFailed, match=f"cannot open session {SESSION}: {said}"):
        await JsonlStore(tmp_path, FileBlobs(tmp_path / "blobs"), files=UnsyncedFiles()).open(SESSION)
    with pytest.raises(LogWriteFailed, match=f"cannot repair session {SESSION}: {said}"):
        _repaired(tmp_path)
    assert (place / "events.jsonl").read_bytes() == data


def _repaired(sessions: Path) -> None:
    with repairing(str(sessions), SESSION, WORDS, files=UnsyncedFiles()) as repairer:
        plan = repairer.plan()
        assert plan is not None
        repairer.repair(plan)
