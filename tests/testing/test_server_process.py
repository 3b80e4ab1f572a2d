"""The scripted server as a process of its own, with its script in a file."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentsh.testing.server import ModelReply, NoReply, PlainReply, ScriptFileError, Usage, main
from agentsh.testing.server_files import read_script
from agentsh.testing.server_script import CallDelta, Comment, Cut, Forever, Hang, Layout, Pause, Raw, Text, Together
from tests.testing.server_client import assembled, chunks, texts


def script(folder: Path, content: Any) -> Path:
    path = folder / "script.json"
    path.write_text(json.dumps(content))
    return path


@contextmanager
def running(path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-W", "error", "-m", "agentsh.testing.server", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


async def test_a_process_prints_its_url_answers_and_records(tmp_path: Path) -> None:
    content = [
        {"text": "hi", "calls": [{"name": "ls", "arguments": {"a": 1}, "id": "c1"}]},
        {"forever": {"text": "done", "chunk": 2}},
    ]
    with running(script(tmp_path, content), "--record", str(tmp_path / "seen")) as (process, base_url):
        assert base_url.startswith("http://127.0.0.1:")
        assert base_url.endswith("/v1")
        first = await chunks(base_url)
        assert texts(first) == ["hi"]
        assert assembled(first) == [(0, "c1", "ls", '{"a": 1}')]
        assert texts(await chunks(base_url)) == texts(await chunks(base_url)) == ["do", "ne"]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, "", "")
    body = (tmp_path / "seen" / "000003.body").read_bytes()
    assert json.loads(body)["messages"] == [{"role": "user", "content": "hi"}]


async def test_a_process_tells_failures_when_it_ends(tmp_path: Path) -> None:
    with running(script(tmp_path, {"replies": [], "models": ["gpt-5"]})) as (process, base_url):
        with pytest.raises(Exception, match="script exhausted"):
            await chunks(base_url)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "script exhausted: no reply is left for request 1" in errors


def test_every_form_of_a_script_file(tmp_path: Path) -> None:
    steps = [
        {"text": "a"},
        {"comment": "c"},
        {"raw": "r"},
        {"raw_base64": base64.b64encode(b"\xff").decode()},
        {"pause": 0.5},
        {"together": [{"text": "b"}, {"call": {"index": 0, "name": "n"}}]},
        {"hang": True},
        {"cut": "rst"},
    ]
    content = {
        "strict": False,
        "idle_s": 1,
        "replies": [
            {"then": steps, "usage": {"prompt": 1, "completion": 2}, "layout": {"segment_bytes": 1}},
            {"text": "xy", "chunk": 1, "pause_at": {"1": 0.1}, "headers": {"a": "b"}, "finish": None},
            {"error": {"status": 429, "headers": {"Retry-After": "1"}}},
            {"error": 500},
            {"html_error": 502},
            {"json": {"a": 1}},
            {"closed": "rst"},
            {"hang": True},
            {"hang": "text"},
            {"forever": {"error": 503}},
        ],
    }
    items, settings = read_script(script(tmp_path, content))
    assert settings == {"strict": False, "idle_s": 1}
    first, second = items[:2]
    assert isinstance(first, ModelReply)
    assert first.steps == (
        Text("a"),
        Comment("c"),
        Raw(b"r"),
        Raw(b"\xff"),
        Pause(0.5),
        Together((Text("b"), CallDelta(0, name="n"))),
        Hang(),
        Cut("rst"),
    )
    assert (first.usage, first.layout) == (Usage(1, 2), Layout(segment_bytes=1))
    assert isinstance(second, ModelReply)
    assert second.steps == (Text("x"), Pause(0.1), Text("y"))
    assert [item.status for item in items if isinstance(item, PlainReply)] == [429, 500, 502, 200]
    assert items[6:8] == [NoReply(ending="rst"), NoReply(delay_s=None)]
    assert isinstance(items[9], Forever)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ([{"texxt": "a"}], "reply 1: .*texxt"),
        ([{"text": "a"}, {"then": [{"dance": 1}]}], "reply 2: no step 'dance'"),
        ([{"then": [{"text": "a", "cut": "fin"}]}], "one member"),
        ([{"then": [{"cut": "softly"}]}], "'softly' is none of end, fin, mid_chunk, rst"),
        ([{"closed": True}], "True is none of fin, rst"),
        ([{"calls": [{"nome": "a"}]}], "nome"),
        (["a"], "expected an object"),
        ({"replies": [], "strikt": True}, "unknown strikt"),
    ],
)
def test_mistakes_in_a_script_file_are_told(
    tmp_path: Path, content: Any, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(tmp_path, content)
    with pytest.raises(ScriptFileError, match=complaint):
        read_script(path)
    assert main([str(path)]) == 2
    assert capsys.readouterr().err


def test_a_script_that_is_missing_or_no_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    (tmp_path / "bad.json").write_text("{")
    assert main([str(tmp_path / "bad.json")]) == 2
    assert "is not JSON" in capsys.readouterr().err
