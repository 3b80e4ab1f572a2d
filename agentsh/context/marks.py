"""How full a request may get, and how far it is taken back. Pure numbers."""

from agentsh.base.light import dataclass

HIGH_WATER = 0.8
ENOUGH = 0.6
LOW_WATER = 0.4

BYTES_PER_TOKEN = 3
"""Of texts that nobody has counted, on the safe side for most."""
MAX_ITEM_BYTES = 30_000
"""Of one text, attachment, result or call, unless it is configured: about 10,000 tokens. In bytes, so that a request
can be built again without the token counter that was used."""
LEAST_ITEM_BYTES = 1_500
"""Below it, the words about what was left out would take the place of what is shown."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Shares of a budget.

    budget_tokens: for a whole request, the schemas of tools included. Above `high` something is done: old outputs of
    tools are pruned where that takes it to `enough`, else it is compacted or cut to `low`.
    """

    budget_tokens: int
    high: float = HIGH_WATER
    enough: float = ENOUGH
    low: float = LOW_WATER

    @property
    def high_tokens(self) -> int:
        """Return the mark at which something is done."""
        return int(self.budget_tokens * self.high)

    @property
    def enough_tokens(self) -> int:
        """Return the mark that pruning alone has to reach."""
        return int(self.budget_tokens * self.enough)

    @property
    def low_tokens(self) -> int:
        """Return the mark that a cut or a compaction aims at."""
        return int(self.budget_tokens * self.low)
