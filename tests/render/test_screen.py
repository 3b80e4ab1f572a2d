"""The screen: golden pages, replay equals live, each line once, few bytes, nothing that steers the terminal."""

import io
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentsh.events.event import Event
from agentsh.events.signals import DiskNearlyFull, Retrying, SavingStopped, TextDelta, ToolProgress
from agentsh.events.turn import Thought
from agentsh.events.union import KINDS
from agentsh.render.lines import LINES
from tests.render.rig import (
    MARKDOWN,
    Clock,
    Story,
    live_run,
    renderer,
    replayed,
    terminal_lines,
    whole_story,
)  # fmt: skip

GOLDEN = Path(__file__).parent / "golden"
REGENERATE = bool(os.environ.get("REGENERATE_GOLDEN"))
"""Set it to write the golden pages anew; then look at the difference."""
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("colour", [True, False], ids=["colour", "plain"])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_golden_pages(width: int, colour: bool) -> None:
    page = replayed(whole_story(), width, colour=colour)
    file = GOLDEN / f"story-{width}-{'colour' if colour else 'plain'}.txt"
    if REGENERATE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(page, encoding="utf-8")
    assert page == file.read_text(encoding="utf-8")


def test_colour_changes_nothing_but_colour() -> None:
    assert SGR.sub("", replayed(whole_story(), 80, colour=True)) == replayed(whole_story(), 80)


@pytest.mark.parametrize("thought", [None, Thought(ms=3_400, words=2)])
def test_reasoning_leaves_one_line_live_and_again(thought: Thought | None) -> None:
    s = Story()
    events = [
        s.user("x"),
        s.agent("Answer.", reasoning="secretly thinking aloud\n" * 40, thought=thought),
        s.finished(),
    ]
    written, _ = live_run(events, 80, random.Random(3))
    lines = terminal_lines(written, 80)
    assert lines == terminal_lines(replayed(events, 80), 80)
    said = "∴ thought, 120 words" if thought is None else "∴ thought for 3.4 s, 2 words"
    assert [line for line in lines if line.startswith("∴") or "aloud" in line] == [said]


def test_every_kind_of_fact_has_lines() -> None:
    own = {
        "agent_message",
        "tool_call",
        "tool_started",
        "code_edit",
        "tool_result",
        "user_command_ended",
        "side_answer",
    }
    assert set(LINES) | own == set(KINDS)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("seed", range(4))
def test_replay_equals_the_live_run(width: int, seed: int) -> None:
    events = whole_story()
    written, _ = live_run(events, width, random.Random(seed))
    assert terminal_lines(written, width) == terminal_lines(replayed(events, width), width)


PARTS = st.sampled_from(
    ["word ", "\n", "\n\n", "- item\n", "1. one\n", "  ", "```", "```py\n", "# H\n", "| a | b |\n|--|--|\n", "> q\n",
     "---\n", "修", "\r\n", "\r", "\x1b[2J", "\x1b", "*", "`", "\t", "[a](b)", "\ud800", "e\u0301", "\x00",
     "    code\n"]
)  # fmt: skip


@given(text=st.lists(PARTS, max_size=40).map("".join), seed=st.integers(0, 9), width=st.sampled_from([20, 41, 80]))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_reply_streamed_equals_the_reply_at_once(text: str, seed: int, width: int) -> None:
    s = Story()
    events = [s.user("x"), s.agent(text, reasoning="r" if seed % 2 else None), s.finished()]
    written, _ = live_run(events, width, random.Random(seed))
    at_once = replayed(events, width)
    assert terminal_lines(written, width) == terminal_lines(at_once, width)
    assert "\x1b" not in at_once
    assert "\x00" not in at_once


def test_each_line_reaches_the_scrollback_once_and_is_never_rewritten() -> None:
    s = Story()
    text = "\n\n".join(f"marker-{n:04} and more words" for n in range(300))
    written, _ = live_run([s.user("go"), s.agent(text), s.finished()], 40, random.Random(1))
    lines = terminal_lines(written, 40)
    for n in range(300):
        assert sum(f"marker-{n:04}" in line for line in lines) == 1
    assert [line for line in lines if "marker" in line] == sorted(line for line in lines if "marker" in line)


@pytest.mark.parametrize(("tokens_per_s", "colour"), [(20, False), (50, True), (200, True)])
def test_few_bytes_for_a_long_answer(tokens_per_s: int, colour: bool) -> None:
    s, clock, out = Story(), Clock(), io.StringIO()
    sentence = "The quick brown fox jumps over the lazy dog and then it explains what it did and why. "
    text = "\n\n".join(sentence * (2 + n % 5) for n in range(40)) + "\n\n" + MARKDOWN * 2
    screen = renderer(out, 80, colour=colour, live=True, clock=clock)
    screen.on(s.user("go"))
    for start in range(0, len(text), 4):
        clock.now_s += 1 / tokens_per_s
        screen.signal(TextDelta(text[start : start + 4]))
        screen.tick()
    screen.on(s.agent(text))
    screen.close()
    visible = len("\n".join(terminal_lines(out.getvalue(), 80)).encode())
    assert len(out.getvalue().encode()) <= 3 * visible


def test_the_live_region_is_bounded_and_gone_at_the_end() -> None:
    s, clock, out = Story(), Clock(), io.StringIO()
    screen = renderer(out, 40, live=True, clock=clock)
    screen.on(s.user("go"))
    screen.signal(TextDelta("one paragraph that never ends " * 400))
    clock.now_s += 1
    screen.tick()
    assert len([line for line in terminal_lines(out.getvalue(), 40) if "paragraph" in line]) <= 22
    screen.suspend()
    assert terminal_lines(out.getvalue(), 40) == ["› go"]
    assert out.getvalue().endswith("\x1b[?25h")
    assert out.getvalue().count("\x1b[?25l") == out.getvalue().count("\x1b[?25h") == 1
    screen.on(s.user("waits until the bottom is ours again"))
    assert terminal_lines(out.getvalue(), 40) == ["› go"]
    screen.close()
    assert terminal_lines(out.getvalue(), 40)[-1] == "› waits until the bottom is ours again"


def test_what_runs_is_seen_and_goes() -> None:
    s, clock, out = Story(), Clock(), io.StringIO()
    screen = renderer(out, 60, live=True, clock=clock)
    asked, started, result = s.call("shell", '{"command": "make"}', "ok", "make · exit 0", exit=0)
    screen.on(s.user("go"))
    screen.on(asked)
    screen.on(started)
    screen.signal(ToolProgress(asked.seq, "".join(f"row {n}\n" for n in range(30))))
    clock.now_s += 2
    screen.tick()
    lines = terminal_lines(out.getvalue(), 60)
    assert lines[2:] == ["○ shell make", "  row 26", "  row 27", "  row 28", "  row 29", lines[-1]]
    assert "running · 2 s" in lines[-1]
    screen.signal(Retrying(1, 4, 2.0, "429 too many"))
    assert terminal_lines(out.getvalue(), 60)[-1] == "↻ retry 1 of 4 in 2 s: 429 too many"
    screen.signal(DiskNearlyFull("5 MB are free"))
    assert terminal_lines(out.getvalue(), 60)[-1] == "✗ 5 MB are free: nothing that has effects is started"
    screen.signal(SavingStopped("no space left"))
    screen.signal(DiskNearlyFull("5 MB are free"))
    assert terminal_lines(out.getvalue(), 60)[-1] == "✗ NOTHING IS BEING SAVED: no space left"
    screen.on(result)
    screen.on(s.finished())
    assert terminal_lines(out.getvalue(), 60)[:3] == ["› go", "", "● shell make  exit 0 · 1.8 s"]
    assert not [line for line in terminal_lines(out.getvalue(), 60) if "row" in line or "retry" in line]


def test_a_record_that_differs_is_said_and_printed() -> None:
    s, out = Story(), io.StringIO()
    screen = renderer(out, 60, live=True, clock=Clock())
    screen.signal(TextDelta("first block\n\nsecond "))
    screen.on(s.agent("first block\n\nanother end"))
    assert terminal_lines(out.getvalue(), 60) == ["first block", "", "another end"]
    screen.signal(TextDelta("shown\n\nmore"))
    screen.on(s.agent("recorded"))
    lines = terminal_lines(out.getvalue(), 60)
    assert lines[3:5] == ["", "shown"]
    assert "differs" in lines[5]
    assert lines[-1] == "recorded"


HOSTILE = {
    "osc52": "\x1b]52;c;aGVsbG8=\x07",
    "osc0": "\x1b]0;title\x1b\\",
    "clear": "\x1b[2J\x1b[H",
    "cpr": "\x1b[6n",
    "c1-csi": "\x9b2J",
    "c1-osc": "\x9d0;x\x9c",
    "bidi": "\u202eevil\u202c \u2066x\u2069",
    "surrogate": "a\ud800b\udfff",
    "nul": "a\x00b\x08\x7f",
    "unterminated": "\x1b]0;never ends",
    "entity": "&#27;[2J &#x9b;2J &#x202e;x",
    "markup": "[bold red]x[/] :smile: [link=http://x]y[/link]",
}


def hostile_story(text: str) -> list[Event]:
    s: Any = Story()
    story: list[Event] = [s.user(text), s.agent(text + "\n\n```py\n" + text + "\n```\n", reasoning=text)]
    story += s.call(text, '{"command": "' + text + '"}', "ok", f"{text}\n{text}", diff=f"@@\n+{text}\n")
    story += s.call("shell", text, "error", f"{text}\n{text}\r{text}")
    return [*story, s.finished("error", text)]


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_steers_the_terminal(name: str, colour: bool) -> None:
    page = SGR.sub("", replayed(hostile_story(HOSTILE[name]), 80, colour=colour))
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page
    )
    live, _ = live_run(hostile_story(HOSTILE[name]), 80, random.Random(2), colour=colour)
    own = re.sub(r"\x1b\[(\d*[ABC]|1?[JK]|\?25[lh])", "", SGR.sub("", live)).replace("\r", "")
    assert "\x1b" not in own
    if name == "markup":
        assert "[bold red]x[/] :smile: [link=http://x]y[/link]" in page


def test_a_terminal_of_another_encoding_gets_question_marks() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    screen = renderer(out, 80)
    screen.on(Story().user("修复"))
    assert raw.getvalue() == b"? ??\n"


@pytest.mark.parametrize("width", [20, 33, 300])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    from rich.cells import cell_len

    for line in replayed(whole_story(), width).split("\n"):
        assert cell_len(line) <= width, line
