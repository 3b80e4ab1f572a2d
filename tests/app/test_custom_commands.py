"""Commands that users write: where they are found, what is passed over, what their head says."""

import os
from pathlib import Path

from agentsh.app.custom_commands import MAX_BYTES, custom_commands, directories
from agentsh.app.paths import Home, Homes


def written(directory: Path, name: str, text: str | bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def test_the_users_win_over_those_of_a_trusted_project_and_an_untrusted_one_has_none(tmp_path: Path) -> None:
    own, project = tmp_path / "user" / ".agentsh", tmp_path / "project"
    written(own / "commands", "review.md", "Mine.")
    written(project / ".agentsh" / "commands", "review.md", "Theirs.")
    written(project / ".agentsh" / "commands", "deploy.md", "Deploy.")
    env = {"HOME": str(tmp_path / "user")}
    trusted = Homes((), Home(project, trusted=True))
    found = custom_commands(directories(trusted, env))
    assert {name: c.text for name, c in found.items()} == {"review": "Mine.", "deploy": "Deploy."}
    untrusted = Homes((Home(project, trusted=False),), Home(own, trusted=True))
    assert [*custom_commands(directories(untrusted, env))] == ["review"]


def test_a_head_describes_and_is_not_sent(tmp_path: Path) -> None:
    written(tmp_path, "a.md", '---\ndescription: "Look at it"\nargument-hint: FILE\nodd\n---\n# Look\n$1\n')
    written(tmp_path, "b.md", "\ufeff# Just do\n\nit")
    written(tmp_path, "c.md", "---\n---\nx")
    found = custom_commands([(tmp_path, True)])
    assert found["a"][1:4] == ("FILE", "Look at it", "# Look\n$1\n")
    assert found["b"].summary == "Just do"
    assert found["c"].text == "x"


def test_what_is_no_command_is_passed_over(tmp_path: Path) -> None:
    project, secret = tmp_path / "commands", tmp_path / "secret"
    secret.write_text("a key")
    for name, content in {
        "UPPER.md": b"x", "a b.md": b"x", "x.txt": b"x", "../up.md": b"x", "long.md": b"x" * (MAX_BYTES + 1),
        "binary.md": b"\xff\xfe",
    }.items():  # fmt: skip
        written(project, name, content)
    (project / "linked.md").symlink_to(secret)
    (project / "dir.md").mkdir()
    os.mkfifo(project / "pipe.md")
    written(project, "steers.md", "a\x1b[2Jb")
    assert {n: c.text for n, c in custom_commands([(project, False)]).items()} == {"steers": "ab"}
    assert "linked" in custom_commands([(project, True)]), "in one's own directory a link is one's own"
    (tmp_path / "through").symlink_to(project)
    assert custom_commands([(tmp_path / "through", False)]) == {}
    assert custom_commands([(tmp_path / "nowhere", True)]) == {}
