"""A question of the model's: its choices by number, or an answer that is typed."""

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.formatted_text import StyleAndTextTuples

from agentsh.base.text import clean
from agentsh.ports.approver import Answer, Question
from agentsh.ports.asker import UserQuestion
from agentsh.repl.asked import Asked, key_rows
from agentsh.repl.rows import wrapped

LEAST_ROWS = 3
"""Of the question itself, however many choices there are."""


@dataclass(frozen=True, slots=True)
class ModelQuestion(Question):
    """It goes the way of a question for a yes; the answer is its reason. choices: at most nine."""

    choices: tuple[str, ...] = ()

    @staticmethod
    def of(question: UserQuestion) -> "ModelQuestion":
        """Return the question as the prompt takes it."""
        return ModelQuestion("ask_user", question.text, question.text, (), choices=question.choices)


class AskedUser(Asked):
    """One question of the model's. The input line takes an answer once a key has opened it, so not a draft."""

    label = "answer: "

    def __init__(self, question: ModelQuestion, now_s: Callable[[], float]) -> None:
        super().__init__(question, now_s)
        self._model_question = question

    def act(self, data: str) -> None:
        """Take a key: the number of a choice, or what opens the input line, or ends without an answer."""
        choices = self._model_question.choices
        if data == "n":
            self._done(Answer("no"))
        elif data in ("e", "\r", "\n"):
            self.reasoning = True
        elif data.isdecimal() and 1 <= int(data) <= len(choices):
            self._done(Answer("yes", choices[int(data) - 1]))

    def reason(self, text: str) -> None:
        """Take what was typed as the answer; nothing is none."""
        said = clean(text).strip()
        self._done(Answer("yes", said) if said else Answer("no"))

    def shown(self, columns: int, room: int) -> list[StyleAndTextTuples]:
        """Return the question, the choices, and the keys; of a long question as much as there is room for."""
        question = self._model_question
        width = max(columns - 3, 10)
        keys = [] if self.reasoning else key_rows(columns, _keys(len(question.choices)))
        whole = [wrapped(clean(choice), width - 1) for choice in question.choices]
        most = room - len(keys) - LEAST_ROWS
        each = next((n for n in (8, 2) if sum(min(len(rows), n) for rows in whole) <= most), 1)
        choices: list[StyleAndTextTuples] = [
            [("class:ask", f" {number} " if n == 0 else "   "), ("", row)]
            for number, rows in enumerate(whole, 1)
            for n, row in enumerate(_first(rows, each))
        ]
        text = [row for line in clean(question.subject).split("\n") for row in wrapped(line, width) or [""]]
        text = _first(text, max(room - len(choices) - len(keys), LEAST_ROWS))
        rows: list[StyleAndTextTuples] = [
            [("class:ask", "? " if n == 0 else "  "), ("class:name", row)] for n, row in enumerate(text)
        ]
        return [*rows, *choices, *keys]


def _first(rows: list[str], most: int) -> list[str]:
    """Return the first rows, marked where some are left out."""
    return rows if len(rows) <= most else [*rows[: most - 1], rows[most - 1] + "…"]


def _keys(choices: int) -> list[tuple[str, str]]:
    typing = [("e", "type an answer"), ("n", "no answer")]
    return [("1" if choices == 1 else f"1-{choices}", "choose"), *typing] if choices else typing


def asked_of(question: Question, now_s: Callable[[], float]) -> Asked:
    """Return what shows a question and takes its keys."""
    return AskedUser(question, now_s) if isinstance(question, ModelQuestion) else Asked(question, now_s)
