"""A command that nothing holds begins only when it is known to the process that ends it with agentsh (L184)."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentsh.workspace.environ import PROCESS_MARK
from agentsh.workspace.local import LocalWorkspace
from tests.workspace.conftest import SESSION

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found in /proc")

# Dies of SIGKILL just before or just after its watcher was told of the command, which has not begun then.
DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.watcher import Watcher

class Dying(Watcher):
    def began(self, group):
        Path("group").write_text(str(group))
        if sys.argv[1] == "told":
            super().began(group)
        os.kill(os.getpid(), signal.SIGKILL)

workspace = LocalWorkspace(Path("."), session=sys.argv[2], watched=True)
workspace._watcher = Dying()
asyncio.run(workspace.run("touch ran; exec env -i sleep 77", timeout_s=60, max_bytes=100))
"""


def gone(pid: int) -> bool:
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


@pytest.mark.parametrize("when", ["before it was told", "told"])
def test_l184_killed_between_the_start_and_the_watcher_a_command_never_begins(tmp_path: Path, when: str) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, when, SESSION], cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    group = int((tmp_path / "group").read_text())
    until = time.monotonic() + 30
    while not gone(group) and time.monotonic() < until:
        time.sleep(0.01)
    assert gone(group)
    assert [path.name for path in tmp_path.iterdir()] == ["group"]


async def test_a_watcher_that_somebody_ended_is_followed_by_one_that_knows_of_all(tmp_path: Path) -> None:
    """The next command starts it; what began before is ended by it too."""
    workspace = LocalWorkspace(tmp_path, session=SESSION, watched=True)
    watcher = workspace._watcher
    assert watcher is not None
    mark = f"{PROCESS_MARK}={watcher.value}"
    long = subprocess.Popen(["sleep", "78"], start_new_session=True)  # noqa: ASYNC220 - a process, no answer
    try:
        watcher.began(long.pid)
        assert watcher._process is not None
        watcher._process.kill()
        watcher._process.wait()
        assert (await workspace.run("cat; echo on", timeout_s=20, max_bytes=100)).output == "on\n"
        second = watcher._process
        assert second is not None
        assert mark in str(second.args)
        assert second.stdin is not None
        second.stdin.close()  # as when agentsh is killed
        second.wait(20)
        assert long.wait(20) == -signal.SIGKILL
    finally:
        long.kill()
        long.wait()
        watcher._process = None
        await workspace.close()
