"""The record of trusted homes holds by content, and survives whatever lies in its file."""

import json
from pathlib import Path

import pytest

from agentsh.app.trust import FILE, is_trusted, trust
from agentsh.base.errors import UsageProblem
from tests.app.rig import a_home


def test_trust_holds_for_one_place_and_one_content(tmp_path: Path) -> None:
    own, first, second = tmp_path / "own", a_home(tmp_path / "a").root, a_home(tmp_path / "b").root
    assert not is_trusted(first, own)
    trust(first, own)
    assert is_trusted(first, own)
    assert not is_trusted(second, own)
    trust(second, own)
    assert is_trusted(first, own)
    (first / "agentsh.toml").write_text("# changed")
    assert not is_trusted(first, own)
    assert (own / FILE).stat().st_mode & 0o777 == 0o600


def test_another_way_to_the_same_place_is_the_same_place(tmp_path: Path) -> None:
    home = a_home(tmp_path / "a").root
    (tmp_path / "link").symlink_to(home)
    trust(tmp_path / "link", tmp_path / "own")
    assert is_trusted(home, tmp_path / "own")


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\x00\xff", b"[]", b"null", b'{"a":', b"[" * 100_000, b'{"PLACE":1}', b'{"PLACE":null}', b'{"PLACE":""}'],
)
def test_garbage_trusts_nobody_and_is_replaced(tmp_path: Path, garbage: bytes) -> None:
    own, home = tmp_path / "own", a_home(tmp_path / "a").root
    own.mkdir()
    (own / FILE).write_bytes(garbage.replace(b"PLACE", str(home).encode()))
    assert not is_trusted(home, own)
    trust(home, own)
    assert is_trusted(home, own)
    assert list(json.loads((own / FILE).read_bytes())) == [str(home)]


def test_what_cannot_be_read_cannot_be_trusted(tmp_path: Path) -> None:
    own, home = tmp_path / "own", a_home(tmp_path / "a").root
    (home / "agentsh.toml").unlink()
    with pytest.raises(UsageProblem):
        trust(home, own)
    own.mkdir()
    (own / FILE).write_text(json.dumps({str(home): ""}))
    assert not is_trusted(home, own)


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("a file")
    with pytest.raises(UsageProblem, match="cannot be written"):
        trust(a_home(tmp_path / "a").root, tmp_path / "own")
