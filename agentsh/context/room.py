"""How much of a model's window a request may take: what was configured, said and learned, in numbers. Pure."""

from agentsh.base.light import dataclass
from agentsh.context.marks import HIGH_WATER, LOW_WATER, Marks
from agentsh.events.model import REFUSAL, WindowLearned
from agentsh.ports.window import Window

DEFAULT = Window(128_000, "default")
"""Where nobody says anything: what most models of the last two years have at least. A refusal corrects it."""
UNKNOWN_REPLY_SHARE = 8
"""Reserve where the largest reply is not known: an eighth of the window, at least LEAST_RESERVE."""
MOST_RESERVE_SHARE = 3
"""Reserve at most, unless it is configured: a third. Some models could answer with half of their window; few do."""
LEAST_RESERVE = 1_000
LEAST_BUDGET = 1_000
"""Tokens below which no work is possible: system prompt and tools alone take more."""


@dataclass(frozen=True, slots=True)
class Room:
    """What is set for a model. None: not set.

    configured: its window as the user says, which wins over what lists say. shipped: as our data says.
    budget_tokens: for a whole request, asked for by the user; never above what the window leaves.
    reserve_tokens: kept free for the reply. high, low: the marks, as shares of the budget. item_tokens: cap of one
    text, attachment, result or call.
    """

    configured: int | None = None
    shipped: Window | None = None
    budget_tokens: int | None = None
    reserve_tokens: int | None = None
    high: float = HIGH_WATER
    low: float = LOW_WATER
    item_tokens: int | None = None

    def window(self, learned: WindowLearned | None) -> Window:
        """Return the window: configured, else as the provider said, else from our data, else the default.

        What a refusal taught holds whatever else is said: a larger request was refused.
        """
        said = None if learned is None else _window(learned)
        if self.configured is not None:
            window = Window(self.configured, "configured")
            if said is not None and said.source == REFUSAL and said.tokens < window.tokens:
                return said
            return window
        return said or self.shipped or DEFAULT

    def reserve(self, window: Window) -> int:
        """Return the tokens that are kept free for the reply."""
        if self.reserve_tokens is not None:
            return self.reserve_tokens
        reply = window.max_reply or max(window.tokens // UNKNOWN_REPLY_SHARE, LEAST_RESERVE)
        return min(reply, window.tokens // MOST_RESERVE_SHARE)

    def budget(self, learned: WindowLearned | None = None) -> int:
        """Return the tokens that a request may have."""
        window = self.window(learned)
        left = window.tokens - self.reserve(window)
        if window.max_request is not None:
            left = min(left, window.max_request)
        if self.budget_tokens is not None:
            left = min(left, self.budget_tokens)
        return max(left, LEAST_BUDGET)

    def shares(self, budget_tokens: int) -> Marks:
        """Return how full a request may get under a budget."""
        return Marks(budget_tokens, high=self.high, enough=(self.high + self.low) / 2, low=self.low)

    def impossible(self) -> str | None:
        """Return in one line why these settings cannot be, or None. What was learned later is not looked at."""
        window = self.window(None)
        if self.low >= self.high:
            return f"the low-water mark ({self.low:g}) has to be below the high-water mark ({self.high:g})"
        reserve = self.reserve(window)
        if reserve >= window.tokens:
            return (
                f"the reserve of {reserve:,} tokens for the reply leaves nothing of the window of {window.tokens:,}"
                f" ({window.source})"
            )
        if window.tokens - reserve < LEAST_BUDGET:
            return f"a window of {window.tokens:,} tokens less {reserve:,} for the reply leaves too little to work"
        room = int(self.budget() * self.high)
        if self.item_tokens is not None and self.item_tokens > room:
            return (
                f"one item may have {self.item_tokens:,} tokens (item_tokens), and a whole request {room:,}:"
                f" {self.high:.0%} of the budget of {self.budget():,}"
            )
        return None


def _window(learned: WindowLearned) -> Window:
    return Window(learned.window, learned.source, learned.max_reply, learned.max_request)
