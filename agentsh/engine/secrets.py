"""Secrets stay out of the log: each is replaced by `‹secret:8 hex›` before anything is written, shown or sent.

The place in the text is all that is kept. A tool that is to write what a placeholder stands for gets it back from the
memory of this process, or is refused: no placeholder ever reaches a file.
"""

import json
import os
import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from agentsh.base.pattern import later
from agentsh.context.images import KINDS
from agentsh.engine.secret_shapes import Found, find, may_begin, strong

PLACEHOLDER = later("‹secret:([0-9a-f]{8})›")
SHORTEST_CHARS = 8
"""Nothing shorter holds a name and its value."""
LARGE_CHARS, KEPT_CLEANED = 10_000, 8
"""Texts from this length on are not looked through twice, as long as they are among the last ones."""
MAX_EVERYWHERE = 2_000
"""Values that are looked for in every text; the oldest go first."""
SHORTEST_HALF, LONGEST_HALF = 6, 300
"""Of a value that a cut went through, in characters: what is left of it is a secret too."""
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
        self._lock = threading.RLock()  # texts are cleaned in threads too
        self._known = {value for value in known if value} - self._allow
        self._values: dict[str, str] = {}
        self._everywhere: dict[str, None] = {}
        self._cleaned: dict[str, None] = {}

    def know(self, value: str) -> None:
        """Have a value replaced wherever it stands, from now on and for good."""
        if value and value not in self._allow:
            with self._lock:
                self._known.add(value)
                self._cleaned.clear()

    def clean(self, text: str) -> str:
        """Return `text` with every secret replaced. Cleaning twice is cleaning once."""
        if not self._on or len(text) < SHORTEST_CHARS:
            return text
        with self._lock:
            if text in self._cleaned:  # a result is cleaned before it is cut, and once more as a fact
                return text
            result = self._replaced(text)
            if len(result) >= LARGE_CHARS:
                self._cleaned[result] = None
                if len(self._cleaned) > KEPT_CLEANED:
                    del self._cleaned[next(iter(self._cleaned))]
        return result

    def literal(self, text: str) -> None:
        """Take note of placeholders that stand in a file as they are, such as an example of one: they stay so."""
        if "‹secret:" in text:
            with self._lock:
                for match in PLACEHOLDER.finditer(text):
                    self._values.setdefault(match[0], match[0])

    def _replaced(self, text: str) -> str:
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
            image = value.get("media_type") in KINDS  # its content is base64: no text, and megabytes of it
            members = {
                name: inner if image and name == "content" else self.payload(inner) for name, inner in value.items()
            }
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
        if not self._on or not word:
            return False
        with self._lock:
            return may_begin(line, word) or any(value.startswith(word) for value in (*self._everywhere, *self._known))

    def restore(self, value: Any) -> Any:
        """Return JSON with the values in the place of their placeholders.

        Raises:
            UnknownSecret: the value of one is not known here.
        """
        if not self._on:
            return value
        if isinstance(value, str):
            return PLACEHOLDER.sub(self._value, value) if "‹secret:" in value else value
        if isinstance(value, Mapping):
            return {name: self.restore(inner) for name, inner in value.items()}
        return [self.restore(inner) for inner in value] if isinstance(value, list | tuple) else value

    def _value(self, match: "re.Match[str]") -> str:
        with self._lock:
            value = self._values.get(match[0])
            if value is None:
                raise UnknownSecret(match[0])
            if value != match[0]:
                self._everywhere[value] = None  # a diff or an output of what is made of it must not show it
        return value

    def _found(self, text: str) -> list[Found]:
        """Return what is to be replaced, in order: of what overlaps, all, as one; nothing inside of a placeholder."""
        taken = [match.span() for match in PLACEHOLDER.finditer(text)] if "‹secret:" in text else []
        found = [f for f in self._candidates(text) if text[f.start : f.end] not in self._allow]
        new = {text[f.start : f.end] for f in found if f.remember} - self._everywhere.keys()
        self._everywhere |= dict.fromkeys(new)
        while len(self._everywhere) > MAX_EVERYWHERE:
            del self._everywhere[next(iter(self._everywhere))]
        found += [f for value in new for f in _each(text, value)]
        result: list[Found] = []
        for one in sorted(found, key=lambda f: (f.start, -f.end)):
            before = bisect_left(taken, one.end, key=lambda span: span[0])
            if before and taken[before - 1][1] > one.start:
                continue
            if result and one.start < result[-1].end:
                last = result.pop()
                one = Found(last.start, max(last.end, one.end), last.remember)
            result.append(one)
        return result

    def _candidates(self, text: str) -> Iterator[Found]:
        yield from find(text)
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                group = 1 if pattern.groups and match[1] is not None else 0
                if match[group]:
                    yield Found(*match.span(group), remember=True)
        for value in (*self._known, *self._everywhere):
            yield from _each(text, value)
        if "…" in text:
            yield from self._halves(text)

    def _halves(self, text: str) -> Iterator[Found]:
        """Yield the beginnings of known values in front of a cut, and their ends behind one."""
        values = [v for v in (*self._known, *self._values.values()) if len(v) > SHORTEST_HALF]
        for cut in re.finditer(r"\n\[…|…\]\n|…", text):
            ahead, behind = text[max(cut.start() - LONGEST_HALF, 0) : cut.start()], text[cut.end() :][:LONGEST_HALF]
            for value in values:
                if (size := _overlap(ahead, value)) >= SHORTEST_HALF:
                    yield Found(cut.start() - size, cut.start(), remember=False)
                if (size := _overlap(value, behind)) >= SHORTEST_HALF:
                    yield Found(cut.end(), cut.end() + size, remember=False)

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
            self._everywhere.pop(self._values.pop(next(iter(self._values))), None)
        return name


def _each(text: str, value: str) -> Iterator[Found]:
    """Yield every place of a value in a text; of a word that is no key only where it stands alone."""
    alone = not strong(value)
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not alone or not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            yield Found(start, end, remember=False)
        start = text.find(value, end)


def _overlap(ahead: str, behind: str) -> int:
    """Return how many characters the end of `ahead` and the beginning of `behind` have in common."""
    longest = min(len(ahead), len(behind))
    return next((n for n in range(longest, SHORTEST_HALF - 1, -1) if ahead.endswith(behind[:n])), 0)
