"""What was allowed for a project is kept with the user, not in the project, and by its directory."""

import stat
from pathlib import Path

import pytest

from agentsh.app.grants import FILE, MAX_RULES, ProjectGrants, project_of
from agentsh.base.errors import UsageProblem


def test_it_is_kept_for_the_project(tmp_path: Path) -> None:
    own = tmp_path / "home" / ".agentsh"
    grants = ProjectGrants(own, "/p/one")
    assert grants.rules == ()
    grants.add(["shell(npm test *)"])
    ProjectGrants(own, "/p/two").add(["edit"])
    grants.add(["edit", "shell(npm test *)"])
    assert grants.rules == ProjectGrants(own, "/p/one").rules == ("shell(npm test *)", "edit")
    assert ProjectGrants(own, "/p/two").rules == ("edit",)
    assert stat.S_IMODE((own / FILE).stat().st_mode) == 0o600


def test_the_oldest_go_first(tmp_path: Path) -> None:
    grants = ProjectGrants(tmp_path, "/p")
    grants.add([f"shell(make {n})" for n in range(MAX_RULES + 5)])
    assert len(grants.rules) == MAX_RULES
    assert grants.rules[0] == "shell(make 5)"


@pytest.mark.parametrize("content", ["", "nonsense", "[1]", '{"/p": 5}', '{"/p": [1, "edit"]}'])
def test_a_file_that_does_not_read_allows_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert set(ProjectGrants(tmp_path, "/p").rules) <= {"edit"}


def test_a_damaged_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("something that was here")
    with pytest.raises(UsageProblem):
        ProjectGrants(tmp_path, "/p").add(["edit"])
    assert (tmp_path / FILE).read_text() == "something that was here"


def test_a_project_is_where_its_repository_begins(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "link").symlink_to(inner)
    assert project_of(str(inner)) == project_of(str(tmp_path / "link")) == str(tmp_path.resolve() / "repo")
