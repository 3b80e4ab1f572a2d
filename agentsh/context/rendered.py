"""What was rendered and counted before, so that a step costs what is new. Pure: with and without it is the same."""

from collections.abc import Callable

from agentsh.context.view import Block
from agentsh.events.base import Text
from agentsh.ports.texts import Texts, with_gap

BlockKey = tuple[object, ...]


class RenderCache:
    """Blocks by the event they come from, and their tokens. One for each session and process; never shared.

    A block is used again while everything that it was made from is the same (its key). A text whose blob was missing
    stays so: `context_built.missing` says it, so that the request can be built again.
    """

    def __init__(self) -> None:
        self._blocks: dict[tuple[int, bool], tuple[BlockKey, Block]] = {}
        self._tokens: dict[tuple[int, bool, str], tuple[Block, int]] = {}

    def block(self, seq: int, pruned: bool, key: BlockKey, make: Callable[[], Block]) -> Block:
        """Return the block of an event, made anew only where `key` is another than before."""
        known = self._blocks.get((seq, pruned))
        if known is not None and known[0] == key:
            return known[1]
        block = make()
        self._blocks[seq, pruned] = key, block
        return block

    def tokens(self, block: Block, counter: str, count: Callable[[Block], int]) -> int:
        """Return the tokens of a block by a counter, counted once. counter: its name."""
        place = (block.seq, block.pruned, counter)
        known = self._tokens.get(place)
        if known is not None and (known[0] is block or known[0] == block):
            return known[1]
        tokens = count(block)
        self._tokens[place] = block, tokens
        return tokens


class NotingTexts:
    """Texts that note which blobs could not be read. gone: blobs that count as missing whatever the store says."""

    def __init__(self, texts: Texts, gone: frozenset[str] = frozenset()) -> None:
        self._texts = texts
        self._gone = gone
        self.missing: set[str] = set()

    def text(self, value: Text) -> str:
        """Return the whole text, or what is left of it, noted."""
        if isinstance(value, str):
            return value
        text = with_gap(value) if value.blob in self._gone else self._texts.text(value)
        if text == with_gap(value):
            self.missing.add(value.blob)
        return text
