"""The port to a token counter, and the estimate that needs no ranks."""

from typing import Protocol


class TokenCounter(Protocol):
    """Counts or estimates tokens."""

    @property
    def name(self) -> str:
        """What `context_built` records, e.g. `o200k` or `~bytes/3`; `~` marks an estimate."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of `text`. Never fails, whatever the text holds."""
        ...


class ByteEstimate:
    """UTF-8 bytes divided by three: errs on the safe side for prose and code.

    Bytes/3.6 was measured to be 7 to 25 % high on code, prose and CJK and 18 % low on JSON against o200k;
    bytes/3 is on the safe side for JSON too (about 2 % low at the worst median).
    """

    name = "~bytes/3"

    def count(self, text: str) -> int:
        """Return the estimate, rounded up."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
