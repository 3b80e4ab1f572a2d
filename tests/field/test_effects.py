"""Field reports E: what a crash leaves of a call with effects. A real process dies at each of the five points."""

import re
from collections.abc import Callable

import pytest

from agentsh.testing.server import ScriptedServer, call, hang, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Done, Shell, of_type, stop

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]
DIES = "kill -9 $PPID"
"""Run by a child of agentsh without a sandbox: its parent is gone at once."""


def configure(shell: Shell, *, hook: str = "") -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    text = '[sandbox]\nkind = "none"\n'
    if hook:
        text += f'[hooks.h]\ncommand = ["/bin/sh", "-c", "{hook}"]\nevents = ["before_tool"]\n'
    (shell.home / "agentsh.toml").write_text(text)


def runs(shell: Shell) -> int:
    """Return how often the command has had its effect."""
    count = shell.workspace() / "count"
    return len(count.read_text().split()) if count.exists() else 0


def dies(shell: Shell, serve: Serve, point: str) -> None:
    """Run a session whose process is killed at a point."""
    effect = "echo x >> count"
    command = {"during": f"{effect}; {DIES}; sleep 30", "after effect": f"{effect}; {DIES}"}.get(point, effect)
    server = serve(reply("I begin.", calls=[call("shell", {"command": command})]), hang("…"))
    configure(shell, hook=DIES if point == "before intent" else "")
    if point == "after result":
        process = shell.start("new", "go", "-p", "--mode", "yolo", "--empty")
        server.wait_for_requests(2, 60)
        stop(process)
        return
    assert shell.run("new", "go", "-p", "--mode", "yolo", "--empty").code == (0 if point == "after intent" else -9)


def cut_after_intent(shell: Shell) -> None:
    """Leave of the log what a death between intent and run would have left: nothing had happened."""
    log = shell.log()
    lines = log.read_bytes().splitlines(keepends=True)
    started = next(n for n, line in enumerate(lines) if b'"type":"tool_started"' in line)
    log.write_bytes(b"".join(lines[: started + 1]))
    (shell.workspace() / "count").unlink()


POINTS = {
    "before intent": ("denied", 0),
    "after intent": ("unknown", 0),
    "during": ("unknown", 1),
    "after effect": ("unknown", 1),
    "after result": ("ok", 1),
}


@pytest.mark.parametrize("point", POINTS)
def test_e103_e104_e106_told_once_and_never_run_again(shell: Shell, serve: Serve, point: str) -> None:
    status, times = POINTS[point]
    if point == "after intent":
        serve(reply("I begin.", calls=[call("shell", {"command": "echo x >> count"})]), reply("Done."))
        configure(shell)
        assert shell.run("new", "go", "-p", "--mode", "yolo", "--empty").code == 0
        cut_after_intent(shell)
    else:
        dies(shell, serve, point)
    assert runs(shell) == times
    configure(shell)
    server = serve(reply("I see."), reply("Yes."))
    done = shell.run("resume", "--last", "what happened?", "-p")
    assert done.code == 0, done.err
    assert runs(shell) == times, "nothing runs again by itself"
    (result,) = of_type(shell.events(), "tool_result")
    assert result["status"] == status
    (told,) = [m["content"] for m in server.requests[0].json["messages"] if m["role"] == "tool"]
    assert told == result["for_model"]
    if status == "unknown":
        assert "may have run" in told
        assert one_line(done, "1 call may have run")
    e105_is_told_once(shell, server)
    assert runs(shell) == times


def one_line(done: Done, words: str) -> bool:
    return len(re.findall(words, done.err)) == 1


def e105_is_told_once(shell: Shell, server: ScriptedServer) -> None:
    """E105: the repair is on disk, so that the next opening finds nothing to repair."""
    before = shell.log().read_bytes()
    assert shell.run("resume", "--last", "again", "-p").code == 0
    after = shell.log().read_bytes()
    assert after.startswith(before)
    assert b'"type":"recovered"' not in after[len(before) :]
    assert len(of_type(shell.events(), "tool_result")) == 1
    first, second = (request.json["messages"] for request in server.requests)
    assert second[: len(first)] == first
