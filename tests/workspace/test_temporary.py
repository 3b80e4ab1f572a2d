"""What a session has in a place that everybody writes to: one directory, gone when nobody uses it any more."""

import os
from pathlib import Path

import pytest

from agentsh.workspace.temporary import left_in, make_tmp, remove_left, remove_tmp
from tests.log.test_depths import deepen

ID = "20260101-aaaaaa"


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def test_a_private_directory_goes_and_others_stay(tmp: Path) -> None:
    left = make_tmp(f"/a/{ID}")
    other = make_tmp("/a/20260101-bbbbbb")
    copy = make_tmp(f"/b/{ID}")  # of the same session, in another home
    again = make_tmp(f"/a/{ID}")
    assert not os.path.exists(left)
    assert os.stat(again).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(tmp)) == sorted(map(os.path.basename, (other, copy, again)))
    for path in (again, other, copy):
        remove_tmp(path)
    assert os.listdir(tmp) == []


def test_nothing_else_is_taken_for_one(tmp: Path) -> None:
    names = ["mine", "agentsh-tmp-", "agentsh-tmp-other", f"agentsh-tmp-{ID}-01234567-0123456", f"agentsh-tmp-{ID}"]
    for name in names:
        (tmp / name).mkdir()
        remove_tmp(str(tmp / name))
    (tmp / "kept").mkdir()
    made = make_tmp(f"/a/{ID}")
    os.rmdir(made)
    os.symlink(tmp / "kept", made)
    remove_left(f"/a/{ID}")
    assert sorted(os.listdir(tmp)) == sorted([*names, "kept", os.path.basename(made)])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to somebody else")
def test_what_somebody_else_has_made_is_left_alone() -> None:
    made = make_tmp(f"/a/{ID}")
    os.chown(made, 1234, 1234)
    remove_left(f"/a/{ID}")
    assert os.path.exists(made)


def test_a_link_in_it_is_not_followed_and_its_depth_does_not_matter(tmp: Path) -> None:
    (tmp / "kept").mkdir()
    (tmp / "kept" / "file").touch()
    made = Path(make_tmp(f"/a/{ID}"))
    (made / "link").symlink_to(tmp / "kept")
    deepen(made / "deep", 1_050, "d")
    remove_left(f"/a/{ID}")
    assert not made.exists()
    assert (tmp / "kept" / "file").exists()


def test_those_of_a_home_that_nobody_uses() -> None:
    made = {session: make_tmp(f"/a/{session}") for session in (ID, "20260101-bbbbbb", "20260101-cccccc")}
    make_tmp(f"/b/{ID}")
    free = {f"/a/{ID}", "/a/20260101-cccccc", f"/b/{ID}"}
    assert sorted(left_in("/a", free.__contains__)) == sorted([made[ID], made["20260101-cccccc"]])
