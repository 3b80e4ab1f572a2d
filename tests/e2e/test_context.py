"""`agentsh context`: what it rebuilds is what the server was sent, whatever happened to the session in between."""

import json
import signal
from collections.abc import Callable

from agentsh.testing.server import Request, ScriptedServer, call, hang, reply
from tests.e2e.harness import Shell, of_type, stop

Serve = Callable[..., ScriptedServer]


def built(shell: Shell) -> list[int]:
    return [e["seq"] for e in shell.events() if e["type"] == "context_built"]


def bodies(server: ScriptedServer) -> list[bytes]:
    return [r.body for r in server.requests if r.path.endswith("/chat/completions")]


def sent_again(shell: Shell, server: ScriptedServer) -> None:
    """Every request, rebuilt, is the one that the server got."""
    seqs = built(shell)
    assert len(seqs) == len(bodies(server))
    for seq, body in list(zip(seqs, bodies(server), strict=True))[-3:]:
        done = shell.run("context", "--last", "--at", str(seq), "--format", "request")
        assert (done.code, done.out) == (0, body), done.err
    done = shell.run("verify", "--contexts", shell.ids[0])
    assert done.code == 0
    assert f"{len(seqs)} requests, {len(seqs)} built again byte for byte" in done.text


def test_across_a_kill_another_model_a_smaller_budget_and_edited_instructions(shell: Shell, serve: Serve) -> None:
    shell.home.mkdir(parents=True)
    (shell.home / "agentsh.toml").write_text('[session]\ncompact = "off"\n')
    (shell.cwd / "AGENTS.md").write_text("Always say please.\n")
    listed = call("shell", {"command": "seq 1 3000; echo secret-sauce"})
    server = serve(
        reply(calls=[listed]), reply("one"), hang("busy with two"), reply(calls=[listed]), reply("three"),
        reply("four"), reply("five"),
    )  # fmt: skip
    assert shell.run("new", "the first prompt", "-p", "--mode", "yolo").code == 0
    process = shell.start("resume", "--last", "the second prompt", "-p")
    server.wait_for_requests(3, 30)
    stop(process, signal.SIGKILL)
    (shell.workspace() / "AGENTS.md").write_text("Never say please.\n")
    assert shell.run("resume", "--last", "the third prompt", "-p", "--mode", "yolo").code == 0
    assert shell.run("resume", "--last", "the fourth prompt", "-p", "--model", "another").code == 0
    done = shell.run("resume", "--last", "the fifth prompt", "-p", "--budget", "6000")
    assert done.code == 0, done.err
    sent_again(shell, server)

    first, *_, third, three, four, five = bodies(server)
    assert b"Always say please." in first
    assert b"Never say please." not in first
    assert three.startswith(third.removesuffix(b"]}"))
    assert b"Never say please." in third
    assert json.loads(four)["model"] == "another"
    assert json.loads(five)["messages"][0] == json.loads(first)["messages"][0], "the start is as it was recorded"
    cut = [p["cut"] for p in of_type(shell.events(), "context_built") if p["cut"]]
    assert len(cut) == 1, "the smaller budget made one decision"
    assert of_type(shell.events(), "context_built")[-1]["tokens"] <= 6000

    table = shell.run("context", "--last").text
    assert all(len(row) <= 80 for row in table.splitlines()), table
    assert "rebuilt byte for byte" in table
    assert "instructions: AGENTS.md" in table
    known = json.loads(shell.run("context", "--last", "--json").text)
    assert known["exact"] is True
    assert [row["seq"] for row in known["events"]] == list(range(1, known["seq"]))
    assert {row["fate"] for row in known["events"]} >= {"kept", "not for the model"}
    assert sum(row["tokens"] for row in known["events"]) == known["tokens"]


def test_diff_tells_what_came_and_went(shell: Shell, serve: Serve) -> None:
    serve(reply("one"), reply("two"))
    shell.run("new", "first", "-p")
    shell.run("resume", "--last", "second", "-p")
    one, two = built(shell)
    done = shell.run("context", "--last", "--at", str(two), "--diff", str(one))
    assert done.code == 0
    assert f"from event {one}" in done.text.splitlines()[0]
    assert "2 messages" in done.text.splitlines()[1]
    rows = done.text.splitlines()[2:]
    assert [row.split()[2:] for row in rows] == [["assistant", "one"], ["user", "second"]]
    known = json.loads(shell.run("context", "--last", "--at", str(one), "--diff", str(two), "--json").text)
    assert (known["old"], known["new"], known["removed"]) == (one, two, [])
    assert known["same_bytes"] >= known["old_bytes"] - 2


def test_words_that_do_not_fit_say_so_in_one_line(shell: Shell, serve: Serve) -> None:
    serve(reply("one"))
    shell.run("new", "first", "-p")
    for words, code in (
        (["--at", "2"], 2), (["--at", "0"], 2), (["--format", "odd"], 2), (["--diff", "1"], 2),
    ):  # fmt: skip
        done = shell.run("context", "--last", *words)
        assert done.code == code, words
        assert "Traceback" not in done.err
    assert "first went out with event" in shell.run("context", "--last", "--at", "2").err
    assert shell.run("context", "nothing").code == 3


def test_a_request_that_cannot_be_rebuilt_is_told(shell: Shell, serve: Serve) -> None:
    """A blob is gone: the request is shown as far as it can be, and that these are not the bytes."""
    (shell.cwd / "AGENTS.md").write_text("Be kind.")
    serve(reply("one"))
    shell.run("new", "word " * 8_000, "-p")
    (user,) = of_type(shell.events(), "user_message")
    ref = user["text"]["blob"].removeprefix("sha256:")
    blob = shell.home / "blobs" / ref[:2] / f"{ref}.zst"
    kept = blob.read_bytes()
    blob.unlink()
    try:
        done = shell.run("context", "--last")
        assert done.code == 1
        assert "blob missing now" in done.err
        assert "NOT rebuilt" in done.text
        done = shell.run("verify", "--contexts", shell.ids[0])
        assert done.code == 1
        assert "1 request, 0 built again" in done.text
    finally:
        blob.write_bytes(kept)
    assert shell.run("verify", "--contexts", "--all").code == 0


def test_a_request_that_was_sent_without_a_blob_is_rebuilt_without_it(shell: Shell, serve: Serve) -> None:
    """What was missing then is recorded, so that putting it back later changes nothing of the past."""
    serve(reply("one"), reply("two"))
    shell.run("new", "word " * 8_000, "-p")
    (user,) = of_type(shell.events(), "user_message")
    ref = user["text"]["blob"]
    name = ref.removeprefix("sha256:")
    blob = shell.home / "blobs" / name[:2] / f"{name}.zst"
    kept = blob.read_bytes()
    blob.unlink()
    assert shell.run("resume", "--last", "second", "-p").code == 0
    blob.write_bytes(kept)
    assert [p.get("missing") for p in of_type(shell.events(), "context_built")] == [None, [ref]]
    assert shell.run("verify", "--contexts", "--all").code == 0


def test_a_budget_that_is_impossible_is_refused_before_anything_is_written(shell: Shell, serve: Serve) -> None:
    (shell.cwd / "AGENTS.md").write_text("Rule.\n" * 1_500)
    server = serve(reply("one"))
    shell.run("new", "first", "-p")
    before = shell.log().read_bytes()
    done = shell.run("resume", "--last", "second", "-p", "--budget", "2000")
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert "2,000 tokens is too small" in done.err
    assert "--budget" in done.err
    assert (shell.log().read_bytes(), len(server.requests)) == (before, 1)


def test_the_cap_of_an_item_is_a_setting_and_on_record(shell: Shell, serve: Serve) -> None:
    shell.home.mkdir(parents=True)
    config = shell.home / "agentsh.toml"
    config.write_text("[context]\nitem_tokens = 1000\n")
    server = serve(reply("one"), reply("two"), reply("three"))
    assert shell.run("new", "word " * 1_200, "-p").code == 0
    assert shell.run("resume", "--last", "second", "-p").code == 0
    config.unlink()
    assert shell.run("resume", "--last", "third", "-p").code == 0
    sent_again(shell, server)
    first, second, third = bodies(server)
    assert second.startswith(first.removesuffix(b"]}"))
    assert b"bytes left out" in first
    assert b"bytes left out" not in third
    (changed,) = of_type(shell.events(), "model_changed")
    assert "item_bytes" not in changed["request"]
    config.write_text("[context]\nitem_tokens = 1000\nbudget_tokens = 1200\n")
    done = shell.run("resume", "--last", "fourth", "-p")
    assert (done.code, len(done.err.splitlines()), len(server.requests)) == (2, 1, 3)
    assert "one item may have 1,000 tokens" in done.err


def test_an_odd_reply_does_not_poison_the_next_request(shell: Shell, serve: Serve) -> None:
    """D76: arguments that are no JSON. D81: two user messages in a row. The server judges each request."""

    def checked(request: Request) -> object:
        assert request.problems == ()
        return reply("fine")

    bad = {"id": "call_1", "name": "read", "arguments": '{"path":'}
    server = serve(reply(calls=[call("read", '{"path":')]), checked, hang(""), checked)
    shell.run("new", "first", "-p")
    process = shell.start("resume", "--last", "second", "-p")
    server.wait_for_requests(3, 30)
    stop(process, signal.SIGINT)
    done = shell.run("resume", "--last", "third", "-p")
    assert (done.code, done.text) == (0, "fine\n"), done.err
    roles = [m["role"] for m in json.loads(bodies(server)[-1])["messages"]]
    assert roles[-2:] == ["user", "user"]
    (asked,) = of_type(shell.events(), "tool_call")
    assert asked["arguments"] == bad["arguments"], "the log keeps what the model said"
