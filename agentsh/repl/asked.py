"""A question that waits for one key: what is to be done, and what was typed in the meantime."""

import asyncio
import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from prompt_toolkit.formatted_text import StyleAndTextTuples

from agentsh.base.text import clean, one_line, plural
from agentsh.ports.approver import Answer, Question
from agentsh.repl.rows import cut, edged

PREVIEW_ROWS = 15
REASON_CHARS = 1_000
ARM_S = 0.25
"""Keys count as an answer only after this much silence since the question was first drawn: it is seen by then."""
WHY_ROWS = 3
KEYS = (("y", "yes"), ("s", "yes, for this session"), ("n", "no"), ("e", "no, and say why"))
FOR_PROJECT = ("p", "for this project")
"""Offered where a rule can be told that a lasting yes makes."""

Verdict = Literal["yes", "session", "project", "no"]
_VERDICTS: dict[str, Verdict] = {"y": "yes", "s": "session", "p": "project", "n": "no"}


class Asked:
    """One question. answer: done once there is one. typed: keys that came too early to be an answer.

    reasoning: the input line takes the reason for a no, or whatever `label` says.
    """

    label = "no, because: "

    def __init__(self, question: Question, now_s: Callable[[], float]) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.typed: list[str] = []
        self.reasoning = False
        self._question = question
        self._first = self._next = 0
        self._now_s = now_s
        self._quiet_from_s: float | None = None

    def key(self, data: str) -> None:
        """Take a key: an answer, or one that was typed before the question was seen."""
        now = self._now_s()
        if self._quiet_from_s is None or now - self._quiet_from_s < ARM_S:
            if self._quiet_from_s is not None:
                self._quiet_from_s = now
            self.typed.append(data.replace("\r", "\n"))
            return
        self.act(data)

    def act(self, data: str) -> None:
        """Take a key that is an answer, or shows more."""
        if data == "e":
            self.reasoning = True
        elif data == " ":
            self._first = self._next
        elif (verdict := _VERDICTS.get(data)) and (verdict != "project" or self._question.rules):
            self._done(Answer(verdict))

    def reason(self, text: str) -> None:
        """Say no, for this reason."""
        self._done(Answer("no", one_line(text, REASON_CHARS) or None))

    def rows(self, columns: int, room: int) -> list[StyleAndTextTuples]:
        """Return the question as it is shown; from the first time on, silence is waited for."""
        if self._quiet_from_s is None:
            self._quiet_from_s = self._now_s()
        return self.shown(columns, room)

    def shown(self, columns: int, room: int) -> list[StyleAndTextTuples]:
        """Return the rows of the question."""
        rows, self._next = question_rows(self._question, columns, room, self._first)
        return rows

    def _done(self, answer: Answer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


@lru_cache(maxsize=4)
def _laid_out(preview: str, columns: int) -> list[tuple[str, str]]:
    """Return the rows of a preview, each with its style. Nothing is cut: a yes is to all of it."""
    rows: list[tuple[str, str]] = []
    for line in clean(preview).expandtabs(4).rstrip("\n").split("\n"):
        style = {"+": "class:add", "-": "class:del"}.get(line[:1], "class:dim")
        rows += [(style, row) for row in edged(line, max(columns - 3, 8))]
    return rows


def question_rows(
    question: Question, columns: int, rows: int, first: int = 0
) -> tuple[list[StyleAndTextTuples], int]:
    """Return what is to be done, why it is asked, and the keys: nothing in it can steer the terminal, each row fits.

    first: the row of the preview to begin with. Also returned is the one that the space bar goes on with, or 0.
    """
    all_rows = _laid_out(question.preview, columns)
    first = min(first, len(all_rows) - 1)
    lines = all_rows[first:]
    keys = key_rows(columns, [*KEYS[:2], FOR_PROJECT, *KEYS[2:]] if question.rules else KEYS)
    why = textwrap.wrap(one_line(question.why, 400), max(columns - 4, 10))[:WHY_ROWS]
    room = max(min(PREVIEW_ROWS, rows - len(keys) - 1 - len(why) - bool(question.rules)), 1)
    if first or len(lines) > room:  # what is above and below is told in a row each
        room = max(room - bool(first) - 1, 1)
    left_out = len(lines) - room
    head: StyleAndTextTuples = [
        ("class:ask", "? "),
        ("class:name", one_line(question.tool, 40)),
        ("", cut(f" {one_line(question.subject, 400)}", columns - len(question.tool) - 3)),
    ]
    found = [head]
    found += [[("class:ask", cut(f"  {row}", columns - 1))] for row in why]
    if first:
        found.append([("class:dim", cut(f"  … {plural(first, 'line')} above", columns - 1))])
    found += [[(style, f"  {row}")] for style, row in lines[:room]]
    if left_out > 0:
        found.append([("class:dim", cut(f"  … {plural(left_out, 'more line')} (space)", columns - 1))])
    if question.rules:
        found.append([("class:dim", cut("  always: " + ", ".join(question.rules), columns - 1))])
    return found + keys, first + room if left_out > 0 else 0


def key_rows(columns: int, keys: Sequence[tuple[str, str]]) -> list[StyleAndTextTuples]:
    """Return which key means what, in as many rows as that takes."""
    rows: list[StyleAndTextTuples] = [[]]
    used = 0
    for key, meaning in keys:
        width = len(meaning) + 4
        if used and used + width > columns:
            rows.append([])
            used = 0
        rows[-1] += [("class:ask", f" {key} "), ("", f"{meaning} ")]
        used += width
    return rows
