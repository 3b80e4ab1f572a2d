"""A reply of the model on its way to the scrollback: what is printed already, what is open, what is left."""

from agentsh.events.turn import AgentMessage, Thought
from agentsh.ports.texts import Texts
from agentsh.render import theme
from agentsh.render.lines import Page, reasoning
from agentsh.render.markdown import Flow
from agentsh.render.split import Block, BlockSplitter

PREVIEW_CHARS = 4_000

_ENDS = {
    "cut": "✂ the reply was cut off here",
    "interrupted": "✂ interrupted here",
    "length": "✂ the model's limit of length was reached here",
    "content_filter": "✂ the provider's filter stopped the reply here",
}
DIFFERS = "! the reply as recorded differs from what was shown above; this is the record:"


class Reply:
    """One streaming reply. Rows that a method returns go to the scrollback, once.

    printed: whether any were returned yet.
    """

    def __init__(self) -> None:
        self._splitter = BlockSplitter()
        self._raw: list[str] = []
        self._flow = Flow()
        self._printed: list[Block] = []
        self._reasoning: list[str] = []
        self._ended: Thought | None = None
        self._thought = False
        self.printed = False

    @property
    def text_came(self) -> bool:
        """Whether its text is on the way."""
        return bool(self._raw)

    @property
    def thinking(self) -> str:
        """The newest reasoning, while no text has come."""
        return "" if self._raw else "".join(self._reasoning[-200:])[-PREVIEW_CHARS:]

    def think(self, text: str) -> None:
        """Take reasoning."""
        self._reasoning.append(text)

    def thought(self, ended: Thought) -> None:
        """Take what is told of the reasoning in front of the text."""
        self._ended = ended

    def say(self, page: Page, text: str) -> list[str]:
        """Take text; return the rows that are finished by it."""
        if not text:
            return []
        rows = [] if self._raw else self._thoughts(page, "".join(self._reasoning), self._ended)
        self._raw.append(text)
        return self._out(rows + self._print(page, self._splitter.feed(text)))

    def end(self, page: Page, fact: AgentMessage, texts: Texts) -> list[str]:
        """Take the fact; return all that was not printed yet."""
        text = texts.text(fact.text)
        shown = "".join(self._raw)
        rows: list[str] = []
        if not self._raw and fact.reasoning is not None:
            rows += self._thoughts(page, texts.text(fact.reasoning), fact.thought)
        if text.startswith(shown):
            rows += self._print(page, [*self._splitter.feed(text[len(shown) :]), *self._splitter.finish()])
        else:
            rows += self._again(page, text)
        if fact.finish in _ENDS:
            rows += page.line(_ENDS[fact.finish], theme.WARN)
        return self._out(rows)

    def preview(self, page: Page) -> list[str]:
        """Return the rows of the block that is still open."""
        block = self._splitter.open_block(PREVIEW_CHARS)
        if block is None:
            return []
        rows = self._flow.preview(block, page.painter, page.width)
        return ["", *rows] if self._gap(block) else rows

    def _gap(self, block: Block) -> bool:
        if not self._printed:
            return self._thought
        return self._flow.gap(block)

    def _thoughts(self, page: Page, text: str, thought: Thought | None) -> list[str]:
        rows = reasoning(page, text, thought)
        self._thought = bool(rows)
        return rows

    def _out(self, rows: list[str]) -> list[str]:
        self.printed = self.printed or bool(rows)
        return rows

    def _print(self, page: Page, blocks: list[Block]) -> list[str]:
        rows = [""] if blocks and not self._printed and self._thought else []
        self._printed += blocks
        return rows + self._flow.rows(blocks, page.painter, page.width)

    def _again(self, page: Page, text: str) -> list[str]:
        """The record is not what was streamed: go on from the blocks that agree, or say so and print it whole."""
        splitter = BlockSplitter()
        blocks = [*splitter.feed(text), *splitter.finish()]
        done = len(self._printed)
        if blocks[:done] == self._printed:
            return self._print(page, blocks[done:])
        self._printed, self._flow = [], Flow()
        return [*page.line(DIFFERS, theme.WARN), *self._print(page, blocks)]
