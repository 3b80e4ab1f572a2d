"""Rules of the user: `tool`, `tool(path)` or `shell(command)`, read once, matched against what a call does."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from agentsh.base.light import dataclass
from agentsh.base.pattern import later
from agentsh.engine.shell.words import names

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from agentsh.engine.shell.judge import Part

_RULE = later(r"([a-z][a-z_]*)(?:\((.+)\))?", re.DOTALL)
WEB = "web_fetch"
_COMMAND_TOOLS = frozenset({"shell"})
_READING = frozenset({"read", "grep", "list", "glob"})
_WRITING = frozenset({"write", "edit", "apply_patch"})


class BadRule(ValueError):
    """A text that is no rule."""


MAX_SUGGESTED = 4
"""Rules that one yes may make."""
_WITH_SUBCOMMANDS = names("""
    git npm pnpm yarn cargo go make just uv poetry pip pip3 dotnet mvn gradle rake tox nox mix ruff docker
""")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. tool: whose calls. about: a path in the style of .gitignore, or a command; None: every call.

    `read` stands for every tool that only reads files, `write` for every one that changes them. Of `web_fetch` it is
    the host that is matched, as if it were the name of a file. A command is matched
    word by word, `*` inside a word is any text; a last word `*` is any number of further words.
    """

    tool: str
    about: str | None

    def __str__(self) -> str:
        return self.tool if self.about is None else f"{self.tool}({self.about})"

    def matches(self, part: "Part") -> bool:
        """Tell whether a part is surely what the rule names."""
        if part.tool not in self._tools():
            return False
        if self.about is None:
            return True
        if self.tool in _COMMAND_TOOLS:
            return _starts(self.about.split(), part.called or part.words, part.sharp)
        return bool(part.paths) and all(_spec(self.about).match_file(path) for path in part.paths)

    def touches(self, part: "Part") -> bool:
        """Tell whether a part may be what the rule names: for rules that hold something back.

        A rule for a file holds for a command that names it too, whatever the command does with it.
        """
        if self.about is None:
            return part.tool in self._tools()
        if self.tool in _COMMAND_TOOLS:
            about = self.about.split()
            return _may_start(about, part.words) or _may_start(about, part.called)
        # Who may write a file can read it back: a rule against reading holds for writing too.
        if part.tool not in self._tools() | _COMMAND_TOOLS and not (self.tool == "read" and part.tool in _WRITING):
            return False
        return any(_spec(self.about).match_file(path) for path in part.paths)

    @property
    def holds_files(self) -> bool:
        """Whether it is about the reading of certain files."""
        return self.about is not None and bool(self._tools() & _READING)

    def holds(self, path: str) -> bool:
        """Tell whether it is about a file, relative to the root; only where `holds_files`."""
        return self.about is not None and bool(_spec(self.about).match_file(path))

    def uncertain(self, part: "Part") -> bool:
        """Tell whether it cannot be told if a part is what the rule names: a word of it is not known."""
        if part.tool not in _COMMAND_TOOLS or self.about is None:
            return False
        if self.tool in _COMMAND_TOOLS:
            return bool(part.words) and part.words[0] is None
        return part.problem is not None and None in part.words

    def _tools(self) -> frozenset[str]:
        return {"read": _READING, "write": _WRITING}.get(self.tool, frozenset({self.tool}))


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules that hold. deny goes before ask, ask before allow."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


def parse_rule(text: str) -> Rule:
    """Return the rule that a text is.

    Raises:
        BadRule: it is none.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None or (found[2] is not None and not found[2].strip()):
        raise BadRule(f"{text!r} is no rule; one is `tool`, `tool(path)` or `shell(command *)`")
    return Rule(found[1], found[2] and found[2].strip())


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules of a list; those that cannot be read are left out: they come from a log or a file of ours."""
    rules = []
    for text in texts:
        try:
            rules.append(parse_rule(text))
        except BadRule:
            continue
    return tuple(rules)


def suggested(parts: "Sequence[Part]") -> tuple[str, ...]:
    """Return the rules that would let these parts run without a question; empty where there are no sensible ones.

    A command of a tool with subcommands is offered with any arguments (`shell(npm test *)`), any other one exactly
    as it is: a yes to `rm build` is none to `rm`.
    """
    rules: dict[str, None] = {}
    for part in parts:
        if part.problem is None:
            continue
        if part.tool != "shell":
            rules[f"{part.tool}({part.paths[0]})" if part.tool == WEB and part.paths else part.tool] = None
            continue
        words = part.called or part.words
        if not words or any(w is None or not re.fullmatch(r"[^\s()*]+", w) for w in words):
            return ()
        known = [w for w in words if w is not None]
        if known[0] in _WITH_SUBCOMMANDS and len(known) > 1 and not known[1].startswith("-") and part.sharp <= 2:
            rules[f"shell({known[0]} {known[1]} *)"] = None
        else:
            rules[f"shell({' '.join(known)})"] = None
    return tuple(rules) if len(rules) <= MAX_SUGGESTED else ()


def _starts(rule: Sequence[str], words: Sequence[str | None], sharp: int) -> bool:
    open_end = rule[-1] == "*"
    head = rule[:-1] if open_end else rule
    if not words or (open_end and head and len(head) < sharp):
        return False
    if len(words) < len(head) or (len(words) > len(head) and not open_end):
        return False
    return all(word is not None and _like(r, word) for r, word in zip(head, words, strict=False))


def _may_start(rule: Sequence[str], words: Sequence[str | None]) -> bool:
    """Like `_starts`, but for a rule that holds back: further words never save a command, nor does an unknown one."""
    head = rule[:-1] if rule[-1] == "*" else rule
    if not words or words[0] is None or len(words) < len(head):
        return False
    return all(word is None or _like(r, word) for r, word in zip(head, words, strict=False))


def _like(rule: str, word: str) -> bool:
    if "*" not in rule:
        return rule == word
    return re.fullmatch(".*".join(map(re.escape, rule.split("*"))), word, re.DOTALL) is not None


@lru_cache(maxsize=256)
def _spec(pattern: str) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])
