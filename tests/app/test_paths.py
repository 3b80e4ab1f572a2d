"""Which homes are found from where, and which of them may be written to."""

from pathlib import Path

import pytest

from agentsh.app.paths import Home, find_homes, prepare, user_home
from agentsh.app.trust import trust
from agentsh.base.errors import UsageProblem
from tests.app.rig import a_home


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "user")}


def test_the_environment_names_the_only_home(tmp_path: Path, env: dict[str, str]) -> None:
    a_home(tmp_path / "project")
    homes = find_homes(tmp_path / "project", {**env, "AGENTSH_HOME": str(tmp_path / "named")})
    assert homes.read == (Home(tmp_path / "named", True),)
    assert homes.write == homes.read[0]
    assert homes.note is None
    assert not (tmp_path / "named").exists()


def test_without_anything_it_is_the_users_own(tmp_path: Path, env: dict[str, str]) -> None:
    homes = find_homes(tmp_path, env)
    assert homes.read == (Home(tmp_path / "user" / ".agentsh", True),)
    assert homes.write.root == user_home(env)


def test_an_untrusted_home_is_read_and_another_one_written_and_that_is_said(
    tmp_path: Path, env: dict[str, str]
) -> None:
    found = a_home(tmp_path / "project").root
    below = found / "src" / "deep"
    below.mkdir(parents=True)
    homes = find_homes(below, env)
    assert homes.read == (Home(found, False), Home(user_home(env), True))
    assert homes.write == Home(user_home(env), True)
    assert homes.note is not None
    assert "agentsh trust" in homes.note


def test_a_trusted_home_is_written_until_its_configuration_changes(tmp_path: Path, env: dict[str, str]) -> None:
    found = a_home(tmp_path / "project", "model = 'a'").root
    trust(found, user_home(env))
    homes = find_homes(found, env)
    assert homes.write == Home(found, True)
    assert homes.note is None
    (found / "agentsh.toml").write_text("model = 'b'")
    assert find_homes(found, env).write == Home(user_home(env), True)
    assert not find_homes(found, env).read[0].trusted
    (found / "agentsh.toml").write_text("model = 'a'")
    assert find_homes(found, env).write == Home(found, True)


@pytest.mark.parametrize("below", ["", "src/deep"])
def test_the_walk_never_starts_inside_a_workspace(tmp_path: Path, env: dict[str, str], below: str) -> None:
    outer = a_home(tmp_path / "project")
    hostile = a_home(outer.workspaces / "20261129-k3v9qd").root / below
    hostile.mkdir(parents=True, exist_ok=True)
    assert find_homes(hostile, env).read == (Home(user_home(env), True),)


def test_a_directory_without_all_three_marks_is_no_home(tmp_path: Path, env: dict[str, str]) -> None:
    for missing in ("agentsh.toml", "sessions", "workspaces"):
        root = a_home(tmp_path / missing).root
        place = root / missing
        place.unlink() if place.is_file() else place.rmdir()
        assert len(find_homes(root, env).read) == 1


def test_prepare_makes_directories_for_their_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b", True)
    prepare(home)
    prepare(home)
    assert [p.stat().st_mode & 0o777 for p in (home.root, home.sessions, home.workspaces, home.blobs)] == [0o700] * 4
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageProblem, match="cannot be made"):
        prepare(Home(tmp_path / "file" / "home", True))
