"""A command always comes back, with bounded memory, and leaves no process, no descriptor and no zombie behind."""

import asyncio
import gc
import os
import resource
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
from agentsh.ports.workspace import ProcessResult
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.strays import AVAILABLE
from tests.workspace.conftest import SESSION

LINUX = pytest.mark.skipif(not AVAILABLE, reason="strays are found in /proc")
Run = Callable[..., Awaitable[ProcessResult]]


@pytest.fixture
def run(workspace: LocalWorkspace) -> Run:
    async def run(command: str, *, timeout_s: float = 20, max_bytes: int = 10_000, **more: object) -> ProcessResult:
        return await workspace.run(command, timeout_s=timeout_s, max_bytes=max_bytes, **more)  # type: ignore[arg-type]

    return run


@pytest.fixture(autouse=True)
def nothing_leaks(workspace: LocalWorkspace) -> Iterator[None]:
    """Descriptors and children are as before; the workspace fixture looks for processes."""
    before, children = _descriptors(), _children()
    yield
    gc.collect()
    assert _descriptors() == before
    assert _children() <= children, "those of other tests, a server for instance, may go on"


def _children() -> set[str]:
    tasks = Path("/proc/self/task")
    return (
        {pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()} if AVAILABLE else set()
    )


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if AVAILABLE else 0


async def test_output_and_exit_code(run: Run) -> None:
    result = await run("echo out; echo err >&2; echo out2; exit 3")
    assert (result.exit, result.output) == (3, "out\nerr\nout2\n")
    assert result.total_bytes == len("out\nerr\nout2\n")
    assert result.whole is None
    assert not result.timed_out
    assert not result.left_running


async def test_it_starts_in_the_root_every_time(run: Run, root: Path) -> None:
    assert (await run("pwd; cd /; pwd")).output == f"{root}\n/\n"
    assert (await run("pwd")).output == f"{root}\n"


async def test_stdin_is_empty(run: Run) -> None:
    result = await run("cat; read x; echo $?; test -t 0; echo $?", timeout_s=10)
    assert (result.output, result.timed_out) == ("1\n1\n", False)


async def test_no_terminal_can_be_reached(run: Run) -> None:
    assert (await run("(echo x >/dev/tty) 2>/dev/null || echo none")).output == "none\n"


async def test_environment_is_scrubbed(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "OPENAI_API_KEY": "sk-1",
        "GITHUB_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "s",
        "LC_TOKEN": "l",
        "DB_PASSWORD": "p",
        "MY_CREDENTIALS": "c",
        "UNKNOWN": "u",
        "LD_PRELOAD": "",
        "https_proxy": "http://user:word@proxy.example",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    pairs = dict(line.split("=", 1) for line in (await run("env")).output.splitlines())
    assert not set(secrets) & set(pairs)
    assert pairs["PATH"] == os.environ["PATH"]
    assert pairs["LC_TIME"] == "C"
    assert pairs["http_proxy"] == "http://proxy.example:3128"
    assert pairs["TERM"] == "dumb"
    assert pairs["PAGER"] == pairs["GIT_PAGER"] == "cat"
    assert pairs["GIT_TERMINAL_PROMPT"] == "0"
    assert pairs["GIT_EDITOR"] == "true"
    assert pairs["GIT_CEILING_DIRECTORIES"] == str(root.parent)
    assert pairs["AGENTSH_SESSION"] == SESSION
    assert "PYTHONDONTWRITEBYTECODE" not in pairs


async def test_git_does_not_look_above_the_workspace(run: Run, root: Path) -> None:
    (root.parent / ".git").mkdir()
    result = await run("git init -q .. && git rev-parse --show-toplevel")
    assert result.exit == 128
    own = LocalWorkspace(root, session=SESSION, in_place=True)
    result = await own.run("git rev-parse --show-toplevel", timeout_s=20, max_bytes=1000)
    assert result.output.strip() == str(root.parent)


@LINUX
@pytest.mark.parametrize(
    "command",
    [
        "(sleep 300)& echo hi",
        "setsid sleep 300 & echo hi",
        "setsid sleep 300 >/dev/null 2>&1 & echo hi",
        "nohup sleep 300 >/dev/null 2>&1 & echo hi",
        "( (sleep 300 &) & ); echo hi",
        "setsid sh -c 'setsid sh -c \"sleep 300 & sleep 301\" &' & echo hi",
        "(trap '' TERM HUP INT; sleep 300)& echo hi",
        "env AGENTSH_SESSION=other sleep 300 & echo hi",
    ],
)
async def test_descendants_neither_hold_it_up_nor_survive(run: Run, command: str) -> None:
    start_s = time.monotonic()
    result = await run(command, timeout_s=60)
    assert time.monotonic() - start_s < 30
    assert (result.exit, result.output, result.timed_out) == (0, "hi\n", False)
    assert result.left_running


async def test_a_talking_descendant_is_not_listened_to_for_ever(run: Run) -> None:
    result = await run("(while :; do echo x; sleep 0.02; done)& echo hi", timeout_s=60)
    assert result.left_running
    assert "hi\n" in result.output


async def test_what_a_descendant_says_at_once_is_kept(run: Run) -> None:
    result = await run("echo hi > >(sleep 0.03; cat; echo more)")
    assert result.output == "hi\nmore\n"


@LINUX
async def test_runs_beside_each_other_do_not_kill_each_other(run: Run) -> None:
    results = await asyncio.gather(*(run(f"sleep 0.{i}; echo {i}") for i in range(1, 6)))
    assert [(r.output, r.left_running) for r in results] == [(f"{i}\n", False) for i in range(1, 6)]


@pytest.mark.parametrize(
    "command",
    [
        "sleep 300",
        "yes",
        "sleep 300 | sleep 301",
        "trap '' TERM; sleep 300",
        "setsid sleep 300; true",
        "kill -STOP $$",
    ],
)
async def test_time_limit(run: Run, command: str) -> None:
    start_s = time.monotonic()
    result = await run(f"echo before; {command}", timeout_s=0.3)
    assert time.monotonic() - start_s < 30
    assert result.timed_out
    assert result.exit is None
    assert result.output.startswith("before\n")
    assert result.duration_ms >= 300


async def test_the_grace_lets_it_clean_up(run: Run, root: Path) -> None:
    await run("trap 'echo bye; touch clean; exit' TERM; while :; do sleep 0.01; done", timeout_s=0.3)
    assert (root / "clean").exists()


@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.3])
async def test_cancellation_kills_everything_first(run: Run, delay_s: float) -> None:
    command = "sleep 300 & setsid sleep 300 & (trap '' TERM; sleep 300) & sleep 300"
    task = asyncio.ensure_future(run(command, timeout_s=60))
    await asyncio.sleep(delay_s)
    start_s = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start_s < 30


async def test_cancellation_cannot_be_hurried(run: Run) -> None:
    task = asyncio.ensure_future(run("trap '' TERM; sleep 300", timeout_s=60))
    await asyncio.sleep(0.2)
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.001)
    assert task.cancelled()


async def test_cancellation_while_a_descendant_is_listened_to(run: Run) -> None:
    task = asyncio.ensure_future(run("(while :; do echo x; sleep 0.02; done)& echo hi", timeout_s=60))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [("kill -KILL $$", -9), ("kill -SEGV $$", -11), ("no-such-command", 127), ("sh -c 'kill -9 $$'; exit $?", 137)],
)
async def test_exits(run: Run, command: str, exit_code: int) -> None:
    assert (await run(command)).exit == exit_code


async def test_an_empty_command_is_nothing(run: Run) -> None:
    result = await run("")
    assert (result.exit, result.output) == (0, "")


@pytest.mark.parametrize(
    ("command", "why"),
    [("echo a\0b", "character"), ("echo \ud800", "character"), ("echo " + "x" * 3_000_000, "too long")],
)
async def test_what_cannot_be_started_says_why(run: Run, command: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        await run(command)


async def test_a_workspace_that_is_gone(run: Run, root: Path) -> None:
    os.rmdir(root)
    with pytest.raises(ToolFailed, match="workspace directory is gone"):
        await run("echo hi")


async def test_the_middle_is_left_out(run: Run) -> None:
    result = await run("seq 1 100000", max_bytes=300)
    head, _, tail = result.output.partition("[… ")
    assert head.startswith("1\n2\n")
    assert tail.endswith("\n99999\n100000\n")
    left_out = int(tail.split(" ")[0].replace(",", ""))
    assert left_out == result.total_bytes - 300
    assert 190 <= len(head) <= 210
    assert result.whole == b"".join(b"%d\n" % i for i in range(1, 100_001))


async def test_a_cut_splits_no_character(run: Run) -> None:
    for size in range(90, 98):
        result = await run("for i in {1..200}; do printf '€𝄞'; done", max_bytes=size)
        assert "\ufffd" not in result.output
        assert len(result.output.encode()) < size + 60


async def test_a_gigabyte_stays_out_of_memory(run: Run) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await run("head -c 300000000 /dev/zero | tr '\\0' 'a'; echo end", timeout_s=60, max_bytes=20_000)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.total_bytes == 300_000_004
    assert result.output.endswith("aend\n")
    assert result.whole is None
    assert len(result.output) < 21_000
    assert grown_kib < 100_000


async def test_binary_output_becomes_a_note(run: Run) -> None:
    result = await run("printf '\\x89PNG\\r\\n\\x1a\\n\\0\\0\\0\\rIHDR'; head -c 500 /dev/zero")
    assert result.output.startswith("[binary output, 516 bytes")
    assert "89 50 4e 47" in result.output
    assert "\0" not in result.output
    assert len(result.output) < 500
    assert result.whole is not None
    assert result.whole.startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["grüße", "日本語", "\x1b[31mred\x1b[0m", "a\tb", b"caf\xe9"])
async def test_text_is_not_taken_for_binary(run: Run, root: Path, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    (root / "t").write_bytes(data + b" and more text of an ordinary kind\n")
    assert "binary" not in (await run("cat t")).output


async def test_output_is_streamed(run: Run, root: Path) -> None:
    seen: list[str] = []

    def take(text: str) -> None:
        seen.append(text)
        (root / "seen").touch()

    result = await run("echo one; until [ -e seen ]; do sleep 0.02; done; echo two", timeout_s=60, on_output=take)
    assert not result.timed_out
    assert "".join(seen) == "one\ntwo\n"


async def test_a_stream_splits_no_character(run: Run) -> None:
    seen: list[str] = []
    command = "for b in '\\xe2' '\\x82' '\\xac' '\\xf0\\x9d' '\\x84\\x9e'; do printf $b; sleep 0.1; done"
    result = await run(command, on_output=seen.append)
    assert "".join(seen) == "€𝄞"
    assert result.output == "€𝄞"


async def test_a_flood_is_shown_in_parts(run: Run) -> None:
    seen: list[str] = []
    result = await run("yes 0123456789abcde | head -c 50000000", on_output=seen.append)
    assert result.total_bytes == 50_000_000
    assert sum(map(len, seen)) < 5_000_000
    assert all(len(text) < 70_000 for text in seen)
    assert seen[-1].endswith("0123456789abcde\n")


async def test_binary_output_is_not_streamed(run: Run) -> None:
    seen: list[str] = []
    await run("head -c 1000 /dev/zero; sleep 0.2; head -c 1000 /dev/zero", on_output=seen.append)
    assert seen == ["[binary output]\n"]


def test_it_works_in_any_thread(workspace: LocalWorkspace) -> None:
    results: list[str] = []

    def work() -> None:
        results.append(asyncio.run(workspace.run("echo hi", timeout_s=20, max_bytes=100)).output)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ["hi\n"]


async def test_it_works_without_pidfd(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(pid: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "pidfd_open", missing, raising=False)
    assert (await run("echo hi; exit 4")).exit == 4
    assert (await run("sleep 300", timeout_s=0.2)).timed_out


@LINUX
async def test_strays_of_a_dead_process_are_found(workspace: LocalWorkspace, root: Path) -> None:
    """SIGKILL for agentsh itself: its commands live on until the next start looks for them."""
    script = (
        "import asyncio, sys; from pathlib import Path; from agentsh.workspace.local import LocalWorkspace\n"
        f"w = LocalWorkspace(Path(sys.argv[1]), session={SESSION!r})\n"
        "asyncio.run(w.run('sleep 300 & setsid sleep 300 & sleep 0.2; echo; sleep 300', timeout_s=60, max_bytes=10,\n"
        "    on_output=lambda text: print('up', flush=True)))\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(root), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    process.kill()
    await process.communicate()
    assert await workspace.kill_strays() >= 3
    assert await workspace.kill_strays() == 0
