"""A block of Markdown to lines of a terminal. Nothing of the text is dropped: HTML is shown as it was written.

The parser, tables and the highlighter load with the first block that needs them, or by `preload`: a prompt does not.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from agentsh.base.text import clean
from agentsh.render import theme
from agentsh.render.paint import MIN_WIDTH, Painter
from agentsh.render.split import Block

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_INLINE = {"em": theme.ITALIC, "strong": theme.BOLD, "s": theme.STRIKE}
_BULLETS = "•◦▪"
MAX_HIGHLIGHT_CHARS = 100_000

Rows = list[Text]


def preload() -> None:
    """Load what the first answer will need (40 ms)."""
    import rich.syntax
    import rich.table  # noqa: F401 - the imports are the purpose

    _parser()


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")


def block_rows(block: Block, painter: Painter, width: int, *, highlight: bool = True) -> list[str]:
    """Return the lines of one block. highlight: code in colours, which costs time and bytes."""
    layout = _Layout(painter, highlight)
    if block.kind == "code":
        rows = layout.code(block.text, block.info, width)
    else:
        rows = layout.blocks(_parser().parse(block.text), width, number=block.number)
    return [line for row in rows for line in painter.rows(row, width)]


def gap_before(block: Block, last: Block | None) -> bool:
    """Whether an empty line stands between two blocks: as in the source, and always around what needs air."""
    if last is None or block.more:
        return False
    return block.gap or block.kind in ("code", "heading", "rule") or last.kind in ("code", "heading", "rule")


class _Layout:
    """Tokens to lines of text that fit a width."""

    def __init__(self, painter: Painter, highlight: bool) -> None:
        self._painter = painter
        self._highlight = highlight and painter.colour

    def blocks(self, tokens: "Sequence[Token]", width: int, *, depth: int = 0, number: int | None = None) -> Rows:
        """Return the lines of a sequence of block tokens."""
        rows: Rows = []
        tight = False
        for group in _groups(tokens):
            first = group[0]
            if first.hidden:  # the paragraph of a tight list item
                tight = True
            made = self._block(group, width, depth, number)
            if rows and made and not tight and not first.type.endswith("list_open"):
                rows.append(Text())
            rows.extend(made)
        return rows

    def _block(self, group: "Sequence[Token]", width: int, depth: int, number: int | None) -> Rows:
        first = group[0]
        match first.type:
            case "paragraph_open":
                return self._wrap(self._inline(group[1]), width)
            case "heading_open":
                return self._heading(first.tag, group[1], width)
            case "fence" | "code_block":
                info = first.info.split()[0] if first.info.split() else ""
                return self.code(first.content.removesuffix("\n"), info, width)
            case "hr":
                return [Text("─" * min(width, 40), style=theme.DIM)]
            case "blockquote_open":
                inner = self.blocks(group[1:-1], max(width - 2, MIN_WIDTH), depth=depth)
                return [Text.assemble(("│ ", theme.DIM), row) for row in inner]
            case "bullet_list_open" | "ordered_list_open":
                return self._list(group, width, depth, number)
            case "table_open":
                return self._table(group, width)
            case _:
                return self._wrap(Text(clean(first.content)), width)

    def _wrap(self, text: Text, width: int) -> Rows:
        return list(
            text.wrap(self._painter.console(width), max(width, MIN_WIDTH), justify="default", overflow="fold")
        )

    def _heading(self, tag: str, inline: "Token", width: int) -> Rows:
        text = self._inline(inline)
        text.stylize(theme.HEADING_1 if tag == "h1" else theme.HEADING)
        # Marks stay as in the source, with colours too: the lines of a session are the same on every screen.
        return self._wrap(Text.assemble(("#" * int(tag[1]) + " ", theme.DIM), text), width)

    def _list(self, group: "Sequence[Token]", width: int, depth: int, number: int | None) -> Rows:
        ordered = group[0].type == "ordered_list_open"
        at = number if number is not None else int(group[0].attrGet("start") or 1)
        rows: Rows = []
        loose = any(t.type == "paragraph_open" and not t.hidden and t.level == group[0].level + 2 for t in group)
        for item in _groups(group[1:-1]):
            mark = f"{at}. " if ordered else _BULLETS[min(depth, 2)] + " "
            inner = self.blocks(item[1:-1], max(width - len(mark), MIN_WIDTH), depth=depth + 1) or [Text()]
            if rows and loose:
                rows.append(Text())
            rows.append(Text.assemble((mark, theme.DIM), inner[0]))
            rows.extend(Text.assemble(" " * len(mark), row) for row in inner[1:])
            at += 1
        return rows

    def code(self, code: str, language: str, width: int) -> Rows:
        """Return code, set in by two columns, so that it is seen as code without colours too."""
        room = max(width - 2, MIN_WIDTH)
        code = clean(code).expandtabs(4)
        lines: Sequence[Text]
        if self._highlight and language and len(code) <= MAX_HIGHLIGHT_CHARS:
            from rich.syntax import Syntax

            text = Syntax("", language, theme=theme.CODE_THEME).highlight(code)
            lines = list(text.split("\n", allow_blank=True))[: code.count("\n") + 1]
        else:
            lines = [Text(line, style=theme.PLAIN if language else theme.CODE) for line in code.split("\n")]
        rows: Rows = []
        for line in lines:
            line.no_wrap = False
            rows.extend(Text.assemble("  ", row) for row in _fold(line, self._painter, room))
        return rows

    def _table(self, group: "Sequence[Token]", width: int) -> Rows:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style=theme.DIM)
        row: list[Text] = []
        for n, token in enumerate(group):
            if token.type in ("th_open", "td_open"):
                cell = self._inline(group[n + 1])
                style = str(token.attrGet("style") or "")
                align = style.rpartition(":")[2]
                if token.type == "th_open":
                    justify = {"right": "right", "center": "center"}.get(align, "left")
                    cell.stylize(theme.BOLD)
                    table.add_column(cell, justify=justify, overflow="fold")  # type: ignore[arg-type]
                else:
                    row.append(cell)
            elif token.type == "tr_close" and row:
                table.add_row(*row)
                row = []
        return [Text.from_ansi(line) for line in self._painter.rows(table, width)]

    def _inline(self, token: "Token") -> Text:
        text = Text()
        self._spans(iter(token.children or []), text, theme.PLAIN)
        return text

    def _spans(self, tokens: "Iterator[Token]", text: Text, style: Style) -> None:
        """Append the tokens up to the end of the span that is open."""
        for token in tokens:
            if token.type in ("softbreak", "hardbreak"):
                text.append("\n")
            elif token.type == "code_inline":
                text.append(f"`{clean(token.content)}`", style + theme.CODE)
            elif token.type == "link_open":
                self._link(tokens, token, text, style)
            elif token.type == "image":
                text.append(clean(f"[image: {token.content}] ({token.attrGet('src')})"), style)
            elif token.nesting == 1:
                self._spans(tokens, text, style + _INLINE.get(token.tag, theme.PLAIN))
            elif token.nesting == -1:
                return
            else:
                text.append(clean(token.content).replace("\n", " "), style)

    def _link(self, tokens: "Iterator[Token]", token: "Token", text: Text, style: Style) -> None:
        """Show a link as its text and its address: no hidden addresses."""
        start = len(text)
        self._spans(tokens, text, style)
        href = clean(str(token.attrGet("href") or ""))
        label = text.plain[start:]
        if href not in (label, f"mailto:{label}"):
            text.append(f" ({href})", style + theme.DIM)


def _fold(line: Text, painter: Painter, width: int) -> Rows:
    """Break a line of code at the edge, not at words: its spaces mean something."""
    if line.cell_len <= width:
        return [line]
    cuts, used = [], 0
    for n, char in enumerate(line.plain):
        size = cell_len(char)
        if used + size > width:
            cuts.append(n)
            used = 0
        used += size
    return list(line.divide(cuts))


def _groups(tokens: "Sequence[Token]") -> "Iterator[Sequence[Token]]":
    """Yield each token, or each opening token with all up to its close."""
    start, depth = 0, 0
    for n, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            yield tokens[start : n + 1]
            start = n + 1
