"""What a shell line is made of, once it was read: words, redirections, simple commands."""

import re
from typing import Literal, NamedTuple

from agentsh.base.light import dataclass, field

NUMBERS = frozenset({"$?", "$#", "$$", "$!"})
"""Variables that are some number, whatever happened."""
ASSIGNABLE = re.compile(r"[a-z_][a-z0-9_]*|[A-Z]")
"""Names of variables that no shell and no program of a table takes anything from."""


class Unreadable(Exception):
    """A line that is no valid bash, or holds something that is not judged here. why: in a few words."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Word(NamedTuple):
    """One word of a command. texts: all that it can stand for; None where that is not known before it runs.

    pattern: it holds `*`, `?` or `[…]` outside quotes, so that the shell puts names of files in its place.
    raw: as it was written, for people.
    """

    texts: tuple[str, ...] | None
    pattern: bool
    raw: str

    @property
    def text(self) -> str | None:
        """The one text that it stands for, or None."""
        return self.texts[0] if self.texts is not None and len(self.texts) == 1 and not self.pattern else None


def literal(text: str) -> Word:
    """Return the word that is exactly `text`."""
    return Word((text,), False, text)


class Redirect(NamedTuple):
    """`> file` and the like. operator: as written, without the descriptor. target: None for `>&-`."""

    operator: str
    target: Word | None


class Command(NamedTuple):
    """One simple command, wherever in the line it stood. words: name and arguments, none for bare assignments.

    assigns: what stands before it. fed_by: the command whose output it reads, where the line says so. enters: of a
    plain `cd DIR`: `runs` where what comes later in the line comes after it, `guards` where it also needs that it has
    succeeded. repeats: it may run more than once in the same shell.
    """

    words: tuple[Word, ...]
    assigns: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    fed_by: "Command | None" = None
    enters: Literal["", "runs", "guards"] = ""
    repeats: bool = False

    @property
    def shown(self) -> str:
        """The command as people know it, on one line."""
        parts = [f"{name}={word.raw}" for name, word in self.assigns] + [word.raw for word in self.words]
        parts += [f"{r.operator}{r.target.raw if r.target else '-'}" for r in self.redirects]
        return " ".join(" ".join(parts).split())


@dataclass(slots=True)
class Line:
    """A whole shell line. commands: every one that it may run, in the order in which they are written."""

    commands: list[Command] = field(default_factory=list)


def names(text: str) -> frozenset[str]:
    """Return the words of a text as a set: tables of names read better so."""
    return frozenset(text.split())
