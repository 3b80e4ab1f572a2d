"""Secrets stay out of the log: each is replaced by `‹secret:8 hex›` before anything is written, shown or sent.

The place in the text is all that is kept. A tool that is to write what a placeholder stands for gets it back from the
memory of this process, or is refused: no placeholder ever reaches a file.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from agentsh.context.images import KINDS
from agentsh.engine.secret_shapes import Found, find, may_begin

PLACEHOLDER = re.compile("‹secret:([0-9a-f]{8})›")
SHORTEST_CHARS = 8
"""Nothing shorter holds a name and its value."""
MAX_KNOWN = 10_000
"""Values that one process remembers; the oldest go first, and their placeholders are refused from then on."""


class UnknownSecret(Exception):
    """A placeholder whose value this process has not seen."""


class Secrets:
    """Finds, replaces and gives back the secrets of one session.

    known: values that are secret wherever they stand. key: makes the hex digits, so that they tell nothing of a value
    to whoever reads the log; called once, when the first is found. patterns: more of what is secret: group 1 of each,
    or all of it. allow: values that are not. on: False leaves every text as it is.
    """

    def __init__(
        self,
        known: Iterable[str] = (),
        *,
        key: Callable[[], bytes] = lambda: os.urandom(32),
        patterns: Iterable[str] = (),
        allow: Iterable[str] = (),
        on: bool = True,
    ) -> None:
        self._on = on
        self._make_key = key
        self._key: bytes | None = None
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._allow = frozenset(allow)
        self._values: dict[str, str] = {}
        self._everywhere: dict[str, None] = {value: None for value in known if value and value not in self._allow}

    def clean(self, text: str) -> str:
        """Return `text` with every secret replaced. Cleaning twice is cleaning once."""
        if not self._on:
            return text
        parts: list[str] = []
        at = 0
        for start, end, _ in self._found(text):
            parts += (text[at:start], self._placeholder(text[start:end]))
            at = end
        return "".join([*parts, text[at:]]) if parts else text

    def payload(self, value: Any) -> Any:
        """Return JSON with every string cleaned, names of members excepted; what needs no change is shared."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            if value.get("media_type") in KINDS:  # base64 of an image: no text, and megabytes of it
                return value
            members = {name: self.payload(inner) for name, inner in value.items()}
            return members if any(members[name] is not value[name] for name in value) else value
        if isinstance(value, list | tuple):
            items = [self.payload(inner) for inner in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def json(self, text: str) -> str:
        """Return a text of JSON with every string in it cleaned; what is no JSON is cleaned as text."""
        if not self._on:
            return text
        try:
            value = json.loads(text)
            cleaned = self.payload(value)
        except (ValueError, RecursionError):
            return self.clean(text)
        return text if cleaned is value else json.dumps(cleaned, ensure_ascii=False, separators=(",", ":"))

    def may_grow(self, line: str, word: str) -> bool:
        """Return whether `word`, which ends `line` so far, has to be waited for: it may become a secret."""
        return self._on and (may_begin(line, word) or any(value.startswith(word) for value in list(self._everywhere)))

    def restore(self, value: Any) -> Any:
        """Return JSON with the values in the place of their placeholders.

        Raises:
            UnknownSecret: the value of one is not known here.
        """
        if isinstance(value, str):
            return PLACEHOLDER.sub(self._value, value) if "‹secret:" in value else value
        if isinstance(value, Mapping):
            return {name: self.restore(inner) for name, inner in value.items()}
        return [self.restore(inner) for inner in value] if isinstance(value, list | tuple) else value

    def _value(self, match: "re.Match[str]") -> str:
        try:
            value = self._values[match[0]]
        except KeyError:
            raise UnknownSecret(match[0]) from None
        self._everywhere[value] = None  # a diff or an output of what is made of it must not show it
        return value

    def _found(self, text: str) -> list[Found]:
        """Return what is to be replaced, in order: of what overlaps, all, as one."""
        found = [f for f in self._candidates(text) if text[f.start : f.end] not in self._allow]
        new = dict.fromkeys(text[f.start : f.end] for f in found if f.remember).keys() - self._everywhere.keys()
        self._everywhere |= dict.fromkeys(new)
        found += [f for value in new for f in _each(text, value)]
        result: list[Found] = []
        for one in sorted(found, key=lambda f: (f.start, -f.end)):
            if result and one.start < result[-1].end:
                last = result.pop()
                one = Found(last.start, max(last.end, one.end), last.remember)
            result.append(one)
        return result

    def _candidates(self, text: str) -> Iterator[Found]:
        if len(text) >= SHORTEST_CHARS:
            yield from find(text)
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                group = 1 if pattern.groups and match[1] is not None else 0
                if match[group]:
                    yield Found(*match.span(group), remember=True)
        for value in list(self._everywhere):  # other threads add to it
            yield from _each(text, value)

    def _placeholder(self, value: str) -> str:
        if self._key is None:
            self._key = self._make_key()
        salt = b""
        while True:
            data = value.encode("utf-8", "surrogatepass") + salt
            name = f"‹secret:{blake2b(data, digest_size=4, key=self._key).hexdigest()}›"
            if self._values.setdefault(name, value) == value:
                break
            salt += b"\0"  # another value has these digits
        if len(self._values) > MAX_KNOWN:
            first = next(iter(self._values))
            self._everywhere.pop(self._values.pop(first), None)
        return name


def _each(text: str, value: str) -> Iterator[Found]:
    """Yield every place of a value in a text."""
    start = text.find(value)
    while start >= 0:
        yield Found(start, start + len(value), remember=False)
        start = text.find(value, start + len(value))
