"""File name patterns as models write them: `*.py`, `src/**/*.{ts,tsx}`; no pattern takes more than linear time."""

import re
from collections.abc import Callable, Sequence

from agentsh.base.errors import ToolFailed

MAX_ALTERNATIVES = 64

_Part = re.Pattern[str] | None  # None: `**`
_NOTHING = re.compile("(?!)")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a path, relative to where the pattern stands, fits.

    `**` is any number of directories, `*` and `?` stay within one name, `[a-z]`, `[!a]` and `{a,b}` work. A pattern
    without `/` matches names in every directory, as in .gitignore and ripgrep. Other globs are anchored at the top.

    Raises:
        ToolFailed: more than 64 alternatives in braces.
    """
    pattern = pattern.removeprefix("./").lstrip("/")
    if pattern.endswith("/"):
        pattern += "**"
    alternatives = [_parts(alternative) for alternative in _braces(pattern)]
    return lambda path: any(_fits(path.split("/"), parts) for parts in alternatives)


def _parts(pattern: str) -> list[_Part]:
    names = pattern.split("/")
    if len(names) == 1:
        names.insert(0, "**")
    return [None if name == "**" else _name(name) for name in names]


def _fits(names: Sequence[str], parts: Sequence[_Part]) -> bool:
    """Match name by name; on a mismatch only the last `**` has to take one directory more."""
    at = part = resume = 0
    wide = -1
    while at < len(names):
        now = parts[part] if part < len(parts) else _NOTHING
        if now is None:
            wide, resume = part, at
            part += 1
        elif now.fullmatch(names[at]):
            at += 1
            part += 1
        elif wide >= 0:
            resume += 1
            at, part = resume, wide + 1
        else:
            return False
    return all(rest is None for rest in parts[part:])


def _name(part: str) -> "re.Pattern[str]":
    """Translate a pattern for one name. What stands between two stars is taken where it first occurs, for good."""
    chunks = [""]
    i = 0
    while i < len(part):
        c = part[i]
        i += 1
        if c == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif c == "?":
            chunks[-1] += "."
        elif c == "[" and (end := part.find("]", i + 1 + (part[i : i + 1] == "!"))) > 0:
            chunks[-1] += _class(part[i:end])
            i = end + 1
        elif c == "\\" and i < len(part):
            chunks[-1] += re.escape(part[i])
            i += 1
        else:
            chunks[-1] += re.escape(c)
    first, *middle = chunks
    last = ".*" + middle.pop() if middle else ""
    return re.compile(first + "".join(f"(?>.*?{chunk})" for chunk in middle) + last, re.DOTALL)


def _class(inside: str) -> str:
    negated = inside.startswith("!")
    # Escaped: all that means something in a class of Python but not in one of a glob.
    escaped = re.sub(r"[\\\[&~|^]", r"\\\g<0>", inside[negated:])
    found = f"[{'^' if negated else ''}{escaped}]"
    try:
        re.compile(found)
    except re.error:
        return re.escape(f"[{inside}]")
    return found


def _braces(pattern: str) -> list[str]:
    """Return what `{a,b}` stands for; a brace without partner or comma is a character."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(todo) + len(done) > MAX_ALTERNATIVES:
            raise ToolFailed(f"the pattern has more than {MAX_ALTERNATIVES} alternatives in braces")
        current = todo.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", current)  # the innermost first
        if found is None:
            done.append(current)
        else:
            todo += [current[: found.start()] + choice + current[found.end() :] for choice in found[1].split(",")]
    return done
