"""A prompt through stdin: read to its end, however slow, up to a limit, and never waited for in silence."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CODE = """
import sys
from agentsh.base.errors import UsageProblem
from agentsh.cli import piped
piped.NOTICE_S, piped.NOTICE_ALONE_S = 0.1, 0.3
try:
    print(repr(piped.piped_prompt(sys.argv[1] if len(sys.argv) > 1 else None)))
except UsageProblem as error:
    sys.exit(str(error))
"""
NOTICE = "agentsh: reading stdin…\n"


def start(*words: str, stdin: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def prompt(*words: str, stdin: Any) -> tuple[str, str]:
    out, err = start(*words, stdin=stdin).communicate(timeout=30)
    return out.rstrip("\n"), err


@pytest.mark.parametrize("words", [(), ("-",), ("explain:",)])
def test_nothing_comes_from_dev_null_or_a_closed_stdin(words: tuple[str, ...]) -> None:
    alone = repr(None) if words in ((), ("-",)) else repr(words[0])
    assert prompt(*words, stdin=subprocess.DEVNULL) == (alone, "")
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-c", CODE, *words],
        capture_output=True, encoding="utf-8", timeout=30, check=False,
    )  # fmt: skip
    assert closed.stdout.rstrip("\n") == alone


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes("修复\nzwei\n".encode())
    with file.open("rb") as stdin:
        assert prompt(stdin=stdin) == (repr("修复\nzwei"), "")
    with file.open("rb") as stdin:
        assert prompt("explain:", stdin=stdin) == (repr("explain:\n\n修复\nzwei"), "")


@pytest.mark.parametrize(
    ("words", "whole"), [(("explain:",), "explain:\n\none\ntwo"), ((), "one\ntwo"), (("-",), "one\ntwo")]
)
def test_a_slow_pipe_is_read_to_its_end_and_the_waiting_is_said(words: tuple[str, ...], whole: str) -> None:
    process = start(*words, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    assert process.stderr.readline() == NOTICE, "nobody has written yet"
    process.stdin.write("one\n")
    process.stdin.flush()
    process.stdin.write("two\n")
    out, err = process.communicate(timeout=30)
    assert (out.rstrip("\n"), err) == (repr(whole), "")


def test_a_quick_pipe_is_no_news() -> None:
    process = start("explain:", stdin=subprocess.PIPE)
    out, err = process.communicate("text", timeout=30)
    assert (out.rstrip("\n"), err) == (repr("explain:\n\ntext"), "")


def test_a_socket_is_read_too() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = start("explain:", stdin=theirs)
        theirs.close()
        ours.sendall(b"text")
        ours.shutdown(socket.SHUT_WR)
        assert process.communicate(timeout=30)[0].rstrip("\n") == repr("explain:\n\ntext")


@pytest.mark.parametrize("words", [(), ("explain:",)])
def test_too_much_is_refused_in_one_line(words: tuple[str, ...]) -> None:
    with open("/dev/zero", "rb") as stdin:
        out, err = prompt(*words, stdin=stdin)
    assert out == ""
    assert err.count("\n") == 1
    assert "20 MB" in err
