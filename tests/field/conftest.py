"""A user with a home of sessions that were made by hand, and a model that says what it is told."""

from pathlib import Path

import pytest

from tests.app.homes import add, sid
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell

__all__ = ["serve", "shell"]


class Case:
    """A session `sid(1)` of four turns in the home of a user."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        shell.home.parent.mkdir(exist_ok=True)
        self.log = add(shell.home, 1, 4)
        self.id = sid(1)
        self.data = self.log.read_bytes()

    @property
    def lines(self) -> list[bytes]:
        return self.data.splitlines(keepends=True)

    def quarantine(self) -> list[bytes]:
        place = self.log.parent / "quarantine"
        return [path.read_bytes() for path in sorted(place.iterdir())] if place.is_dir() else []

    def listed(self) -> str:
        """Return the line of `ls` for the session."""
        done = self.shell.run("ls", "--all")
        assert done.code == 0, done.err
        (row,) = [row for row in done.text.splitlines() if row.startswith(self.id)]
        return row

    def shown(self) -> str:
        """Return what `replay` shows."""
        done = self.shell.run("replay", self.id, "--format", "text")
        assert done.code == 0, done.err
        return done.text

    def put(self, data: bytes, name: str = "events.jsonl") -> Path:
        path = self.log.with_name(name)
        path.write_bytes(data)
        return path


@pytest.fixture
def case(shell: Shell) -> Case:
    return Case(shell)
