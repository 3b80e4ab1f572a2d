"""A question of the model's: its choices by number, or an answer that is typed."""

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.formatted_text import StyleAndTextTuples

from agentsh.base.text import clean
from agentsh.ports.approver import Answer, Question
from agentsh.ports.asker import UserQuestion
from agentsh.repl.asked import Asked, key_rows
from agentsh.repl.rows import wrapped


@dataclass(frozen=True, slots=True)
class ModelQuestion(Question):
    """It goes the way of a question for a yes; the answer is its reason. choices: at most nine."""

    choices: tuple[str, ...] = ()

    @staticmethod
    def of(question: UserQuestion) -> "ModelQuestion":
        """Return the question as the prompt takes it."""
        return ModelQuestion("ask_user", question.text, question.text, (), choices=question.choices)


class AskedUser(Asked):
    """One question of the model's. Without choices the input line takes the answer at once."""

    label = "answer: "

    def __init__(self, question: ModelQuestion, now_s: Callable[[], float]) -> None:
        super().__init__(question, now_s)
        self._model_question = question
        self.reasoning = not question.choices

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
        choices: list[StyleAndTextTuples] = [
            [("class:ask", f" {number} " if n == 0 else "   "), ("", row)]
            for number, choice in enumerate(question.choices, 1)
            for n, row in enumerate(wrapped(clean(choice), width))
        ]
        text = [row for line in clean(question.subject).split("\n") for row in wrapped(line, width) or [""]]
        most = max(room - len(choices) - len(keys), 1)
        if len(text) > most:
            text = [*text[: max(most - 1, 0)], "…"]
        rows: list[StyleAndTextTuples] = [
            [("class:ask", "? " if n == 0 else "  "), ("class:name", row)] for n, row in enumerate(text)
        ]
        return [*rows, *choices, *keys]


def _keys(choices: int) -> list[tuple[str, str]]:
    numbers = "1" if choices == 1 else f"1-{choices}"
    return [(numbers, "choose"), ("e", "type an answer"), ("n", "no answer")]


def asked_of(question: Question, now_s: Callable[[], float]) -> Asked:
    """Return what shows a question and takes its keys."""
    return AskedUser(question, now_s) if isinstance(question, ModelQuestion) else Asked(question, now_s)
