"""Field reports A: text that splits or hides lines. One record is one line for every reader, whatever is in it."""

import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.log.frame import decode_event, encode_event
from agentsh.log.record import Draft
from agentsh.log.scan import to_record
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.testing.server import ScriptedServer, call, reply
from tests.app.homes import TS, add, events, log_of, sid
from tests.e2e.harness import Shell, of_type
from tests.field.conftest import Case
from tests.log.logs import scan_of

SEPARATORS = [chr(n) for n in range(0x11_0000) if not 0xD800 <= n < 0xE000 and len(f"a{chr(n)}b".splitlines()) > 1]
TEXT = st.text(
    st.one_of(st.sampled_from([*SEPARATORS, "\0", "\ufeff", "\x1b", '"', "\\", "\ud800"]), st.characters())
)


@settings(max_examples=300, deadline=None)
@given(TEXT, TEXT)
def test_a6_any_output_of_a_tool_is_one_line(text: str, key: str) -> None:
    """A6 github/copilot-cli#2649: literal newlines in a JSON string, two lines split in three."""
    payload = {"for_model": text, f"k{key}": [text]}
    raw = encode_event(Draft("tool_result", TS, payload), seq=1, dur=0, salt=7)
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    assert raw.decode().splitlines(keepends=True) == [raw.decode()]
    again = json.loads(json.dumps(payload))  # surrogates that pair up are one character for JSON
    assert decode_event(raw, 7).payload == again
    assert to_record(raw).payload == again


@pytest.mark.parametrize("separator", SEPARATORS, ids=lambda c: f"U+{ord(c):04X}")
def test_a36_each_separator_of_splitlines(separator: str) -> None:
    """A36 huggingface/tau#354, A8 github/copilot-cli#2012: `splitlines()` splits records at U+2028."""
    raw = encode_event(Draft("note", TS, {"text": f"a{separator}b"}), seq=1, dur=0, salt=7)
    text = raw.decode()
    assert text.splitlines() == [text[:-1]]
    assert list(io.StringIO(text, newline=None)) == [text]
    assert decode_event(raw, 7).payload == {"text": f"a{separator}b"}


def test_a9_a_hook_that_says_such_text(case: Case, serve: Callable[..., ScriptedServer], shell: Shell) -> None:
    """A9 github/copilot-cli#2658: event `hook.start` with U+2028, from a real hook around a real tool."""
    verdict = r"""printf '{"verdict":"annotate","message":"a\342\200\250b\342\200\251c"}'"""
    (shell.home / "agentsh.toml").write_text(f"[hooks.odd]\ncommand = ['/bin/sh', '-c', {json.dumps(verdict)}]\n")
    serve(reply(calls=[call("list", {})]), reply("seen"), reply("again"))
    assert shell.run("resume", case.id, "list", "-p", "--mode", "yolo").code == 0
    told = [event["message"] for event in of_type(shell.events(case.id), "hook_answered")]
    assert told
    assert set(told) == {"a\u2028b\u2029c"}
    text = case.log.read_bytes().decode()
    assert text.splitlines() == text.split("\n")[:-1]
    assert shell.run("verify", case.id).code == 0
    assert shell.run("resume", case.id, "again", "-p").code == 0


async def test_a7_twenty_megabytes_of_such_text(tmp_path: Path) -> None:
    """A7 github/copilot-cli#2490: U+2028 and a 20 MB log make the session unresumable. Byte for byte the same."""
    dice = random.Random(3)
    said = [("".join(dice.choices([*SEPARATORS, "word ", "\u2028"], k=2500))) for _ in range(60)]
    drafts = events(sid(1), tmp_path, 1) + [("note", {"text": said[n % 60]}) for n in range(2600)]
    data = log_of(sid(1), drafts)
    assert len(data) > 20_000_000
    assert data.decode().splitlines(keepends=True) == [line.decode() for line in data.splitlines(keepends=True)]
    found, scan = scan_of(data)
    assert len(found) == len(drafts)
    assert all(to_record(raw + b"\n").payload == drafts[seq - 1][1] for seq, raw in found)
    assert [d.kind for d in scan.damages if d.kind != "session"] == []
    add(tmp_path, 1, 1).write_bytes(data)
    opened = await JsonlStore(tmp_path / "sessions", FileBlobs(tmp_path / "blobs")).open(sid(1))  # as `resume` does
    await opened.log.close()
    assert not opened.recovery
    assert b"".join(record.raw for record in opened.records) == data[data.index(b"\n") + 1 :]


def test_a6_through_a_real_tool(case: Case, serve: Callable[..., ScriptedServer], shell: Shell) -> None:
    """A6, A7, A8 with the real command: what the tool printed, in a log that every reader splits alike."""
    command = r"printf 'a\nb\rcd\342\200\250e\302\205f\034g\n'"
    serve(reply(calls=[call("shell", {"command": command})]), reply("seen \u2028 so"))
    done = shell.run("resume", case.id, "print \u2028 it", "--json", "--mode", "yolo")
    assert done.code == 0, done.err
    text = case.log.read_bytes().decode()
    assert text.splitlines() == text.split("\n")[:-1]
    assert "\\u2028" in text
    (result,) = of_type(shell.events(case.id), "tool_result")
    assert "\u2028e" in result["for_model"]
    assert shell.run("verify", case.id).code == 0


def test_a9_through_a_real_hook(case: Case, serve: Callable[..., ScriptedServer], shell: Shell) -> None:
    """A9 github/copilot-cli#2658 with a program that answers so, for a call and for a session."""
    hook = shell.cwd / "hook"
    hook.write_text('#!/bin/sh\nprintf \'{"verdict":"annotate","message":"a\\342\\200\\250b\\342\\200\\251c"}\'\n')
    hook.chmod(0o755)
    events = '["session_opened", "before_tool"]'
    (shell.home / "agentsh.toml").write_text(f'[hooks.odd]\ncommand = ["{hook}"]\nevents = {events}\n')
    serve(reply(calls=[call("list", {})]), reply("listed"), reply("again"))
    assert shell.run("resume", case.id, "go on", "-p", "--mode", "yolo").code == 0
    text = case.log.read_bytes().decode()
    assert text.splitlines() == text.split("\n")[:-1]
    (answered,) = of_type(shell.events(case.id), "hook_answered")
    assert "a\u2028b\u2029c" in answered["message"]
    assert any("a\u2028b" in note["text"] for note in of_type(shell.events(case.id), "note"))
    assert shell.run("verify", case.id).code == 0
    assert shell.run("resume", case.id, "and on", "-p").code == 0
