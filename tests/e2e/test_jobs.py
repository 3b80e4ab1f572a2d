"""Background jobs of a real session: started, watched, told of, and gone with it, however it ends (L, E103)."""

import json
import os
import re
import signal
import time
from collections.abc import Callable

import pytest

from agentsh.testing.server import Gate, ScriptedServer, Text, call, hang, reply
from agentsh.workspace.sandbox import probe
from tests.e2e.harness import COMMAND, Shell, of_type, stop, wait_for
from tests.e2e.test_signals import alive
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
KINDS = ["none", *(kind for kind in ("bwrap", "landlock") if probe(kind).works)]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, shell: Shell) -> str:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(f'[sandbox]\nkind = "{request.param}"\n')
    return str(request.param)


def shell_call(command: str, **more: object) -> object:
    return reply(calls=[call("shell", {"command": command, **more})])


def job_call(action: str, **more: object) -> object:
    return reply(calls=[call("job", {"action": action, **more})])


def results(shell: Shell) -> list[str]:
    return [result["for_model"] for result in of_type(shell.events(), "tool_result")]


def states(shell: Shell) -> list[str]:
    return [job["state"] for job in of_type(shell.events(), "job_changed")]


def test_a_job_is_started_looked_at_waited_for_and_told(shell: Shell, serve: Serve, kind: str) -> None:
    serve(
        shell_call("mkdir sub; cd sub; export WHO=me"),
        shell_call("echo begins as $WHO in ${PWD##*/}; until [ -e go ]; do sleep 0.05; done; echo ends; exit 3",
                   background=True),
        job_call("list"),
        shell_call("touch go; echo meanwhile"),
        job_call("wait", id="1", timeout_s=20),
        job_call("output", id="1"),
        reply("done"),
    )  # fmt: skip
    done = shell.run("new", "go", "-p", "--mode", "yolo")
    assert (done.code, done.text) == (0, "done\n"), done.err
    said = results(shell)
    assert said[1].startswith("Started as job 1.\nJob 1 has been running for ")
    assert said[1].endswith("\nbegins as me in sub")
    assert "\techo begins as" in said[2]
    told = "\n".join(said[3:5])
    assert "ended with exit 3" in told or "has ended with exit 3" in told
    assert "ends" in told
    assert states(shell) == ["running", "ended"]
    ended = of_type(shell.events(), "job_changed")[1]
    assert (ended["exit"], ended["output"]) == (3, "begins as me in sub\nends\n")
    assert (shell.home / "sessions" / shell.ids[0] / "jobs" / "1.out").stat().st_mode & 0o777 == 0o600


def test_the_end_of_a_job_is_told_once(shell: Shell, serve: Serve) -> None:
    """With the next result; where there is none any more, with the next message."""
    server = serve(
        shell_call("until [ -e go ]; do sleep 0.05; done; echo built; touch over", background=True),
        shell_call("touch go; until [ -e over ]; do sleep 0.05; done; sleep 1"),
        reply(calls=[call("list", {"path": "."})]),
        reply(calls=[call("list", {"path": "."})]),
        reply("done"),
        reply("yes"),
    )
    assert shell.run("new", "go", "-p", "--mode", "yolo").code == 0
    assert shell.run("resume", "--last", "go on", "-p").code == 0
    last = json.loads(server.requests[-1].body)["messages"]
    news = [m["content"] for m in last if "Its last output" in str(m["content"])]
    assert len(news) == 1
    assert "has ended with exit 0" in news[0]
    assert "Its last output:\nbuilt" in news[0]
    assert [r["jobs"] for r in of_type(shell.events(), "tool_result") if "jobs" in r] in ([["1"]], [])


def test_what_ends_after_the_last_result_is_told_with_the_next_message(shell: Shell, serve: Serve) -> None:
    server = serve(shell_call("echo up; sleep 300", background=True), reply("it runs"), reply("I see"))
    done = shell.run("new", "go", "-p", "--mode", "yolo")
    assert (done.code, done.err) == (0, "agentsh: 1 background job ended with the session\n")
    assert states(shell) == ["running", "killed"]
    assert shell.run("resume", "--last", "and now?", "-p").code == 0
    asked = json.loads(server.requests[-1].body)["messages"][-1]["content"]
    assert asked.startswith("<changes>")
    assert "Job 1 (`echo up; sleep 300`) was killed" in asked
    assert asked.endswith("and now?")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_l184_e103_no_process_of_the_session_outlives_it_and_none_is_started_again(
    shell: Shell, serve: Serve, kind: str, number: signal.Signals
) -> None:
    sleep = f"sleep 6{os.getpid()}{KINDS.index(kind)}{int(number):02}"  # nobody else sleeps for so long
    line = f"({sleep})& setsid {sleep} & (setsid sh -c '{sleep} & {sleep}' &) ; {sleep}"
    serve(shell_call(f"echo ran >> count; {line}", background=True), hang("waiting "), reply("gone"))
    process = shell.start("new", "go", "-p", "--mode", "yolo")
    wait_for(lambda: shell.ids and shell.log().exists() and b"waiting" in shell.log().read_bytes())
    assert len(alive(sleep)) >= 4
    stop(process, number)
    wait_for(lambda: not alive(sleep), 60)
    if number != signal.SIGKILL:
        assert states(shell) == ["running", "killed"]
        return
    assert shell.run("resume", "--last", "what of it?", "-p").code == 0
    assert states(shell) == ["running", "unknown"]
    assert "Job 1 was running when agentsh itself ended" in str(of_type(shell.events(), "job_changed"))
    assert (shell.workspace() / "count").read_text() == "ran\n"


@pytest.mark.parametrize("background", [False, True])
def test_l184_a_command_that_cleared_its_environment_dies_too(shell: Shell, serve: Serve, background: bool) -> None:
    """Unsandboxed, and killed with SIGKILL: its group is known to the watcher, whatever its environment."""
    shell.home.mkdir(parents=True)
    (shell.home / "agentsh.toml").write_text('[sandbox]\nkind = "none"\n')
    sleep = f"sleep 7{os.getpid()}{int(background)}"
    serve(shell_call(f"env -i {sleep}", background=background), hang("waiting "), raise_failures=False)
    process = shell.start("new", "go", "-p", "--mode", "yolo")
    wait_for(lambda: alive(sleep))
    stop(process, signal.SIGKILL)
    wait_for(lambda: not alive(sleep), 60)


def test_the_watcher_goes_with_the_session(shell: Shell, serve: Serve) -> None:
    shell.home.mkdir(parents=True)
    (shell.home / "agentsh.toml").write_text('[sandbox]\nkind = "none"\n')
    serve(shell_call("env | grep AGENTSH_PROCESS="), reply("done"))
    assert shell.run("new", "go", "-p", "--mode", "yolo").code == 0
    mark = results(shell)[0].split("\n")[1]
    assert mark.startswith("AGENTSH_PROCESS=")
    assert not alive(mark)


LINES = [
    ("sleep 300 & echo hi", "exit 0\nhi"),
    ("setsid sleep 300 & echo hi", "exit 0\nhi"),
    ("(setsid sh -c 'sleep 300 & sleep 300' &); echo hi", "exit 0\nhi"),
    ("cat; echo over", "exit 0\nover"),
    ("yes", "Killed at the time limit"),
    ("cat /bin/bash /bin/bash; sleep 300", "Killed at the time limit"),
    ("trap '' TERM INT HUP; while :; do :; done", "Killed at the time limit"),
]


def test_l176_l177_l179_each_returns_within_3_s_of_its_limit(shell: Shell, serve: Serve, kind: str) -> None:
    serve(*(shell_call(line, timeout_s=0.4) for line, _ in LINES), reply("done"))
    done = shell.run("new", "go", "-p", "--mode", "yolo")
    assert done.code == 0, done.err
    found = of_type(shell.events(), "tool_result")
    for (line, begins), result in zip(LINES, found, strict=True):
        text = result["for_model"]
        text = text["head"] if isinstance(text, dict) else text  # long ones are in a blob
        assert text.startswith(begins), (line, text[:200])
        assert result["duration_ms"] < 400 + 3_000, line
    assert "binary output" in found[5]["for_model"]


def test_a_job_is_told_in_replay_as_it_was_live(shell: Shell, serve: Serve) -> None:
    serve(shell_call("echo up; sleep 300", background=True), reply("it runs"))
    began = time.monotonic()
    assert shell.run("new", "go", "-p", "--mode", "yolo").code == 0
    assert time.monotonic() - began < 60
    shown = shell.run("replay", "--last").text
    assert "job 1 · has been running" in shown
    assert "job 1: killed" in shown


def test_a_job_that_ends_while_a_reply_streams_is_recorded_behind_it(shell: Shell, serve: Serve) -> None:
    """Else its line would stand in the middle of the reply, where a replay has none."""
    gate = Gate()
    serve(
        shell_call("until [ -e go ]; do sleep 0.05; done; touch over", background=True),
        reply("First.\n\nSecond", then=[gate, Text(" and third.")]),
    )
    process = shell.start("new", "go", "-p", "--mode", "yolo")
    gate.wait_reached(30)
    (shell.workspace() / "go").touch()
    wait_for((shell.workspace() / "over").exists)
    time.sleep(0.5)
    gate.open()
    assert process.wait(timeout=30) == 0
    kinds = [e["type"] for e in shell.events() if e["type"] in ("agent_message", "job_changed")]
    assert kinds == ["agent_message", "job_changed", "agent_message", "job_changed"]
    assert states(shell) == ["running", "ended"]


def test_jobs_are_listed_and_ended_by_a_command(shell: Shell, serve: Serve) -> None:
    sleep = f"sleep 6{os.getpid()}"
    serve(shell_call(f"echo begun; {sleep}", background=True), reply("It runs."))
    env = shell.env(TERM="xterm-256color")
    argv = [str(COMMAND), "new", "go", "--mode", "yolo", "--empty"]
    with Terminal(100, 30, argv=argv, cwd=shell.cwd, **env) as t:
        t.wait(lambda: "It runs." in t.page and len(of_type(shell.events(), "turn_finished")) == 1)
        t.look(0.5)
        t.type("/jobs\r")
        t.wait(lambda: re.search(rf"1  running · \d+ s · [\d,]+ bytes · echo begun; {sleep}", t.page) is not None)
        t.type("/jobs kill 7\r")
        t.wait(lambda: "no job" in t.page.lower())
        t.type("/jobs end\r")
        t.wait(lambda: "/jobs kill ID ends one" in t.page)
        t.type("/jobs kill 1\r")
        t.wait(lambda: "1  killed" in t.page)
        wait_for(lambda: not alive(sleep), 60)
        t.type("/exit\r")
        assert t.ended() == 0
