"""The sandbox as a user meets it: chosen by itself, recorded, said where it is missing; and lasting answers."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, reply
from agentsh.workspace.sandbox import choose, probe
from tests.e2e.harness import COMMAND, Shell, of_type, stop, wait_for
from tests.e2e.test_signals import alive
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
HELD = choose("auto")[0]
NEEDS_SANDBOX = pytest.mark.skipif(HELD == "none", reason="no sandbox works here")


def configure(shell: Shell, text: str) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(text)


def runs(command: str, **more: object) -> object:
    return reply(calls=[call("shell", {"command": command, **more})])


@NEEDS_SANDBOX
def test_new_sessions_run_in_the_sandbox_without_being_told(shell: Shell, serve: Serve) -> None:
    keys = shell.home.parent / ".ssh"
    keys.mkdir(parents=True)
    (keys / "id_rsa").write_text("canary-key")
    before = set(os.listdir(shell.home.parent))
    line = f"touch mine; touch {shell.home.parent}/theirs; cat {keys}/id_rsa; ls {shell.home}/sessions; echo $TMPDIR"
    serve(runs(line), reply("done"))
    done = shell.run("new", "go", "--json")
    assert done.code == 0, done.err
    assert of_type(done.events, "session_init")[0]["mode"] == "auto"
    (started,) = of_type(done.events, "tool_started")
    assert (started["sandbox"], started["decision"]) == (HELD, "auto")
    (result,) = of_type(done.events, "tool_result")
    assert "canary-key" not in result["for_model"]
    assert shell.ids[0] not in result["for_model"]
    assert (shell.workspace() / "mine").exists()
    assert set(os.listdir(shell.home.parent)) == before | {shell.home.name}


def test_without_a_sandbox_it_is_said_and_asked(shell: Shell, serve: Serve) -> None:
    configure(shell, '[sandbox]\nkind = "none"\n')
    serve(runs("ls -la; pwd"), runs("touch x"), reply("as you like"))
    done = shell.run("new", "go", "--json", "--mode", "auto")
    assert done.code == 8
    assert "the sandbox is off: each command is asked about" in done.err
    results = of_type(done.events, "tool_result")
    assert [r["status"] for r in results] == ["ok", "denied"]
    assert [s["sandbox"] for s in of_type(done.events, "tool_started")] == ["none"]
    assert not (shell.workspace() / "x").exists()
    configure(shell, '[sandbox]\nkind = "none"\n')
    serve(reply("hello"))
    assert of_type(shell.run("new", "go", "--json").events, "session_init")[0]["mode"] == "ask"


@NEEDS_SANDBOX
def test_a_way_out_is_asked_about(shell: Shell, serve: Serve) -> None:
    outside = shell.home.parent / "theirs"
    serve(runs(f"touch {outside}", outside_sandbox=True), reply("then not"))
    done = shell.run("new", "go", "--json")
    assert done.code == 8
    assert of_type(done.events, "tool_result")[0]["status"] == "denied"
    assert not outside.exists()
    serve(runs(f"touch {outside}", outside_sandbox=True), reply("done"))
    done = shell.run("new", "go", "--json", "--mode", "yolo")
    assert of_type(done.events, "tool_started")[0]["sandbox"] == "none"
    assert outside.exists()


@NEEDS_SANDBOX
def test_nothing_outlives_a_killed_agentsh(shell: Shell, serve: Serve) -> None:
    nap = f"7{os.getpid()}"
    serve(runs(f"sleep {nap} & env -i setsid sleep {nap} & (setsid sleep {nap} &); echo begun; sleep {nap}"))
    process = shell.start("new", "go", "-p")
    wait_for(lambda: shell.ids and shell.log().exists() and b'"begun' in shell.log().read_bytes())
    assert len(alive(f"sleep {nap}")) >= 4
    stop(process, signal.SIGKILL)
    wait_for(lambda: not alive(f"sleep {nap}"), 30)


def test_rules_of_the_configuration(shell: Shell, serve: Serve) -> None:
    configure(
        shell,
        '[sandbox]\nkind = "none"\n[permissions]\nallow = ["shell(touch a *)"]\n'
        'deny = ["shell(touch b *)", "read(.env)"]\n',
    )
    serve(runs("touch a"), runs("env touch b"), runs("{ cat .env; }"), reply("done"))
    done = shell.run("new", "go", "--json", "--mode", "ask")
    assert [r["status"] for r in of_type(done.events, "tool_result")] == ["ok", "denied", "denied"]
    assert "shell(touch b *)" in of_type(done.events, "tool_result")[1]["for_model"]
    assert of_type(done.events, "tool_started")[0]["decision"] == "rule"
    configure(shell, '[permissions]\nallow = ["no rule at all"]\n')
    refused = shell.run("new", "go", "-p")
    assert refused.code == 2
    assert "permissions.allow" in refused.err
    assert refused.err.count("\n") <= 2


def test_a_yes_for_the_project_holds_in_the_next_session(shell: Shell, serve: Serve) -> None:
    configure(shell, '[sandbox]\nkind = "none"\n')
    serve(runs("make -n greeting"), reply("the first is over"))
    argv = [str(COMMAND), "new", "go", "--mode", "ask"]
    with Terminal(80, 24, argv=argv, cwd=shell.cwd, **shell.env(TERM="xterm-256color")) as live:
        live.wait(lambda: "for this project" in live.page, 60)
        assert "always: shell(make -n greeting)" in live.page
        assert "make -n greeting: it may change something" in live.page
        live.look(0.6)
        live.type("p")
        live.wait(lambda: "the first is over" in live.page, 60)
        assert "approved for this project" in live.page
        live.look(0.6)
        live.type("/exit\r")
        assert live.ended() == 0
    granted = json.loads((shell.home.parent / ".agentsh" / "granted.json").read_text())
    assert granted == {str(Path(shell.cwd).resolve()): ["shell(make -n greeting)"]}
    answered = of_type(shell.events(), "approval_answered")
    assert answered[0]["answer"] == "project"
    serve(runs("make -n greeting"), reply("no question this time"))
    done = shell.run("new", "go", "--json", "--mode", "ask")
    assert done.code == 0
    assert of_type(done.events, "tool_started")[0]["decision"] == "rule"


def test_hooks_are_told_of_the_session(shell: Shell, serve: Serve) -> None:
    told = shell.home.parent / "told"
    configure(
        shell,
        f"""[hooks.diary]
command = ["/bin/sh", "-c", "cat >> {told}; echo '{{\\"verdict\\":\\"annotate\\",\\"message\\":\\"seen\\"}}'"]
events = ["session_opened", "turn_finished", "session_closed"]
""",
    )
    serve(reply("hello"))
    done = shell.run("new", "go", "--json")
    assert done.code == 0, done.err
    seen = [json.loads(line) for line in told.read_text().splitlines()]
    assert [s["event"] for s in seen] == ["session_opened", "turn_finished", "session_closed"]
    assert {s["session"] for s in seen} == {shell.ids[0]}
    assert seen[1]["reason"] == "done"
    assert [p["text"] for p in of_type(shell.events(), "note")] == ["hook diary: seen"] * 3


@pytest.mark.skipif(HELD != "bwrap", reason="no bubblewrap here")
def test_a_hook_that_is_in_the_workspace_cannot_be_changed(shell: Shell, serve: Serve) -> None:
    """In place, a hook of the project is in reach of commands, and agentsh runs it outside of the sandbox."""
    hook = shell.cwd / "a" / "hooks" / "h"
    configure(shell, f'[hooks.x]\ncommand = ["{hook}"]\n')
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    pwned = shell.home / "pwned"
    evil = f"#!/bin/sh\ntouch {pwned}\n"
    put = f"mkdir -p a/hooks; printf '{evil}' > a/hooks/h; chmod +x a/hooks/h"
    serve(
        *(
            runs(f"{way}; {put}")
            for way in ("true", "mv a/hooks a/b", "mv a b", "rm -rf a", "ln -sf /bin/sh a/hooks/h")
        ),
        reply(
            calls=[call("write", {"path": "a/hooks/h", "content": evil}), call("shell", {"command": "touch other"})]
        ),
        reply("done"),
    )
    done = shell.run("new", "go", "-p", "--json", "--mode", "auto", "--in-place")
    assert [r["status"] for r in of_type(done.events, "tool_result")][-2:] == ["denied", "ok"]
    assert hook.read_text() == "#!/bin/sh\n"
    assert not pwned.exists()
    assert (shell.cwd / "other").exists()


def test_in_the_users_own_directory_keys_are_asked_about(shell: Shell, serve: Serve) -> None:
    shell.cwd = shell.home.parent
    configure(shell, '[permissions]\nallow = ["read(.ssh/config)"]\n')
    (shell.cwd / ".ssh").mkdir()
    for name in ("id_rsa", "config", "known"):
        (shell.cwd / ".ssh" / name).write_text(f"canary-{name}")
    (shell.cwd / "link").symlink_to(".ssh/id_rsa")
    (shell.home / "secrets.key").write_text("canary-of-the-key")
    looks = [call("read", {"path": path}) for path in (".ssh/id_rsa", "link", ".agentsh/secrets.key", ".ssh/config")]
    serve(reply(calls=[*looks, call("grep", {"pattern": "canary", "path": "."})]), reply("done"))
    done = shell.run("new", "go", "--json", "--in-place")
    results = of_type(done.events, "tool_result")
    assert [r["status"] for r in results] == ["denied", "denied", "denied", "ok", "ok"]
    told = "".join(r["for_model"] for r in results)
    assert "canary-config" in told
    assert not {"canary-id_rsa", "canary-known", "canary-of-the-key"} & set(re.findall(r"canary[\w-]+", told))


@NEEDS_SANDBOX
def test_a_hook_that_is_a_link_is_what_it_led_to(shell: Shell, serve: Serve) -> None:
    """A link cannot be held where it stands, so it is followed once, before any command runs."""
    configure(shell, f'[hooks.x]\ncommand = ["{shell.cwd / "h"}"]\n')
    hook, pwned = shell.home / "h", shell.home / "pwned"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    (shell.cwd / "h").symlink_to(hook)
    evil = f"printf '#!/bin/sh\\ntouch {pwned}\\n' > evil; chmod +x evil; ln -sfn evil h"
    serve(runs(evil), runs("touch other"), reply("done"))
    done = shell.run("new", "go", "-p", "--json", "--mode", "auto", "--in-place")
    assert done.code == 0, done.err
    assert (shell.cwd / "other").exists()
    assert (shell.cwd / "h").readlink() == Path("evil")
    assert not pwned.exists()


@pytest.mark.skipif(not probe("landlock").works, reason="no Landlock here")
def test_in_place_landlock_asks_where_it_cannot_hold_git(shell: Shell, serve: Serve) -> None:
    configure(shell, '[sandbox]\nkind = "landlock"\n')
    subprocess.run(["git", "init", "-q"], cwd=shell.cwd, check=True)
    serve(runs("git status; ls"), runs("touch x"), reply("as you like"))
    done = shell.run("new", "go", "--json", "--in-place")
    assert done.code == 8
    assert "in place, Landlock does not hold hooks and configuration of git" in done.err
    assert [r["status"] for r in of_type(done.events, "tool_result")] == ["ok", "denied"]
    serve(runs("touch x"), reply("done"))
    assert shell.run("new", "go", "--json").code == 0, "in a clone it is put back, so that nothing need be asked"


@pytest.mark.skipif(HELD != "bwrap", reason="no bubblewrap here")
def test_a_home_that_is_in_the_workspace_cannot_be_changed(shell: Shell, serve: Serve) -> None:
    """In place in the user's own directory: what was granted and trusted, hooks, the key of the placeholders."""
    names = ("granted.json", "trusted.json", "agentsh.toml", "commands/x.md", "new")
    lines = [f"mkdir -p .agentsh/commands; echo evil > .agentsh/{name}; " for name in names]
    shell.cwd = shell.home.parent
    configure(shell, "")
    (shell.home / "granted.json").write_text("{}")
    (shell.home / "secrets.key").write_text("canary-key")
    serve(
        runs("".join(lines) + "mv .agentsh x; rm -rf .agentsh; cat .agentsh/secrets.key; touch other"),
        reply(calls=[call("write", {"path": ".agentsh/agentsh.toml", "content": "evil"})]),
        reply("done"),
    )
    done = shell.run("new", "go", "--json", "--mode", "auto", "--in-place")
    ran, wrote = of_type(done.events, "tool_result")
    assert "canary-key" not in json.dumps(ran)
    assert wrote["status"] == "denied"
    assert (shell.cwd / "other").exists()
    assert (shell.home / "agentsh.toml").read_text() == ""
    assert (shell.home / "granted.json").read_text() == "{}"
    assert not any((shell.home / name).exists() for name in ("trusted.json", "commands", "new"))
