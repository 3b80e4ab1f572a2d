"""What the parts of a request weigh in tokens: as is known of them, else as estimated. Pure.

What is known (context/meter.py) is of whole requests. What lay between two of them is shared out to its blocks by
their size, so that the parts of the context as it is add up to what is known, to the token.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from agentsh.base.light import dataclass
from agentsh.context.meter import Meter
from agentsh.context.state import AgentItem, SessionState
from agentsh.context.view import Block
from agentsh.events.base import Usage

MESSAGE_BYTES = 12
"""Of the frame of a message, in the size by which a known number is shared out."""
TOKEN_BYTES = 4
"""Of the schemas of tools, and of images, likewise."""

Count = Callable[[Block], int]


class Weighed(NamedTuple):
    """The tokens of a request. counted: how many of them were known. raw: the estimate of the rest, uncorrected."""

    blocks: tuple[int, ...]
    fixed: int
    counted: int
    raw: int

    @property
    def total(self) -> int:
        """Return the tokens of the whole."""
        return sum(self.blocks) + self.fixed


@dataclass(slots=True)
class _Stretch:
    """What lay between two requests. parts: (place, bytes), in order; place -1 is what stands beside the messages."""

    tokens: int
    parts: list[tuple[int, int]]

    @property
    def size(self) -> int:
        return sum(size for _, size in self.parts)


class Weights:
    """Weighs blocks for one state. now: the blocks that the newest decision shows.

    fixed_tokens: the estimate of what stands beside the messages (tools). count: what the counter says of a block.
    estimator: its name.
    """

    def __init__(
        self, state: SessionState, now: Sequence[Block], fixed_tokens: int, count: Count, estimator: str
    ) -> None:
        self._meter: Meter = state.meter
        self._seqs = [mark.seq for mark in self._meter.marks]
        self._count = count
        self._factor = self._meter.correction(estimator)
        self._fixed_tokens = fixed_tokens
        self._replies = _new_replies(state, self._seqs[-1]) if self._seqs else {}
        self._now = {_name(block): n for n, block in enumerate(now)}
        self._soft = [not mark.reported for mark in self._meter.marks]
        self._stretches = self._stretched(now, fixed_tokens * TOKEN_BYTES)
        self._shares = [_shared(s) for s in self._stretches]

    def weigh(self, blocks: Sequence[Block]) -> Weighed:
        """Return the tokens of a request with these blocks, of the conversation as it is or as it might be."""
        whole = self._now.keys() <= {_name(block) for block in blocks}
        known = bool(self._stretches) and (whole or not self._soft[0])
        tokens, counted, raw = [], 0, 0
        for block in blocks:
            share = self._known(block, whole=whole)
            if share is not None:
                tokens.append(share)
                counted += share
                continue
            reported, estimated = self._new(block)
            tokens.append(reported + ceil(estimated * self._factor))
            counted, raw = counted + reported, raw + estimated
        fixed = self._shares[0].get(-1, 0) if known else ceil(self._fixed_tokens * self._factor)
        if known:
            counted += fixed
        else:
            raw += self._fixed_tokens
        return Weighed(tuple(tokens), fixed, counted, raw)

    def _stretched(self, now: Sequence[Block], fixed_bytes: int) -> list[_Stretch]:
        before, found = 0, []
        for mark in self._meter.marks:
            found.append(_Stretch(mark.tokens - before, []))
            before = mark.tokens
        if found:
            found[0].parts.append((-1, fixed_bytes))
            for n, block in enumerate(now):
                place = self._place(block)
                if place is not None:
                    found[place].parts.append((n, size_of(block)))
            _closed_gaps(found)
        return found

    def _place(self, block: Block) -> int | None:
        """Return the number of the stretch that a block lies in; None where no request has held it yet."""
        place = bisect_left(self._seqs, block.seq)  # a summary is in the mark of its own compaction
        return place if place < len(self._seqs) else None

    def _known(self, block: Block, *, whole: bool) -> int | None:
        """Return the known tokens of a block, or None.

        What was recorded of a whole by an estimate is of use as a whole: its parts are estimated better one by one.
        """
        place = self._place(block)
        if place is None or (self._soft[place] and not whole):
            return None
        shared = self._shares[place].get(self._now.get(_name(block), -2))
        if shared is not None:
            return shared
        stretch = self._stretches[place]  # a block as it might be: pruned, or without its neighbours
        return ceil(size_of(block) * stretch.tokens / stretch.size) if stretch.size else self._count(block)

    def _new(self, block: Block) -> tuple[int, int]:
        """Return what the provider said of a block that no request has held yet, and the estimate of the rest."""
        estimated = self._count(block)
        usage = self._replies.get(block.seq) if block.kind == "reply" else None
        if usage is None or not estimated:
            return 0, estimated
        # A reply came out of the model, so its tokens were reported, reasoning apart. Servers that do not tell
        # reasoning apart report more: then the estimate holds.
        own = round(estimated * _own_share(block))
        said = max(usage.completion - usage.reasoning, 0)
        return (said, estimated - own) if said <= own else (0, estimated)


def _name(block: Block) -> tuple[str, int, bool, int]:
    return block.kind, block.seq, block.pruned, block.images


def size_of(block: Block) -> int:
    """Return the bytes by which a known number of tokens is shared out."""
    return sum(
        _size(m.text) + MESSAGE_BYTES + _calls(m.calls) + sum(image.tokens * TOKEN_BYTES for image in m.images)
        for m in block.messages
    )


def _calls(calls: Sequence[object]) -> int:
    return sum(_size(getattr(c, "name", "")) + _size(getattr(c, "arguments", "")) + MESSAGE_BYTES for c in calls)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _own_share(block: Block) -> float:
    """Return the part of a block's size that the model itself wrote."""
    whole = size_of(block)
    first = block.messages[0]
    return (_size(first.text) + MESSAGE_BYTES + _calls(first.calls)) / whole if whole else 0.0


def _closed_gaps(stretches: list[_Stretch]) -> None:
    """Give the tokens of a stretch with nothing in it to the one before, so that the sum holds."""
    for n in range(len(stretches) - 1, 0, -1):
        if not stretches[n].size:
            stretches[n - 1].tokens += stretches[n].tokens
            stretches[n].tokens = 0


def _shared(stretch: _Stretch) -> dict[int, int]:
    """Return the tokens of each part, by its place."""
    shares = shared_out(stretch.tokens, [size for _, size in stretch.parts])
    return {place: share for (place, _), share in zip(stretch.parts, shares, strict=True)}


def shared_out(total: int, sizes: Sequence[int]) -> list[int]:
    """Return `total` in whole parts in proportion to `sizes`; they add up to it, where any size is above 0."""
    whole, given, seen, shares = sum(sizes), 0, 0, []
    for size in sizes:
        seen += size
        upto = total * seen // whole if whole else 0
        shares.append(upto - given)
        given = upto
    return shares


def _new_replies(state: SessionState, after_seq: int) -> dict[int, Usage]:
    """Return what was reported of the replies that no counted request has held, by their seq."""
    found: dict[int, Usage] = {}
    for item in reversed(state.talk):
        if item.seq < after_seq:
            break
        if isinstance(item, AgentItem) and item.fact.usage is not None:
            found[item.seq] = item.fact.usage
    return found
