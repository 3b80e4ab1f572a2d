"""SIGINT, SIGTERM, SIGHUP and a second writer: the process group dies, the log says so, the lease is free."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, hang, reply
from tests.e2e.harness import Shell, of_type, stop, wait_for

Serve = Callable[..., ScriptedServer]


def alive(marker: str) -> list[int]:
    """Processes whose command line holds `marker`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marker in command and state != "Z":
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_command(shell: Shell, serve: Serve, number: int) -> None:
    sleep = f"sleep 4{os.getpid()}{number:02}"  # nobody else on this machine sleeps for so long
    serve(reply("Wait.", calls=[call("shell", {"command": f"({sleep})& setsid {sleep} & echo begun; {sleep}"})]))
    process = shell.start("new", "go", "-p", "--mode", "yolo")
    wait_for(lambda: shell.ids and shell.log().exists() and b'"begun' in shell.log().read_bytes())
    assert alive(sleep)
    code, _, err = stop(process, number)
    assert code == 130, err.decode()
    assert b"Traceback" not in err
    wait_for(lambda: not alive(sleep), 30)
    events = shell.events()
    (result,) = of_type(events, "tool_result")
    assert result["status"] == "interrupted"
    assert "begun" in result["for_model"]
    assert of_type(events, "turn_finished")[0]["reason"] == "interrupted"
    assert '"state": "idle"' in shell.run("ls", "--json").text


def test_a_signal_while_the_model_streams(shell: Shell, serve: Serve) -> None:
    server = serve(hang("so far "), reply("again"))
    process = shell.start("new", "go", "-p")
    server.wait_for_requests(1, 20)
    wait_for(lambda: b"partial_message" in shell.log().read_bytes())
    code, _, err = stop(process, signal.SIGINT)
    assert code == 130, err.decode()
    events = shell.events()
    assert of_type(events, "agent_message")[0]["finish"] == "interrupted"
    assert of_type(events, "agent_message")[0]["text"] == "so far "
    server.wait_for_abandoned(1, 5)
    assert shell.run("resume", "--last", "go on", "-p").text == "again\n"


def test_a_second_writer_is_refused_and_told_who_has_it(shell: Shell, serve: Serve) -> None:
    server = serve(hang("busy"))
    process = shell.start("new", "go", "-p")
    server.wait_for_requests(1, 20)
    before = shell.log().read_bytes()
    done = shell.run("resume", "--last", "me too", "-p")
    assert done.code == 4
    assert str(process.pid) in done.err
    assert shell.log().read_bytes().startswith(before)
    assert b"me too" not in shell.log().read_bytes()
    assert f'"pid": {process.pid}' in shell.run("ls", "--json").text
    stop(process)
    assert shell.run("ls", "--json").text.count('"state": "crashed"') == 1
    server.extend(reply("it is free at once"))
    assert shell.run("resume", "--last", "now", "-p").text == "it is free at once\n"


def test_a_reader_that_leaves_ends_the_run_like_a_signal(shell: Shell, serve: Serve) -> None:
    serve(*(reply(calls=[call("list", {"path": "."})]) for _ in range(50)), raise_failures=False)
    process = shell.start("new", "go", "--json")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == 130
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    finished = of_type(shell.events(), "turn_finished")
    assert [f["reason"] for f in finished] in ([], ["interrupted"])
    assert '"state": "idle"' in shell.run("ls", "--json").text


def test_what_a_killed_process_left_running_is_reaped_at_the_next_opening(shell: Shell, serve: Serve) -> None:
    sleep = f"sleep 5{os.getpid()}"
    serve(reply(calls=[call("shell", {"command": f"echo begun; {sleep}"})]), reply("I see."))
    process = shell.start("new", "go", "-p", "--mode", "yolo")
    wait_for(lambda: alive(sleep))
    stop(process, signal.SIGKILL)
    assert shell.run("resume", "--last", "go on", "-p").code == 0
    assert not alive(sleep)
    assert of_type(shell.events(), "tool_result")[0]["status"] == "unknown"


def test_an_interruption_while_the_program_loads_leaves_no_traceback() -> None:
    """What comes before `main`, the interpreter's own start, is not ours to guard."""
    code = (
        "import os, signal, sys\n"
        "from agentsh.cli import entry\n"
        "entry._fill_closed_streams = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "entry.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")  # which a shell shows as 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_interruption_during_the_copy_leaves_nothing(shell: Shell, serve: Serve, number: int) -> None:
    serve()
    for n in range(6_000):
        (shell.cwd / f"{n}.txt").write_text("x")
    process = shell.start("new", "go", "-p")
    workspaces = shell.home / "workspaces"
    wait_for(lambda: workspaces.is_dir() and any(workspaces.iterdir()))
    code, _, err = stop(process, number)
    assert code == 130, err.decode()
    assert b"Traceback" not in err
    assert list(workspaces.iterdir()) == []
    assert shell.ids == []
