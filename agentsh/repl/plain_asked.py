"""Questions of the line mode: all that is to be known is printed, and a line is the answer."""

import asyncio

from agentsh.base.text import clean, one_line, plural
from agentsh.ports.approver import Answer, Question
from agentsh.repl.ask_user import ModelQuestion

PREVIEW_ROWS = 40


class AskedInWords:
    """A question for a yes. left: lines of the preview that were not shown yet."""

    def __init__(self, question: Question, now_s: float) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.question = question
        self.since_s = now_s
        self.left = clean(question.preview).expandtabs(4).rstrip("\n").split("\n")

    def head(self) -> list[str]:
        """Return what is asked, and the words that answer it."""
        question = self.question
        rows = [f"? {one_line(question.tool, 40)} {one_line(question.subject, 400)}"]
        rows += [f"  {one_line(question.why, 400)}"] if question.why else []
        rows += self.more()
        if question.rules:
            rows.append("  session and project allow: " + ", ".join(one_line(rule, 200) for rule in question.rules))
        return [*rows, self.words()]

    def more(self) -> list[str]:
        """Return the next lines of the preview."""
        some, self.left = self.left[:PREVIEW_ROWS], self.left[PREVIEW_ROWS:]
        rest = [f"  … {plural(len(self.left), 'more line')}: type more"] if self.left else []
        return [f"  {line}" for line in some] + rest

    def words(self) -> str:
        """Return the words that answer it."""
        project = ", project (and in this project from now on)" if self.question.rules else ""
        return f"  type yes, session (yes, for this session){project}, no, or no and why:"

    def answered(self, line: str) -> Answer | None:
        """Return what a line says, or None where it is no answer."""
        word, _, reason = line.strip().partition(" ")
        match word.lower().rstrip(",.:"):
            case "yes" | "y" if not reason:
                return Answer("yes")
            case "session" | "s" if not reason:
                return Answer("session")
            case "project" | "p" if not reason and self.question.rules:
                return Answer("project")
            case "no" | "n":
                return Answer("no", one_line(reason, 1_000) or None)
        return None


class AnsweredInWords(AskedInWords):
    """A question of the model's: a line is the answer, the number of a choice, or, empty, no answer."""

    def __init__(self, question: ModelQuestion, now_s: float) -> None:
        super().__init__(question, now_s)
        self._choices = question.choices

    def head(self) -> list[str]:
        """Return what is asked, and what can be chosen."""
        numbered = [f"  {n} {one_line(choice, 400)}" for n, choice in enumerate(self._choices, 1)]
        return ["? the model asks:", *self.more(), *numbered, self.words()]

    def words(self) -> str:
        """Return what answers it."""
        return "  type " + ("a number or " if self._choices else "") + "an answer; an empty line gives none:"

    def answered(self, line: str) -> Answer:
        """Return what a line says."""
        text = line.strip()
        if text.isascii() and text.isdigit() and 1 <= int(text[:3]) <= len(self._choices):
            return Answer("yes", self._choices[int(text[:3]) - 1])
        return Answer("yes", clean(text)) if text else Answer("no")


def asked_in_words(question: Question, now_s: float) -> AskedInWords:
    """Return a question that is asked now."""
    if isinstance(question, ModelQuestion):
        return AnsweredInWords(question, now_s)
    return AskedInWords(question, now_s)
