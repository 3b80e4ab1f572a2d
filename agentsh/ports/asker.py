"""The port to whoever can answer a question of the model's."""

from typing import NamedTuple, Protocol


class UserQuestion(NamedTuple):
    """What the model wants to know. choices: answers that it offers; any other answer is as good."""

    text: str
    choices: tuple[str, ...] = ()


class Asker(Protocol):
    """Asks. Where nobody can be asked, tools are given None instead of one of these."""

    async def ask_user(self, question: UserQuestion) -> str | None:
        """Return the answer, however long it takes; None where nobody wants to answer. Cancellation withdraws it."""
        ...
