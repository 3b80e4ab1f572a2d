"""The renderers for programs: exact lines, and the final answer only."""

import io

from agentsh.events.event import Event
from agentsh.events.session import Note
from agentsh.events.signals import DiskNearlyFull, Retrying, SavingStopped, TextDelta
from agentsh.ports.texts import InlineTexts
from agentsh.render.final import FinalRenderer
from agentsh.render.jsonl import JsonRenderer
from tests.render.rig import TS, Story


def test_json_writes_the_bytes_of_the_log() -> None:
    out = io.BytesIO()
    screen = JsonRenderer(out)
    raw = b'{"seq":1,"type":"note","x":"\\u001b\xff"}\n'
    screen.signal(TextDelta("never"))
    screen.on(Event(1, TS, None, Note(text="x"), raw))
    screen.close()
    assert out.getvalue() == raw


def final(events: list[Event]) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    screen = FinalRenderer(out, err, InlineTexts())
    screen.signal(Retrying(1, 4, 0.5, "429\nslow down"))
    screen.signal(SavingStopped("disk full"))
    for event in events:
        screen.on(event)
    screen.close()
    return out.getvalue(), err.getvalue()


def test_final_prints_the_last_answer_only() -> None:
    s = Story()
    events = [s.user("x"), s.agent("I will look.", "tool_calls"), *s.call("look", "{}", "ok", "look")]
    out, err = final([*events, s.agent("**Done**\x1b[2J\n"), s.finished()])
    assert out == "**Done**\n"
    assert err.split("\n") == [
        "agentsh: 429 slow down; retry 1 of 4 in 0.5 s", "agentsh: for a while nothing was being saved: disk full", ""
    ]  # fmt: skip


def test_final_tells_once_that_the_disk_is_nearly_full() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = FinalRenderer(out, err, InlineTexts())
    for _ in range(3):
        screen.signal(DiskNearlyFull("the disk is nearly full, 5 MB are free"))
    assert err.getvalue() == (
        "agentsh: the disk is nearly full, 5 MB are free: nothing that has effects is started\n"
    )


def test_final_tells_what_went_wrong() -> None:
    s = Story()
    out, err = final([s.user("x"), s.agent("half", "cut"), s.finished("error", "it ended early (try again)")])
    assert out == "half\n"
    assert err.endswith("agentsh: it ended early (try again)\n")
    out, err = final([s.user("x"), s.agent("looking", "tool_calls"), s.finished("max_steps")])
    assert out == ""
    assert err.endswith("agentsh: stopped at the limit of 3 steps\n")
