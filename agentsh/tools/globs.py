"""File name patterns as models write them: `*.py`, `src/**/*.{ts,tsx}`."""

import re

from agentsh.base.errors import ToolFailed

MAX_ALTERNATIVES = 64


def matcher(pattern: str) -> "re.Pattern[str]":
    """Return a regular expression for whole paths relative to the workspace.

    `**` is any number of directories, `*` and `?` stay within one name, `[a-z]`, `[!a]` and `{a,b}` work. A pattern
    without `/` matches names in every directory, as in .gitignore and ripgrep. Other globs are anchored at the top.

    Raises:
        ToolFailed: more than 64 alternatives in braces.
    """
    pattern = pattern.removeprefix("./").lstrip("/")
    if pattern.endswith("/"):
        pattern += "**"
    alternatives = _braces(pattern)
    return re.compile("|".join(f"(?:{_one(alternative)})" for alternative in alternatives), re.DOTALL)


def _one(pattern: str) -> str:
    """Translate a pattern without braces. No `.*` stands beside another without a `/` between: linear matching."""
    parts = pattern.split("/")
    if len(parts) == 1 and parts != ["**"]:
        parts.insert(0, "**")
    out = ""
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "**":
            if i and parts[i - 1] == "**":
                continue
            out += ".+" if last else "(?:.*/)?"
        else:
            out += _name(part) + ("" if last else "/")
    return out


def _name(part: str) -> str:
    out, i = "", 0
    while i < len(part):
        c = part[i]
        i += 1
        if c == "*":
            while part[i : i + 1] == "*":
                i += 1
            out += "[^/]*"
        elif c == "?":
            out += "[^/]"
        elif c == "[" and (end := part.find("]", i + 1 + (part[i : i + 1] == "!"))) > 0:
            inside = part[i:end].replace("\\", "\\\\").replace("[", "\\[").replace("&&", "\\&&")
            inside = "^" + inside[1:] if inside.startswith("!") else inside
            out += f"(?!/)[{inside}]" if _is_class(inside) else re.escape(part[i - 1 : end + 1])
            i = end + 1
        elif c == "\\" and i < len(part):
            out += re.escape(part[i])
            i += 1
        else:
            out += re.escape(c)
    return out


def _is_class(inside: str) -> bool:
    try:
        re.compile(f"[{inside}]")
    except re.error:
        return False
    return True


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
