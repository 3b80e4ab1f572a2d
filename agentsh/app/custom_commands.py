"""Commands that users write for themselves: one Markdown file each, whose text is sent as a message.

`~/.agentsh/commands/NAME.md`, and `.agentsh/commands/NAME.md` beside the agentsh.toml of a trusted project. The
user's own win over the project's; the built-in ones win over both. A file may begin with `description` and
`argument-hint` between two lines of `---`.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agentsh.app.paths import Homes, user_home
from agentsh.base.text import clean, one_line

NAME = re.compile(r"([a-z0-9][a-z0-9_-]{0,39})\.md")
MAX_BYTES = 100_000
MAX_FILES = 200
"""Of one directory; further ones are not read."""
_HEAD = re.compile(r"\A---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)


class CustomFile(NamedTuple):
    """One command. text: what is sent, without the head of the file."""

    name: str
    usage: str
    summary: str
    text: str
    file: str


def directories(homes: Homes, env: Mapping[str, str]) -> list[tuple[Path, bool]]:
    """Return where commands are kept, the first to win first, and whether links in there are followed.

    In a project they are not: a link could send a file that nobody meant to send.
    """
    own = user_home(env)
    found = [(own / "commands", True)]
    project = homes.write
    if project.trusted and project.root != own:
        found.append((project.root / ".agentsh" / "commands", False))
    return found


def custom_commands(places: Sequence[tuple[Path, bool]]) -> dict[str, CustomFile]:
    """Return the commands by name; a file that does not read is none."""
    found: dict[str, CustomFile] = {}
    for directory, links in places:
        if not links and (directory.is_symlink() or directory.parent.is_symlink()):
            continue
        try:
            names = sorted(os.listdir(directory))[:MAX_FILES]
        except OSError:
            continue
        for name in names:
            match = NAME.fullmatch(name)
            if match is not None and match[1] not in found:
                text = _read(directory / name, links=links)
                if text is not None:
                    found[match[1]] = _parsed(match[1], text, directory / name)
    return found


def _read(file: Path, *, links: bool) -> str | None:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    try:
        fd = os.open(file, flags)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(os.dup(fd), "rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        return None
    try:
        return clean(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def _parsed(name: str, text: str, file: Path) -> CustomFile:
    match = _HEAD.match(text)
    head: dict[str, str] = {}
    if match is not None:
        for line in (match[1] or "").split("\n"):
            key, colon, value = line.partition(":")
            if colon:
                head[key.strip().lower()] = value.strip().strip("\"'")
        text = text[match.end() :]
    first = next((line.strip("# ").strip() for line in text.split("\n") if line.strip()), "")
    summary = one_line(head.get("description") or first, 120)
    return CustomFile(name, one_line(head.get("argument-hint", ""), 60), summary, text, str(file))
