"""The port to token counters, and the estimates that need no ranks."""

import re
from typing import Protocol


class TokenCounter(Protocol):
    """Counts or estimates tokens."""

    @property
    def name(self) -> str:
        """What `context_built` records, e.g. `o200k` or `~pieces`; `~` marks an estimate."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of `text`. Never fails, whatever the text holds."""
        ...


class Counters(Protocol):
    """Where the counter of the moment comes from: an estimate at first, something exact once that was loaded."""

    @property
    def now(self) -> TokenCounter:
        """The best counter that there is at this moment. Never waits."""
        ...

    def load(self) -> None:
        """Begin to load the exact one in the background, where there is one. Returns at once; may be repeated."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Block for at most `timeout_s` seconds until what `load` began has finished."""
        ...


class PieceEstimate:
    """Counts pieces of text as a tokeniser would cut them, without one: errs on the safe side.

    Against o200k (benches/tokens.py): about 20 % high on code and JSON, 10 % on Markdown and listings, 35 to 45 % on
    Chinese and Japanese, within 5 % on hashes and numbers, 10 % low on random letters. Bytes/3, which it replaces, was
    25 to 50 % low on listings, hashes, numbers and base64: what tools print.
    """

    name = "~pieces"

    def count(self, text: str) -> int:
        """Return the estimate. About 20 MB/s."""
        count = len(_PIECES.findall(text)) + sum(len(run) // 8 for run in _RUNS.findall(text))
        return count if text.isascii() else count + len(_TWICE.findall(text))


# One match, one token: words with their blank, pieces of longer words, three digits, two signs, blanks, line ends.
_PIECES = re.compile(
    r" ?[A-Z]?[a-z]{1,8}(?![a-z])|[A-Z]?[a-z]{4}|[A-Z]{1,2}|[0-9]{1,3}"
    r"| ?[^\sA-Za-z0-9\x80-\U0010ffff]{1,2}|[^\S\r\n\x80-\U0010ffff]{1,64}|[\r\n]{1,16}"
    r"|[\x80-\u07ff]{1,2}|[\u0800-\U0010ffff]"
)
# Base64 and the like: there a token is shorter than in words of the same letters.
_RUNS = re.compile(r"[A-Za-z0-9+/_-]{64,}")
# Arrows, pictures and whatever has four bytes: two tokens each, often three.
_TWICE = re.compile("[\u2190-\u2bff\ufe00-\ufe0f\U00010000-\U0010ffff]")


class ByteEstimate:
    """UTF-8 bytes divided by three: cheap, good enough to share out a known number, too low for lists of hashes."""

    name = "~bytes/3"

    def count(self, text: str) -> int:
        """Return the estimate, rounded up."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


class FixedCounters:
    """Counters that have nothing to load."""

    def __init__(self, counter: TokenCounter) -> None:
        self.now = counter

    def load(self) -> None:
        """There is nothing."""

    def wait(self, timeout_s: float) -> None:
        """There is nothing to wait for."""
