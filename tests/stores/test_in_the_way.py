"""What stands in the way of opening a session is named, so that somebody can move it."""

from pathlib import Path

import pytest

from agentsh.base.errors import LogWriteFailed
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
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
