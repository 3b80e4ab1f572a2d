"""Questions of approval at the prompt: which keys answer, what is shown before, what no key answers."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from prompt_toolkit.input import PipeInput
from prompt_toolkit.utils import get_cwidth

from agentsh.ports.approver import Answer, Question
from agentsh.repl.actions import Actions
from agentsh.repl.ask import TerminalApprover
from agentsh.repl.asked import ARM_S, Asked, question_rows
from agentsh.repl.prompt import Prompt
from agentsh.repl.terminal import ReplIO
from tests.repl.test_loop import piped, until

QUESTION = Question("shell", "rm -rf build", "command: rm -rf build", ("exec",))


@contextmanager
def asked(now_s: Callable[[], float] = time.monotonic) -> Iterator[tuple[PipeInput, ReplIO, Prompt]]:
    """A prompt alone, whose keys do nothing but answer."""
    with piped() as (keys, io):
        actions = Actions(lambda *_: None, lambda *_: None, lambda: None, lambda: False, lambda: True)
        prompt = Prompt(io, lambda: "status", list, actions, now_s)
        io.ask = prompt.ask
        yield keys, io, prompt


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("y", Answer("yes")),
        ("s", Answer("session")),
        ("xn", Answer("no")),
        ("pn", Answer("no")),  # without a rule there is no yes for the project
        ("  y", Answer("yes")),
        ("enot now\r", Answer("no", "not now")),
        ("e\r", Answer("no")),
        ("\x12\x13enot \x12now\r", Answer("no", "not now")),  # no search of the history takes the answer
    ],
)
async def test_answers_by_key(keys: str, answer: Answer) -> None:
    now_s = 1.0
    with asked(lambda: now_s) as (source, io, prompt):
        running = asyncio.create_task(prompt.run("a draft"))
        await prompt.ready()
        asking = asyncio.create_task(TerminalApprover(io).ask(QUESTION))
        await asyncio.sleep(0)
        source.send_text(" and more")  # typed before the question was seen: it is no answer
        await until(lambda: prompt.asked and "".join(prompt.asked.typed) == " and more")
        now_s += ARM_S + 0.1
        source.send_text(keys)
        assert await asyncio.wait_for(asking, 30) == answer
        await until(lambda: prompt.buffer.text == "a draft and more")
        prompt.leave()
        await asyncio.wait_for(running, 30)


async def test_a_question_ends_a_search_of_the_history() -> None:
    now_s = 1.0
    with asked(lambda: now_s) as (source, io, prompt):
        running = asyncio.create_task(prompt.run("a draft"))
        await prompt.ready()
        source.send_text("\x12so\x1a")
        await until(lambda: prompt._session.app.layout.current_buffer is not prompt.buffer)
        await until(lambda: (now := prompt._session.app.layout.current_buffer) and now.text == "so")
        asking = asyncio.create_task(TerminalApprover(io).ask(QUESTION))
        await until(lambda: prompt.asked)
        now_s += ARM_S + 0.1
        source.send_text("enot now\r")
        assert await asyncio.wait_for(asking, 30) == Answer("no", "not now")
        await until(lambda: prompt.buffer.text == "a draft")
        assert prompt._session.app.layout.current_buffer is prompt.buffer
        prompt.leave()
        await asyncio.wait_for(running, 30)


async def test_a_question_whose_turn_is_interrupted_is_withdrawn() -> None:
    with asked() as (_, io, prompt):
        running = asyncio.create_task(prompt.run())
        await prompt.ready()
        asking = asyncio.create_task(TerminalApprover(io).ask(QUESTION))
        await until(lambda: prompt.asked)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert prompt.asked is None
        prompt.leave()
        await asyncio.wait_for(running, 30)


def test_a_question_is_cut_and_clean() -> None:
    preview = "\n".join(f"line {n} \x1b[2J" + "修" * 100 for n in range(40))
    question = Question("shell\x1b]0;x\x07", "s" * 300, preview, ())
    rows, following = question_rows(question, 40, 30)
    lines = ["".join(part[1] for part in row) for row in rows]
    assert "\x1b" not in "".join(lines)
    assert f"  … {40 * 6 - following} more lines (space)" in lines
    assert following > 10
    assert len(rows) <= 30
    assert all(get_cwidth(line) <= 40 for line in lines)
    assert " ".join("".join(lines[-2:]).split()) == "y yes s yes, for this session n no e no, and say why"


@pytest.mark.parametrize(("columns", "rows"), [(40, 30), (80, 10), (20, 9)])
def test_all_that_a_yes_is_to_can_be_seen_before(columns: int, rows: int) -> None:
    words = [f"word{n:03}" for n in range(120)]
    question = Question("shell", "x", " && ".join(words[:60]) + "\n" + " ".join(words[60:]), ("exec",), "why")
    pages, at = [], 0
    while True:
        page, at = question_rows(question, columns, rows, at)
        pages += [row[0][1][2:] for row in page if row[0][0] == "class:dim" and "…" not in row[0][1]]
        if not at:
            break
    seen = "".join(pages)
    assert [word for word in words if word not in seen] == []


def test_a_lasting_yes_says_what_it_allows() -> None:
    preview = "\n".join(f"line {n}" for n in range(60))
    why, rules = "npm test: it may change something", ("shell(npm test *)",)
    question = Question("shell", "npm test", preview, ("exec",), why, rules)
    text = "\n".join("".join(part[1] for part in row) for row in question_rows(question, 60, 30, 29)[0])
    assert "line 29" in text
    assert "line 28" not in text
    assert "29 lines above" in text
    assert why in text
    assert "always: shell(npm test *)" in text
    assert " p for this project" in text


async def test_a_yes_for_the_project() -> None:
    question = Question("shell", "npm test", "npm test", ("exec",), "why", ("shell(npm test *)",))
    asking = Asked(question, iter([0.0, 1.0]).__next__)
    asking.rows(80, 20)
    asking.key("p")
    assert await asking.answer == Answer("project")


async def test_no_key_answers_what_was_not_drawn_yet() -> None:
    now_s = 0.0
    asking = Asked(QUESTION, lambda: now_s)
    now_s = 60.0  # a machine that does much else
    asking.key("y")
    asking.rows(80, 20)
    asking.key("n")
    assert asking.typed == ["y", "n"]
    assert not asking.answer.done()
    now_s += ARM_S
    asking.rows(80, 20)
    asking.key("y")
    assert await asking.answer == Answer("yes")
