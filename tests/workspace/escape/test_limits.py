"""What is out of hand comes to an end: processes, memory, files, output, time. In every sandbox, and without one."""

import os
import time

import pytest

from agentsh.workspace.sandbox import probe
from agentsh.workspace.sandbox_port import Limits
from tests.workspace.escape.test_escapes import WAYS, Make, world, worlds
from tests.workspace.escape.world import Kind

__all__ = ["world", "worlds"]  # fixtures

SMALL = Limits(cpu_s=1, memory_mb=256, file_mb=64, processes=150)
ALL = [*WAYS, pytest.param("none", False, id="none")]
# It doubles ten times and then waits: enough to be stopped, too little to hurt the machine if it is not.
FORK_BOMB = "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 5; }; f 9"


@pytest.mark.parametrize(("kind", "as_nobody"), ALL)
async def test_fork_bomb(world: Make, kind: Kind, as_nobody: bool) -> None:
    workspace = world(as_nobody).workspace(kind, SMALL)
    began = time.monotonic()
    result = await workspace.run(FORK_BOMB, timeout_s=20, max_bytes=2_000)
    assert time.monotonic() - began < 15
    # Root is stopped by our own count; others the system refuses.
    assert result.stopped or "Resource temporarily unavailable" in result.output
    if kind != "none" or os.geteuid() == 0:
        assert await workspace.kill_strays() == 0


@pytest.mark.parametrize(("kind", "as_nobody"), ALL)
async def test_file_of_10_gb(world: Make, kind: Kind, as_nobody: bool) -> None:
    here = world(as_nobody)
    await here.workspace(kind, SMALL).run("head -c 10G /dev/zero > big; rm -f big2", timeout_s=10, max_bytes=2_000)
    size = (here.root / "big").stat().st_size
    (here.root / "big").unlink()
    assert size <= 64 << 20
    await here.workspace(kind, SMALL).run("truncate -s 10G big", timeout_s=10, max_bytes=2_000)
    assert (here.root / "big").stat().st_size == 0
    (here.root / "big").unlink()


@pytest.mark.parametrize(("kind", "as_nobody"), ALL)
async def test_memory(world: Make, kind: Kind, as_nobody: bool) -> None:
    line = "python3 -c \"b = bytearray(2 << 30); print('had it')\""
    result = await world(as_nobody).workspace(kind, SMALL).run(line, timeout_s=10, max_bytes=2_000)
    assert "had it" not in result.output
    assert "MemoryError" in result.output


@pytest.mark.parametrize(("kind", "as_nobody"), [WAYS[0], WAYS[2]])
async def test_cpu_time(world: Make, kind: Kind, as_nobody: bool) -> None:
    line = "python3 -c 'while True: pass'; echo after"
    result = await world(as_nobody).workspace(kind, SMALL).run(line, timeout_s=15, max_bytes=2_000)
    assert "after" in result.output
    assert not result.timed_out


@pytest.mark.parametrize(("kind", "as_nobody"), ALL)
async def test_limits_cannot_be_raised(world: Make, kind: Kind, as_nobody: bool) -> None:
    if kind == "none" and os.geteuid() == 0:
        return  # root may raise its limits; only a sandbox takes that from it
    line = "ulimit -f unlimited; ulimit -t unlimited; ulimit -Hf; ulimit -Ht"
    result = await world(as_nobody).workspace(kind, SMALL).run(line, timeout_s=10, max_bytes=2_000)
    assert "unlimited" not in result.output.split("\n", 2)[-1]
    assert result.output.endswith("65536\n1\n")


@pytest.mark.parametrize(("kind", "as_nobody"), ALL)
async def test_yes_ends_at_its_time(world: Make, kind: Kind, as_nobody: bool) -> None:
    began = time.monotonic()
    result = await world(as_nobody).workspace(kind).run("yes", timeout_s=0.3, max_bytes=2_000)
    assert result.timed_out
    assert time.monotonic() - began < 3.3
    assert len(result.output) < 3_000


@pytest.mark.parametrize(("kind", "as_nobody"), ALL)
@pytest.mark.parametrize(
    "line", ["sleep 300 & echo", "setsid sleep 300 & echo", "cat", "(setsid sleep 300 &) ; echo"]
)
async def test_what_would_hang_comes_back(world: Make, kind: Kind, as_nobody: bool, line: str) -> None:
    workspace = world(as_nobody).workspace(kind)
    began = time.monotonic()
    result = await workspace.run(line, timeout_s=20, max_bytes=2_000)
    assert time.monotonic() - began < 3
    assert not result.timed_out
    assert result.left_running == ("sleep" in line)
    assert await workspace.kill_strays() == 0


async def test_output_of_1_gb_is_cut(world: Make) -> None:
    kind: Kind = "bwrap" if probe("bwrap").works else "none"
    result = (
        await world(False).workspace(kind).run("head -c 1G /dev/zero | tr '\\0' x", timeout_s=60, max_bytes=2_000)
    )
    assert result.total_bytes == 1 << 30
    assert len(result.output) < 3_000
    assert result.whole is None


@pytest.mark.parametrize(("kind", "as_nobody"), ALL)
async def test_what_work_needs_is_there(world: Make, kind: Kind, as_nobody: bool) -> None:
    """A sandbox that is in the way gets switched off."""
    here = world(as_nobody)
    lines = (
        "echo a > a && cat a && mkdir -p d/e && mv a d/e/b && ln -s d/e/b l && cat l && chmod 700 d && rm -r d l",
        'git -c user.name=x -c user.email=y -c safe.directory="*" commit -q --allow-empty -m x && git log --oneline',
        "python3 -c 'import tempfile, subprocess; print(tempfile.mkstemp()); subprocess.run([\"true\"], check=True)'",
        "f=$(mktemp) && echo x > $f && cat $f && rm $f",
        "echo x > /dev/null; head -c 4 /dev/urandom | wc -c",
        "sh -c 'exit 0' | cat; (echo a; echo b) | sort | uniq; nice -n 3 true; touch -d 2020-01-01 t && rm t",
    )
    for line in lines:
        result = await here.workspace(kind).run(f"set -e -o pipefail; {line}", timeout_s=20, max_bytes=4_000)
        assert result.exit == 0, f"{line}: {result.output}"


async def test_loopback_inside_and_temporary_files_stay(world: Make) -> None:
    if not probe("bwrap").works:
        pytest.skip("no bubblewrap")
    workspace = world(False).workspace("bwrap")
    line = (
        "python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "c = socket.create_connection(s.getsockname()); print('met')\"; echo kept > /tmp/kept"
    )
    assert (await workspace.run(line, timeout_s=20, max_bytes=2_000)).output == "met\n"
    assert (await workspace.run("cat /tmp/kept", timeout_s=20, max_bytes=2_000)).output == "kept\n"
