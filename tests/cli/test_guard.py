"""Errors and output that nobody can read: one clear line, a code, no traceback."""

import errno
import io
import json
import sys

import pytest

from agentsh.app.choosing import NoModel
from agentsh.base.errors import SessionAmbiguous, UsageProblem
from agentsh.cli.guard import complain, guarded, print_json


def test_json_is_utf8_whatever_the_locale_and_half_characters_stay_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "latin-1"))
    value = {"cwd": "/home/ana/\udcff", "title": "修复 🙂"}
    print_json(value)
    sys.stdout.flush()
    assert json.loads(raw.getvalue()) == value
    assert "修复 🙂".encode() in raw.getvalue()
    assert rb"\udcff" in raw.getvalue()


def test_text_that_a_terminal_cannot_show_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))

    def body() -> int:
        print("修 \udcff a")
        return 0

    assert guarded(body) == 0
    assert raw.getvalue() == b"? ? a\n"


def test_errors_of_ours_are_one_line_and_their_code(capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> int:
        raise UsageProblem("a\n  line\x1b[2J", hint="a hint")

    assert guarded(body) == 2
    assert capsys.readouterr().err == "agentsh: a line (a hint)\n"


def test_what_there_is_to_choose_from_stands_below(capsys: pytest.CaptureFixture[str]) -> None:
    complain(SessionAmbiguous("two fit:", candidates=("a", "b")))
    assert capsys.readouterr().err == "agentsh: two fit:\n  a\n  b\n"
    complain(NoModel())
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_a_bug_is_one_line_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def body() -> int:
        raise ZeroDivisionError("x")

    monkeypatch.delenv("AGENTSH_DEBUG", raising=False)
    assert guarded(body) == 1
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("AGENTSH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        guarded(body)


def test_ctrl_c_is_130() -> None:
    def body() -> int:
        raise KeyboardInterrupt

    assert guarded(body) == 130


def test_a_file_of_ours_on_a_full_disk_is_not_taken_for_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")

    assert guarded(body) == 1
    assert "internal error" in capsys.readouterr().err
