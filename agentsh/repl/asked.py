"""A question that waits for one key: what is to be done, and what was typed in the meantime."""

import asyncio
from collections.abc import Callable
from typing import Literal

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from agentsh.base.text import clean, one_line, plural
from agentsh.ports.approver import Answer, Question

PREVIEW_ROWS = 15
REASON_CHARS = 1_000
ARM_S = 0.25
"""Keys count as an answer only after this much silence: whoever was typing has seen the question by then."""
KEYS = (("y", "yes"), ("s", "yes, for this session"), ("n", "no"), ("e", "no, and say why"))


class Asked:
    """One question. answer: done once there is one. typed: keys that came too early to be an answer.

    reasoning: the input line takes the reason for a no.
    """

    def __init__(self, question: Question, now_s: Callable[[], float]) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.typed: list[str] = []
        self.reasoning = False
        self._question = question
        self._now_s = now_s
        self._quiet_from_s = now_s()

    def key(self, data: str) -> None:
        """Take a key: an answer, or one that was typed before the question was seen."""
        now = self._now_s()
        if now - self._quiet_from_s < ARM_S:
            self._quiet_from_s = now
            self.typed.append(data.replace("\r", "\n"))
            return
        verdicts: dict[str, Literal["yes", "session", "no"]] = {"y": "yes", "s": "session", "n": "no"}
        if data == "e":
            self.reasoning = True
        elif verdict := verdicts.get(data):
            self._done(Answer(verdict))

    def reason(self, text: str) -> None:
        """Say no, for this reason."""
        self._done(Answer("no", one_line(text, REASON_CHARS) or None))

    def rows(self, columns: int, room: int) -> list[StyleAndTextTuples]:
        """Return the question as it is shown."""
        return question_rows(self._question, columns, room)

    def _done(self, answer: Answer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


def question_rows(question: Question, columns: int, rows: int) -> list[StyleAndTextTuples]:
    """Return what is to be done and the keys: nothing in it can steer the terminal, each row fits."""
    lines = clean(question.preview).expandtabs(4).rstrip("\n").split("\n")
    keys = _keys(columns)
    room = max(min(PREVIEW_ROWS, rows - len(keys) - 1), 1)
    left_out = len(lines) - room
    head: StyleAndTextTuples = [
        ("class:ask", "? "),
        ("class:name", one_line(question.tool, 40)),
        ("", _cut(f" {one_line(question.subject, 400)}", columns - len(question.tool) - 3)),
    ]
    found = [head]
    for line in lines[:room]:
        style = {"+": "class:add", "-": "class:del"}.get(line[:1], "class:dim")
        found.append([(style, _cut("  " + line, columns - 1))])
    if left_out > 0:
        found.append([("class:dim", f"  … {plural(left_out, 'more line')}")])
    return found + keys


def _keys(columns: int) -> list[StyleAndTextTuples]:
    rows: list[StyleAndTextTuples] = [[]]
    used = 0
    for key, meaning in KEYS:
        width = len(meaning) + 4
        if used and used + width > columns:
            rows.append([])
            used = 0
        rows[-1] += [("class:ask", f" {key} "), ("", f"{meaning} ")]
        used += width
    return rows


def _cut(line: str, columns: int) -> str:
    if get_cwidth(line) <= columns:
        return line
    kept, used = [], 1
    for char in line:
        used += get_cwidth(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept) + "…"
