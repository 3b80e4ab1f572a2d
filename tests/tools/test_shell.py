"""shell says how a command ended, what it said, and what was left out."""

from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
from agentsh.tools.textfile import MAX_SHOWN_BYTES
from tests.tools.conftest import Call


@pytest.mark.parametrize(
    ("command", "for_model", "for_user"),
    [
        ("echo hi", "exit 0\nhi", "echo hi · exit 0\nhi"),
        ("true", "exit 0\n(no output)", "true · exit 0"),
        ("echo no >&2; false", "exit 1\nno", "echo no >&2; false · exit 1\nno"),
        ("kill -SEGV $$", "killed by SIGSEGV\n(no output)", "kill -SEGV $$ · killed by SIGSEGV"),
        ("kill -40 $$", "killed by signal 40\n(no output)", "kill -40 $$ · killed by signal 40"),
        ("printf '\\e[31mred\\e[0m\\e]0;title\\a\\n'", "exit 0\nred", None),
        ("printf '10%%\\r50%%\\r100%%\\ndone\\r\\n'", "exit 0\n100%\ndone", None),
    ],
)
async def test_shell(call: Call, command: str, for_model: str, for_user: str | None) -> None:
    outcome = await call("shell", command=command)
    assert outcome.for_model == for_model
    assert for_user is None or outcome.for_user == for_user
    assert outcome.status == "ok"
    assert outcome.output is None


async def test_exit_code(call: Call) -> None:
    assert (await call("shell", command="exit 7")).exit == 7


async def test_time_limit(call: Call) -> None:
    outcome = await call("shell", command="echo before; sleep 300", timeout_s=0.3)
    assert outcome.status == "timed_out"
    assert outcome.exit is None
    assert outcome.for_model == "Killed at the time limit of 0.3 s. Output until then:\nbefore"
    assert outcome.for_user.split("\n")[0] == "echo before; sleep 300 · timed out after 0.3 s"


async def test_a_time_limit_that_makes_no_sense_is_bounded(call: Call) -> None:
    for timeout_s in (-1, 0, 10**9):
        assert (await call("shell", command="echo hi", timeout_s=timeout_s)).exit == 0


async def test_background_processes_are_told(call: Call) -> None:
    outcome = await call("shell", command="sleep 300 & echo hi")
    assert outcome.for_model == "exit 0\nhi\n[A process was still running in the background and was killed.]"
    assert outcome.for_user.startswith("sleep 300 & echo hi · exit 0, background process killed")


async def test_long_output(call: Call) -> None:
    outcome = await call("shell", command="seq 1 100000")
    assert len(outcome.for_model.encode()) < MAX_SHOWN_BYTES + 200
    assert "bytes left out" in outcome.for_model
    assert outcome.output == b"".join(b"%d\n" % i for i in range(1, 100_001))
    lines = outcome.for_user.split("\n")
    assert lines[-1] == "100000"
    assert len(lines) == 21


async def test_binary_output(call: Call) -> None:
    outcome = await call("shell", command="head -c 5000 /dev/zero")
    assert outcome.for_model.startswith("exit 0\n[binary output, 5,000 bytes")
    assert len(outcome.for_model) < 600
    assert outcome.output == bytes(5_000)


async def test_progress_is_clean(call: Call, progress: list[str]) -> None:
    await call("shell", command="printf '\\e[2Jone\\n'; sleep 0.2; printf 'a\\rtwo\\n'")
    assert "".join(progress) == "one\ntwo\n"


async def test_a_directory_that_was_left_is_not_kept(call: Call, root: Path) -> None:
    await call("shell", command="cd /; echo x > /dev/null")
    assert (await call("shell", command="pwd")).for_model == f"exit 0\n{root}"


async def test_what_cannot_run_says_why(call: Call) -> None:
    with pytest.raises(ToolFailed, match="too long"):
        await call("shell", command="echo " + "x" * 300_000)
    assert "command not found" in (await call("shell", command="no-such-command")).for_model


async def test_names_that_are_no_text(call: Call, root: Path) -> None:
    name = "caf\udce9"
    await call("write", path=name, content="x\n")
    assert (await call("shell", command=f"cat '{name}'")).for_model == "exit 0\nx"
    assert (await call("list")).for_model == f"{name}\t2"
    assert (await call("read", path=name)).for_model == "x\n"
