"""`-p` and `--json` against a scripted server: what is printed is the log, and every end has its code."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, call, cut_stream, error, forever, html_error, refusing, reply
from tests.e2e.harness import COMMAND, Shell, of_type

Serve = Callable[..., ScriptedServer]
THREE = (
    reply("I will write it.", calls=[call("write", {"path": "a.txt", "content": "one\n"})]),
    reply(calls=[call("edit", {"path": "a.txt", "old": "one", "new": "two"})]),
    reply(calls=[call("shell", {"command": "cat a.txt; echo $OPENAI_API_KEY"})]),
    reply("It says **two**."),
)


def test_json_is_the_log_byte_for_byte(shell: Shell, serve: Serve) -> None:
    server = serve(*THREE)
    done = shell.run("new", "make a file", "--json", "--mode", "yolo")
    assert done.code == 0, done.err
    header, _, rest = shell.log().read_bytes().partition(b"\n")
    assert done.out == rest
    assert b'"format":"agentsh-log/1"' in header
    assert [p["status"] for p in of_type(done.events, "tool_result")] == ["ok", "ok", "ok"]
    assert (shell.workspace() / "a.txt").read_text() == "two\n"
    (edit,) = [p for p in of_type(done.events, "code_edit") if "two" in p["diff"]]
    assert edit["path"] == "a.txt"
    assert of_type(done.events, "turn_finished")[0]["reason"] == "done"
    assert len(server.requests) == 4
    assert len(server.requests[0].body) <= 8_000
    shell_output = of_type(done.events, "tool_result")[2]["for_model"]
    assert "two" in shell_output
    assert "sk-test" not in shell.log().read_text()


def test_each_request_is_recorded_by_the_hash_of_its_very_bytes(shell: Shell, serve: Serve) -> None:
    import hashlib

    server = serve(*THREE)
    done = shell.run("new", "make a file", "--json", "--mode", "yolo")
    recorded = [p["request_sha256"] for p in of_type(done.events, "context_built")]
    assert recorded == [hashlib.sha256(r.body).hexdigest() for r in server.requests]
    for earlier, later in zip(server.requests, server.requests[1:], strict=False):
        assert later.body.startswith(earlier.body.removesuffix(b"]}")), "a request is the start of the next one"


def test_p_prints_the_answer_only(shell: Shell, serve: Serve) -> None:
    serve(*THREE)
    done = shell.run("new", "make a file", "-p", "--mode", "yolo")
    assert (done.code, done.text) == (0, "It says **two**.\n")


def test_p_resumes_by_id_prefix_suffix_title_and_last(shell: Shell, serve: Serve) -> None:
    """D97 NousResearch/hermes-agent#49195: `resume ID PROMPT -p` goes on with that session, and with no other."""
    server = serve(*(reply(f"answer {n}") for n in range(6)))
    assert shell.run("new", "first", "-p", "--name", "my session").code == 0
    (session,) = shell.ids
    for n, words in enumerate(([session], [session[:11]], [session[-5:]], ["my session"], ["--last"]), 1):
        done = shell.run("resume", *words, f"prompt {n}", "-p")
        assert (done.code, done.text) == (0, f"answer {n}\n"), done.err
    assert shell.ids == [session]
    users = [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"]
    assert users == ["first", *(f"prompt {n}" for n in range(1, 6))]


def test_resume_prints_only_what_is_new(shell: Shell, serve: Serve) -> None:
    serve(reply("one"), reply("two"))
    first = shell.run("new", "a", "--json")
    second = shell.run("resume", "--last", "b", "--json")
    assert first.out + second.out == shell.log().read_bytes().partition(b"\n")[2]
    assert second.events[0]["type"] == "opened"


def test_the_prompt_comes_from_a_pipe_too(shell: Shell, serve: Serve) -> None:
    server = serve(reply("a"), reply("b"))
    assert shell.run("new", stdin="修复\n第二行\n".encode()).code == 0
    assert shell.run("new", "explain this:", stdin=b"some text\n").code == 0
    texts = [r.json["messages"][-1]["content"] for r in server.requests]
    assert texts == ["修复\n第二行", "explain this:\n\nsome text"]


def test_a_slow_pipe_is_waited_for_and_that_is_said(shell: Shell, serve: Serve) -> None:
    server = serve(reply("fine"))
    process = subprocess.Popen(
        [COMMAND, "new", "explain this:", "-p"],
        cwd=shell.cwd,
        env=shell.env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    shell.started.append(process)
    assert process.stdin is not None
    assert process.stderr is not None
    assert process.stderr.readline().decode() == "agentsh: reading stdin…\n"
    out, err = process.communicate(b"late\n", timeout=60)
    assert (process.returncode, out, err) == (0, b"fine\n", b"")
    assert server.requests[0].json["messages"][-1]["content"] == "explain this:\n\nlate"


def test_a_pipe_that_brings_too_much_makes_nothing(shell: Shell, serve: Serve) -> None:
    serve()
    done = shell.run("new", "explain this:", "-p", stdin=b"x" * 20_000_001)
    told = [line for line in done.err.splitlines() if "reading stdin" not in line]  # said where the pipe is slow
    assert (done.code, len(told)) == (2, 1)
    assert "20 MB" in done.err
    assert shell.ids == []


@pytest.mark.parametrize(
    ("script", "code", "words", "requests"),
    [
        ([error(401, "Incorrect API key provided: sk-test.", code="invalid_api_key")], 6, "key", 1),
        ([error(404, "The model `scripted` does not exist.", code="model_not_found")], 6, "scripted", 1),
        ([error(400, "Invalid 'temperature'.")], 6, "temperature", 1),
        ([html_error(404, "<html>not here</html>")], 6, "OPENAI_BASE_URL", 1),
        ([forever(error(500, "boom", headers={"Retry-After": "0"}))], 6, "500", 5),
        ([cut_stream("half an answer", how="end")], 6, "finish reason", 1),
        ([cut_stream("half an answer", how="fin")], 6, "middle of the answer", 1),
        ([cut_stream("half an answer", how="rst")], 6, "", 1),
    ],
)  # fmt: skip
def test_every_failure_has_its_code_and_one_line_and_loses_nothing(
    shell: Shell, serve: Serve, script: list[object], code: int, words: str, requests: int
) -> None:
    server = serve(*script, raise_failures=False)
    done = shell.run("new", "please", "-p")
    assert done.code == code
    assert words in done.err
    lines = [line for line in done.err.splitlines() if "retry" not in line.lower()]
    assert len(lines) == 1, done.err
    assert "Traceback" not in done.err
    assert len(server.requests) == requests
    events = shell.events()
    assert of_type(events, "user_message")[0]["text"] == "please"
    assert of_type(events, "turn_finished")[0]["reason"] == "error"
    if "half" in repr(script):
        assert of_type(events, "agent_message")[0]["text"] == "half an answer"
        assert of_type(events, "agent_message")[0]["finish"] == "cut"


def test_busy_twice_then_an_answer(shell: Shell, serve: Serve) -> None:
    busy = error(429, "slow down", headers={"Retry-After": "0"})
    server = serve(busy, busy, reply("here"))
    done = shell.run("new", "please", "-p")
    assert (done.code, done.text) == (0, "here\n")
    assert len(done.err.splitlines()) == 2, done.err
    assert len({r.body for r in server.requests}) == 1, "a retry sends the same bytes"
    assert len(of_type(shell.events(), "context_built")) == 1


def test_a_server_that_is_not_there(shell: Shell) -> None:
    with refusing() as url:
        shell.base_url = url
        done = shell.run("new", "please", "-p")
    assert done.code == 6
    assert "Traceback" not in done.err
    assert of_type(shell.events(), "turn_finished")[0]["reason"] == "error"


def test_limits_exit_7(shell: Shell, serve: Serve) -> None:
    serve(*(reply(calls=[call("list", {"path": "."})]) for _ in range(2)))
    done = shell.run("new", "go", "-p", "--max-steps", "2")
    assert done.code == 7
    assert "agentsh resume 2" in done.err
    assert done.err.count("stopped at") == 1, "it was said twice"
    assert of_type(shell.events(), "turn_finished")[0]["reason"] == "max_steps"


def test_an_approval_that_could_not_be_asked_exits_8(shell: Shell, serve: Serve) -> None:
    serve(reply(calls=[call("write", {"path": "a", "content": "x"})]), reply("I could not."))
    done = shell.run("new", "go", "-p", "--mode", "ask")
    assert (done.code, done.text) == (8, "I could not.\n")
    assert not (shell.workspace() / "a").exists()
    assert of_type(shell.events(), "tool_result")[0]["status"] == "denied"


def test_plan_mode_is_read_only(shell: Shell, serve: Serve) -> None:
    serve(reply(calls=[call("shell", {"command": "touch a"})]), reply("A plan."))
    assert shell.run("new", "go", "-p", "--mode", "plan").code == 0
    assert not (shell.workspace() / "a").exists()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["resume", "20200101-aaaaaa", "x", "-p"], 3),
        (["replay", "nope"], 3),
        (["show", "nope"], 3),
        (["resume", "--last", "x", "-p"], 3),
        (["resume"], 2),
        (["new", "-p"], 2),
        (["new", "x", "-p", "--empty", "--in-place"], 2),
        (["new", "x", "-p", "--mode", "wild"], 2),
        (["nonsense"], 2),
        (["new", "x", "-p", "--from", "/no/such/place"], 2),
    ],
)
def test_bad_words_get_one_line_and_create_nothing(shell: Shell, serve: Serve, args: list[str], code: int) -> None:
    serve()
    done = shell.run(*args)
    assert done.code == code, done.err
    assert done.err
    assert "Traceback" not in done.err
    assert shell.ids == []


def test_an_ambiguous_id_lists_the_candidates(shell: Shell, serve: Serve) -> None:
    serve(reply("a"), reply("b"))
    shell.run("new", "x", "-p")
    shell.run("new", "x", "-p")
    done = shell.run("resume", shell.ids[0][:8], "x", "-p")
    assert done.code == 3
    assert all(i in done.err for i in shell.ids)


def test_nothing_configured_says_in_a_few_lines_what_to_do(shell: Shell) -> None:
    done = shell.run("new", "x", "-p", AGENTSH_MODEL="")
    assert done.code == 2
    assert "--model demo" in done.err
    assert shell.ids == []


def test_a_missing_key_is_told_before_anything_is_made(shell: Shell) -> None:
    done = shell.run("new", "x", "-p")
    assert done.code == 6
    assert "OPENAI_API_KEY" in done.err
    assert shell.ids == []


def test_files_are_for_their_owner_only_whatever_the_umask(shell: Shell, serve: Serve) -> None:
    serve(*THREE)
    old = os.umask(0)
    try:
        assert shell.run("new", "x" * 40_000, "-p", "--mode", "yolo").code == 0
    finally:
        os.umask(old)
    shell.run("ls")
    for place in [shell.home, *shell.home.rglob("*")]:
        if (shell.home / "workspaces") in place.parents and place.parent != shell.home / "workspaces":
            continue
        mode = stat.S_IMODE(place.lstat().st_mode)
        assert mode & 0o077 == 0, f"{place}: {mode:o}"


def test_a_broken_configuration_is_one_line(shell: Shell, serve: Serve) -> None:
    serve()
    shell.home.mkdir(parents=True)
    for text, words in (("[session", "agentsh.toml"), ("[session]\nmode = 'wild'", "session.mode"), ("x = 1", "x")):
        (shell.home / "agentsh.toml").write_text(text)
        done = shell.run("new", "x", "-p")
        assert done.code == 2
        assert words in done.err
        assert len(done.err.splitlines()) == 1


def test_ls_json_and_show(shell: Shell, serve: Serve) -> None:
    serve(reply("fine"))
    shell.run("new", "fix the tests please", "-p", "--tag", "work")
    row = json.loads(shell.run("ls", "--json").text)
    assert row["id"] == shell.ids[0]
    assert (row["state"], row["turns"], row["title"], row["tags"]) == ("idle", 1, "fix the tests please", ["work"])
    assert Path(row["workspace_path"]) == shell.workspace()
    assert shell.ids[0] in shell.run("ls").text
    assert "fix the tests please" in shell.run("show", "--last").text
    assert shell.run("ls", "--tag", "other", "--json").out == b""
