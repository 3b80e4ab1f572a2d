"""Regular expressions from a model, matched so that none can hang or fill the memory."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from agentsh.base.errors import ToolFailed
from agentsh.ports.workspace import Wanted

_T = TypeVar("_T")

MAX_PATTERN_CHARS = 1_000
MAX_WEIGHT = 100_000
"""Of a pattern with its repeats written out: `regex` does write them out, and `((a{1000}){1000}){1000}` would take
more memory than there is."""
MAX_SEARCHED_CHARS = 4_000
"""Of a line; minified files have lines of megabytes."""
LINE_S = 1.0
"""For one line: a pattern that takes longer would take for ever."""
_PREFILTER_S = 0.25

# With these a pattern can match a line by itself but not the same line inside a text, so that no file may be skipped.
_BOUND_TO_LINES = re.compile(r"\(\?<?!|\(\?>|[+*?}]\+|\\[AZzG]|\(\?[a-zA-Z]|\(\?\(")
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


_PORTABLE = re.compile(
    r"""(?:
        [^\\^$.|?*+()\[\]{}]                                   # a character
      | \\(?: [bdwstDWS] | [^\w\s] )                            # a class, a word boundary, or punctuation
      | [.^$|)] | \((?!\?) | \(\?:                             # groups without names, flags and looking around
      | \[ \^? (?: [^\\\[\]&~^|-] | (?<![-&~|])- (?![-&~|]) | \\(?: [dwst] | [^\w\s] ) )+ \]
      | (?: [?*+] | \{\d+(?:,\d*)?\} ) \??                     # a repeat, perhaps lazy, never possessive
    )*""",
    re.VERBOSE,
)
"""Patterns that mean the same to Python's regular expressions and Rust's, line by line; not all of those."""


def portable(pattern: str, *, ignore_case: bool) -> Wanted | None:
    """Return a pattern for `Workspace.mentions`, or None where it might mean something else there."""
    if "\n" in pattern or "\0" in pattern or (ignore_case and not pattern.isascii()):
        return None
    if pattern.isascii() and not _SPECIAL.search(pattern):
        return Wanted(pattern, ignore_case, literal=True) if pattern else None
    plain = _PORTABLE.fullmatch(pattern) is not None and not re.search(r"[?*+}][+]|[*+?}][*]|\\[<>]", pattern)
    return Wanted(pattern, ignore_case) if plain else None


class Deadline:
    """When to stop. limit_s: seconds from now. stop: set where nobody waits for the answer any more."""

    def __init__(self, limit_s: float, stop: threading.Event) -> None:
        self._end_s = time.monotonic() + limit_s
        self._stop = stop

    def left_s(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: none are, or nobody waits.
        """
        left_s = self._end_s - time.monotonic()
        if left_s <= 0 or self._stop.is_set():
            raise TimeoutError
        return left_s

    def check(self) -> None:
        """Raise TimeoutError when it is over."""
        self.left_s()


async def stoppable(limit_s: float, work: Callable[[Deadline], _T]) -> _T:
    """Run work that only reads in a thread; where nobody waits for it any more, its deadline is over."""
    stop = threading.Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, Deadline(limit_s, stop)))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()  # the thread ends within a second, by itself
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


class Searcher:
    """One pattern. Matching is bounded by a deadline inside the engine itself, which Python's `re` does not have."""

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        """Compile.

        Raises:
            ToolFailed: no regular expression, or one that is too large.
        """
        import regex

        if len(pattern) > MAX_PATTERN_CHARS or weight(pattern) > MAX_WEIGHT:
            raise ToolFailed("the pattern is too large; use fewer or smaller repeats")
        flags = regex.IGNORECASE if ignore_case else 0
        try:
            self._pattern: Any = regex.compile(pattern, flags)
            self._anywhere: Any = None
            if not _BOUND_TO_LINES.search(pattern):
                self._anywhere = regex.compile(pattern, flags | regex.MULTILINE)
        except (regex.error, RecursionError, OverflowError, ValueError) as error:
            hint = "escape ( [ { as \\( \\[ \\{ to search for them"
            raise ToolFailed(f"{pattern!r} is no regular expression: {error}; {hint}") from None
        literal = pattern.isascii() and not ignore_case and not _SPECIAL.search(pattern)
        self._literal = pattern.encode() if literal else None

    def may_match(self, data: bytes) -> bool:
        """Return False only where the bytes of a file hold no match for sure. Costs next to nothing."""
        return self._literal is None or self._literal in data or data[:2] in (b"\xff\xfe", b"\xfe\xff")

    def matches(self, text: str, deadline: Deadline) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of each line that matches, without its line end.

        Raises:
            TimeoutError: the deadline is over.
        """
        text = text.replace("\r\n", "\n")
        if not text or not self._anywhere_in(text, deadline):
            return
        for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
            timeout_s = min(deadline.left_s(), LINE_S)
            if self._pattern.search(line[:MAX_SEARCHED_CHARS], timeout=timeout_s, concurrent=True):
                yield number, line

    def _anywhere_in(self, text: str, deadline: Deadline) -> bool:
        """Tell whether a match is possible: one search of a whole file costs far less than one of each line."""
        if self._anywhere is None:
            return True
        timeout_s = min(deadline.left_s(), _PREFILTER_S)
        try:
            return self._anywhere.search(text, timeout=timeout_s, concurrent=True) is not None
        except TimeoutError:
            return True


def weight(pattern: str) -> int:
    """Return about how many elements a pattern has once its counted repeats are written out."""
    stack = [[0, 0]]  # for each open group: what is closed, and its last element, which a repeat would multiply
    i = 0
    while i < len(pattern):
        c = pattern[i]
        top = stack[-1]
        i += 1
        if c == "(":
            stack.append([0, 0])
        elif c == ")" and len(stack) > 1:
            inner = sum(stack.pop())
            stack[-1] = [sum(stack[-1]), inner + 1]
        elif c == "{" and (repeat := re.match(r"(\d*)(?:,(\d*))?\}", pattern[i:])):
            top[1] *= max([int(n[:9]) for n in repeat.groups() if n] + [1])
            i += repeat.end()
        else:
            if c == "\\":
                i += 1
            elif c == "[":
                end = pattern.find("]", i + 1)
                i = len(pattern) if end < 0 else end + 1
            stack[-1] = [sum(top), 1]
    return sum(map(sum, stack))
