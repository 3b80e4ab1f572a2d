"""What an input can go on with: slash commands by their beginning, files of the workspace by parts of their path."""

import re
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

from agentsh.repl.backend import CustomCommand
from agentsh.repl.commands import COMMANDS

MAX_SHOWN = 7
_COMMAND = re.compile(r"/([a-z0-9_-]*)\Z")
_FILE = re.compile(r'(?:^|(?<=\s))@([^\s"]*)\Z')


class Candidate(NamedTuple):
    """One way to go on. text: put in place of the last `length` characters. shown, note: how it looks in the list."""

    text: str
    length: int
    shown: str
    note: str


NO_COMMANDS: Mapping[str, CustomCommand] = {}


def command_candidates(before: str, custom: Mapping[str, CustomCommand] = NO_COMMANDS) -> list[Candidate]:
    """Return the commands that an input line, up to its cursor, may become. custom: those that the user wrote."""
    match = _COMMAND.match(before)
    if match is None:
        return []
    typed = match[1]
    known = [(name, command.usage, command.summary) for name, command in COMMANDS.items()]
    known += [(name, own.usage, own.summary) for name, own in custom.items() if name not in COMMANDS]
    return [
        Candidate(f"/{name} ", len(before), f"/{name} {usage}".rstrip(), summary)
        for name, usage, summary in known
        if name.startswith(typed)
    ]


def file_word(before: str) -> str | None:
    """Return what was typed of a path behind an `@` that ends the text, or None."""
    match = _FILE.search(before)
    return match[1] if match else None


def mention(path: str) -> str:
    """Return how a path is mentioned in a message."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')


def mentions(text: str) -> list[str]:
    """Return the paths that a message mentions, each once, in order."""
    found = [quoted or plain for quoted, plain in _MENTION.findall(text)]
    return list(dict.fromkeys(found))


class Files:
    """The paths of a workspace, to be found by parts. Remembers who is still in for what was typed last."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = paths
        self._low = [path.lower() for path in paths]
        self._typed = ""
        self._in: Sequence[int] = range(len(paths))

    def candidates(self, typed: str) -> list[Candidate]:
        """Return the best files for what was typed behind the `@`, best first."""
        return [Candidate(mention(path) + " ", len(typed) + 1, path, "") for path in self.best(typed)]

    def best(self, typed: str) -> list[str]:
        """Return the paths in which all that was typed is found in its order, at most `MAX_SHOWN`, the best first.

        The order: the name begins with it, the name holds it, the path holds it, its characters are there in this
        order; then the shorter path. Case does not matter.
        """
        wanted = typed.lower()
        self._narrow(wanted)
        if not wanted:
            return sorted(self._paths, key=lambda path: (path.count("/"), path))[:MAX_SHOWN]
        classes: tuple[list[str], ...] = ([], [], [], [])
        for n in self._in:
            low = self._low[n]
            name_at = low.rfind("/") + 1
            in_name = low.find(wanted, name_at)
            if in_name >= 0:
                classes[0 if in_name == name_at else 1].append(self._paths[n])
            else:
                classes[2 if wanted in low else 3].append(self._paths[n])
        found: list[str] = []
        for some in classes:
            found += nsmallest(MAX_SHOWN - len(found), some, key=lambda path: (len(path), path))
        return found

    def _narrow(self, wanted: str) -> None:
        """Keep those that hold the characters in this order: with each character typed there are fewer to look at."""
        if not wanted.startswith(self._typed):
            self._typed, self._in = "", range(len(self._paths))
        for end in range(len(self._typed) + 1, len(wanted) + 1):
            some = wanted[:end]
            holds = re.compile(".*?".join(re.escape(char) for char in some)).search
            low = self._low
            self._in = [n for n in self._in if holds(low[n])] if end > 1 else [n for n in self._in if some in low[n]]
        self._typed = wanted
