"""The port to token counters, and the estimates that need no ranks."""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol, runtime_checkable

from agentsh.base.pattern import later


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

    Against o200k (benches/tokens.py): about 20 % high on code, 10 % on Markdown, 35 to 50 % on Chinese and Japanese,
    twice or three times on scripts that only newer tokenisers know well, about right on listings, numbers and base64,
    and not low on letters, pictures and characters by chance. Bytes/3, which it replaces, was 25 to 50 % low on
    listings, hashes, numbers and base64: what tools print.
    """

    name = "~pieces"

    def count(self, text: str) -> int:
        """Return the estimate. About 10 MB/s."""
        return by_samples(text, self._pieces)

    def _pieces(self, text: str) -> int:
        count = len(_PIECES.findall(text)) + sum((len(run) - 1) * 2 // 3 for run in _CLUSTERS.findall(text))
        count += len(_ODD_PAIRS.findall(text))
        if text.isascii():
            return count
        more, twice, thrice, dense_runs = _beyond()
        count += len(more.findall(text)) + len(twice.findall(text)) + 2 * len(thrice.findall(text))
        dense = "".join(dense_runs.findall(text))
        by_chance = len(dense) >= MANY_DENSE and len(set(dense[:1_000])) > CHANCE_SHARE * min(len(dense), 1_000)
        return count + (3 * len(dense) // 2 if by_chance else 0)


# One match, one token: words with their blank, pieces of longer words, three digits, two signs, blanks, line ends.
# Signs and blanks are listed, and the last class is negated: ranges up to the last character take 7 ms to compile.
_PIECES = later(
    r" ?[A-Z]?[a-z]{1,8}(?![a-z])|[A-Z]?[a-z]{4}|[A-Z]{1,2}|[0-9]{1,3}"
    r"| ?[\x00-\x08\x0e-\x1b!-/:-@\[-`{-\x7f]{1,2}|[ \t\x0b\x0c\x1c-\x1f]{1,64}|[\r\n]{1,16}"
    r"|[\x80-\u036f]|[\u0370-\u07ff]{1,2}|[^\x00-\u07ff]"
)
# Letters that stand beside each other in no word, or in few: there tokens are of one or two letters.
_CLUSTERS = later("[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{4,}")
_ODD_PAIRS = later("[jqv-xzJQV-XZ][b-df-hjkm-np-rtv-xzB-DF-HJKM-NP-RTV-XZ]")


class _Beyond(NamedTuple):
    """What is special about characters beyond ASCII.

    more: one token more: letters with marks beside each other, marks that stand for themselves, private planes.
    twice: two tokens each: arrows, signs, scripts that few texts are written in. thrice: pictures, whatever has four
    bytes, and what hardly any text holds. dense: Chinese, Korean, Indian: one where they are words.
    """

    more: "re.Pattern[str]"
    twice: "re.Pattern[str]"
    thrice: "re.Pattern[str]"
    dense: "re.Pattern[str]"


@cache
def _beyond() -> _Beyond:
    """Return the patterns, made at the first text that needs them: they take milliseconds to compile."""
    return _Beyond(
        re.compile(
            "(?<=[\x80-\u036f])[\x80-\u036f]|[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
            "\U00010000-\U0001efff\U0001fb00-\U0010ffff]"
        ),
        re.compile("[\u0250-\u036f\u0500-\u058f\u0700-\u08ff\u1200-\u1dff\u2070-\u2bff\ufe00-\uffff]"),
        re.compile("[\u2c00-\u2fff\u3100-\u4dff\ua000-\uabff\ud7a4-\ufdff\U00010000-\U0010ffff]"),
        re.compile("[\u0900-\u11ff\u1e00-\u206f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3]+"),
    )


MANY_DENSE = 200
CHANCE_SHARE = 0.8
"""So many different ones among so many: they are no words, and each is two or three tokens."""


class ByteEstimate:
    """UTF-8 bytes divided by three: cheap, good enough to share out a known number, too low for lists of hashes."""

    name = "~bytes/3"

    def count(self, text: str) -> int:
        """Return the estimate, rounded up."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
