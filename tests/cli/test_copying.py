"""The bar of a copy: past one second, on a terminal, and gone at the end."""

import io
import os

import pytest

from agentsh.cli import copying
from agentsh.cli.copying import CopyProgress


class Clock:
    """Time that a test sets."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(copying, "time", made := Clock())
    return made


def read(fd: int) -> str:
    os.set_blocking(fd, False)
    try:
        return os.read(fd, 10_000).decode()
    except BlockingIOError:
        return ""


def test_it_comes_after_a_second_and_goes_with_the_last_file(clock: Clock) -> None:
    leader, follower = os.openpty()
    with open(follower, "w", encoding="utf-8") as terminal:
        with CopyProgress(terminal, "copying") as progress:
            progress.show(1, 4, 1_000_000)
            clock.now = 0.9
            progress.show(2, 4, 2_000_000)
            assert read(leader) == ""
            clock.now = 1.1
            progress.show(2, 4, 2_000_000)
            assert read(leader) == "\rcopying  ██████████            2 of 4 files, 2 MB"
            progress.show(4, 4, 3_000_000)
            assert read(leader) == "\r\x1b[2K"
        assert read(leader) == ""
        with CopyProgress(terminal, "copying") as progress:
            clock.now = 9
            progress.show(1, 4, 0)
        assert read(leader).endswith("\r\x1b[2K"), "whatever ends it"
    os.close(leader)


def test_nothing_of_it_goes_into_a_file(clock: Clock) -> None:
    file = io.StringIO()
    with CopyProgress(file, "copying") as progress:
        clock.now = 9
        progress.show(1, 4, 0)
    assert file.getvalue() == ""
