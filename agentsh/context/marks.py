"""How full a request may get, and how far it is taken back. Pure numbers."""

from dataclasses import dataclass

HIGH_WATER = 0.8
ENOUGH = 0.6
LOW_WATER = 0.4


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
