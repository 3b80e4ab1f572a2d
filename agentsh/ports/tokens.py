"""The port to token counters, and the estimates that need no ranks."""

import re
from collections.abc import Callable
from typing import Protocol, runtime_checkable


class TokenCounter(Protocol):
    """Counts or estimates tokens."""

    @property
    def name(self) -> str:
        """What `context_built` records, e.g. `o200k` or `~pieces`; `~` marks an estimate."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of `text`. Never fails, whatever the text holds."""
        ...


@runtime_checkable
class Improves(Protocol):
    """A counter that estimates at first and can become exact. It changes in `adopt`, never between two counts."""

    def adopt(self, model: str) -> None:
        """Count for `model` from here on, with the best that is loaded by now. Never waits."""
        ...

    def load(self, model: str) -> bool:
        """Begin to load what is exact for `model`, in the background; return whether something is to come."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Block for at most `timeout_s` seconds until what `load` began has finished."""
        ...


def is_estimate(counter: TokenCounter) -> bool:
    """Tell whether a counter estimates."""
    return counter.name.startswith("~")


def by_samples(text: str, count: Callable[[str], int]) -> int:
    """Return what `count` says of `text`; of a very long one, what it says of SAMPLES evenly spread pieces of it.

    Nobody waits for the exact number of a text that passes every budget.
    """
    if len(text) <= MAX_COUNTED_CHARS:
        return count(text)
    step = (len(text) - SAMPLE_CHARS) / (SAMPLES - 1)
    samples = [text[round(n * step) : round(n * step) + SAMPLE_CHARS] for n in range(SAMPLES)]
    return -(-sum(map(count, samples)) * len(text) // (SAMPLES * SAMPLE_CHARS))


MAX_COUNTED_CHARS = 400_000
SAMPLES = 100
SAMPLE_CHARS = MAX_COUNTED_CHARS // SAMPLES


class PieceEstimate:
    """Counts pieces of text as a tokeniser would cut them, without one: errs on the safe side.

    Against o200k (benches/tokens.py): about 20 % high on code and JSON, 10 % on Markdown, 35 to 45 % on Chinese and
    Japanese, about right on listings, numbers and base64, 10 % low on random letters. Bytes/3, which it replaces, was
    25 to 50 % low on listings, hashes, numbers and base64: what tools print.
    """

    name = "~pieces"

    def count(self, text: str) -> int:
        """Return the estimate. About 20 MB/s."""
        return by_samples(text, self._pieces)

    def _pieces(self, text: str) -> int:
        count = len(_PIECES.findall(text)) + sum(len(run) // 8 for run in _RUNS.findall(text))
        return count if text.isascii() else count + len(_TWICE.findall(text))


# One match, one token: words with their blank, pieces of longer words, three digits, two signs, blanks, line ends.
# Signs and blanks are listed, and the last class is negated: ranges up to the last character take 7 ms to compile.
_PIECES = re.compile(
    r" ?[A-Z]?[a-z]{1,8}(?![a-z])|[A-Z]?[a-z]{4}|[A-Z]{1,2}|[0-9]{1,3}"
    r"| ?[\x00-\x08\x0e-\x1b!-/:-@\[-`{-\x7f]{1,2}|[ \t\x0b\x0c\x1c-\x1f]{1,64}|[\r\n]{1,16}"
    r"|[\x80-\u07ff]{1,2}|[^\x00-\u07ff]"
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
