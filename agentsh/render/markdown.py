"""A block of Markdown to lines of a terminal. Nothing of the text is dropped: HTML is shown as it was written.

The parser and the highlighter load with the first block that needs them, or by `preload`: a prompt does not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rich.style import Style

from agentsh.base.text import clean
from agentsh.render import tables, theme
from agentsh.render.paint import MIN_WIDTH, Painter
from agentsh.render.parser import parser
from agentsh.render.runs import Line, fold, plain, styled, wrap
from agentsh.render.split import Block, BlockSplitter, language
from agentsh.render.tables import Align, Cell, Sizes

if TYPE_CHECKING:
    from markdown_it.token import Token

    from agentsh.render.code import Colours

_INLINE = {"em": theme.ITALIC, "strong": theme.BOLD, "s": theme.STRIKE}
_BULLETS = "•◦▪"
_SAMPLE = "* *a* [b](c)\n\n| d | e |\n|---|---|\n| f | g |\n\n```python\nh = 1\n```\n"

Rows = list[Line]
_KnownSizes = dict[tuple[str, int], Sizes]


def preload() -> None:
    """Load what answers need (40 ms), by laying out a little of each kind."""
    painter, splitter = Painter(colour=True), BlockSplitter()
    Flow().rows([*splitter.feed(_SAMPLE), *splitter.finish()], painter, 80)


class Flow:
    """Lays out the blocks of one text, in their order. What goes on with a block looks as that one does."""

    def __init__(self) -> None:
        self._last: Block | None = None
        self._colours: Colours | None = None
        self._sizes: _KnownSizes = {}
        self._first_sizes: _KnownSizes = {}

    def rows(self, blocks: Iterable[Block], painter: Painter, width: int) -> list[str]:
        """Return the lines of the next blocks, with the empty lines between them."""
        rows: list[str] = []
        for block in _joined(blocks):
            if self.gap(block):
                rows.append("")
            rows += self._block(block, painter, width)
            self._last = block
        return rows

    def preview(self, block: Block, painter: Painter, width: int) -> list[str]:
        """Return the lines that a block would have that is not finished."""
        colours, sizes = self._colours, self._sizes
        self._colours, self._sizes = colours and colours.copy(), {**sizes}
        try:
            return self._block(block, painter, width)
        finally:
            self._colours, self._sizes = colours, sizes

    def gap(self, block: Block) -> bool:
        """Whether an empty line stands before it."""
        return gap_before(block, self._last)

    def _block(self, block: Block, painter: Painter, width: int) -> list[str]:
        width = max(width, MIN_WIDTH)
        layout = _Layout(painter, self._sizes, self._first_sizes)
        if block.kind == "code":
            rows = layout.code(block.text, block.info, width, self._colours_of(block, painter), more=block.more)
        elif block.kind == "item" and block.more:
            mark = 2 if block.number is None else len(f"{block.number}. ")
            inner = layout.blocks(parser().parse(block.text), max(width - mark, MIN_WIDTH), depth=1)
            rows = [[(" " * mark, theme.PLAIN), *row] for row in inner]
        elif block.kind == "table" and block.more:
            head = "\n".join(block.info.split("\n", 2)[:2])
            rows = layout.more_rows(parser().parse(f"{head}\n{block.text}"), block.info, width)
        else:
            rows = layout.blocks(parser().parse(block.text), width, number=block.number)
        # What is nested deeper than the width has room for is broken at the edge.
        return [painter.line(part) for row in rows for part in fold(row, width)]

    def _colours_of(self, block: Block, painter: Painter) -> "Colours | None":
        if not (painter.colour and language(block.info)):
            self._colours = None
        elif self._colours is None or not block.more:
            from agentsh.render.code import Colours  # Pygments takes a moment to load

            self._colours = Colours(language(block.info))
        return self._colours


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """Put rows of one table that come together into one block: its head is looked at once for all of them."""
    held: list[Block] = []
    for block in blocks:
        joins = block.kind == "table" and block.more
        if held and not joins:
            yield replace(held[0], text="\n".join(one.text for one in held))
            held = []
        if joins:
            held.append(block)
        else:
            yield block
    if held:
        yield replace(held[0], text="\n".join(one.text for one in held))


def gap_before(block: Block, last: Block | None) -> bool:
    """Whether an empty line stands between two blocks: as in the source, and always around what needs air."""
    if last is None or block.more:
        return block.more and block.gap
    return block.gap or block.kind in ("code", "heading", "rule") or last.kind in ("code", "heading", "rule")


class _Table(NamedTuple):
    head: list[Cell]
    aligns: list[Align]
    rows: list[list[Cell]]


class _Layout:
    """Tokens to lines of text that fit a width.

    sizes: of tables that go on, by their first part and the width. first_sizes: what they began with.
    """

    def __init__(self, painter: Painter, sizes: _KnownSizes, first_sizes: _KnownSizes) -> None:
        self._colour = painter.colour
        self._sizes = sizes
        self._first_sizes = first_sizes

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
                rows.append([])
            rows.extend(made)
        return rows

    def _block(self, group: "Sequence[Token]", width: int, depth: int, number: int | None) -> Rows:
        first = group[0]
        match first.type:
            case "paragraph_open":
                return _wrapped(self._inline(group[1]), width)
            case "heading_open":
                return self._heading(first.tag, group[1], width)
            case "fence" | "code_block":
                code, colours = first.content.removesuffix("\n"), self._new_colours(language(first.info.strip()))
                return self.code(code, first.info, width, colours)
            case "hr":
                return [[("─" * min(width, 40), theme.DIM)]]
            case "blockquote_open":
                inner = self.blocks(group[1:-1], max(width - 2, MIN_WIDTH), depth=depth)
                return [[("│ ", theme.DIM), *row] for row in inner]
            case "bullet_list_open" | "ordered_list_open":
                return self._list(group, width, depth, number)
            case "table_open":
                return self._table(group, width)
            case _:
                lines = clean(first.content).split("\n")
                return _wrapped([[(line, theme.PLAIN)] for line in lines], width)

    def _heading(self, tag: str, inline: "Token", width: int) -> Rows:
        style = theme.HEADING_1 if tag == "h1" else theme.HEADING
        lines = [styled(line, style) for line in self._inline(inline)]
        # Marks stay as in the source, with colours too: the lines of a session are the same on every screen.
        return _wrapped([[("#" * int(tag[1]) + " ", theme.DIM), *lines[0]], *lines[1:]], width)

    def _list(self, group: "Sequence[Token]", width: int, depth: int, number: int | None) -> Rows:
        ordered = group[0].type == "ordered_list_open"
        at = number if number is not None else int(group[0].attrGet("start") or 1)
        rows: Rows = []
        loose = any(t.type == "paragraph_open" and not t.hidden and t.level == group[0].level + 2 for t in group)
        for item in _groups(group[1:-1]):
            mark = f"{at}. " if ordered else _BULLETS[min(depth, 2)] + " "
            inner = self.blocks(item[1:-1], max(width - len(mark), MIN_WIDTH), depth=depth + 1) or [[]]
            if rows and loose:
                rows.append([])
            rows.append([(mark, theme.DIM), *inner[0]])
            rows.extend([(" " * len(mark), theme.PLAIN), *row] for row in inner[1:])
            at += 1
        return rows

    def code(self, code: str, info: str, width: int, colours: "Colours | None", *, more: bool = False) -> Rows:
        """Return code, set in by two columns, so that it is seen as code without colours too.

        info: what stands behind its fence. Beyond the language, it is shown: it names a file, or the lines of one.
        """
        room = max(width - 2, MIN_WIDTH)
        code = clean(code).expandtabs(4)
        style = theme.PLAIN if language(info.strip()) else theme.CODE
        note = "" if more else _beyond_language(_flat(info.strip()))
        named = _wrapped([[(note, theme.DIM)]], room) if note else []
        lines = [[(line, style)] for line in code.split("\n")] if colours is None else colours.lines(code)
        return [[("  ", theme.PLAIN), *row] for row in [*named, *(row for line in lines for row in fold(line, room))]]

    def _new_colours(self, name: str) -> "Colours | None":
        if not (self._colour and name):
            return None
        from agentsh.render.code import Colours

        return Colours(name)

    def more_rows(self, tokens: "Sequence[Token]", first: str, width: int) -> Rows:
        """Return the lines of rows that go on a table, and of what stands behind them. first: its first part."""
        rows: Rows = []
        for group in _groups(tokens):
            if group[0].type != "table_open":
                rows += self._block(group, width, 0, None)
                continue
            found = self._cells(group)
            how = self._sizes.get((first, width)) or self._first_sizes.get((first, width))
            if how is None:
                whole = next((g for g in _groups(parser().parse(first)) if g[0].type == "table_open"), group)
                sampled = self._cells(whole)
                how = self._first_sizes[first, width] = tables.sizes(sampled.head, sampled.rows, width)
            for row in found.rows:
                how = tables.grown(how, row, width)
                rows += self._rows(found._replace(rows=[row]), how, width, apart=True)
            self._sizes[first, width] = how
        return rows

    def _table(self, group: "Sequence[Token]", width: int) -> Rows:
        found = self._cells(group)
        how = tables.sizes(found.head, found.rows, width)
        return tables.head_lines(found.head, found.aligns, how) + self._rows(found, how, width, apart=False)

    def _rows(self, found: _Table, how: Sizes, width: int, *, apart: bool) -> Rows:
        rows: Rows = []
        for row in found.rows:
            if not how.widths and (rows or apart):
                rows.append([])
            rows += tables.row_lines(found.head, row, found.aligns, how, width)
        return rows

    def _cells(self, group: "Sequence[Token]") -> _Table:
        found = _Table([], [], [])
        for n, token in enumerate(group):
            if token.type == "th_open":
                found.head.append(self._inline(group[n + 1]))
                align = str(token.attrGet("style") or "").rpartition(":")[2]
                found.aligns.append("right" if align == "right" else "center" if align == "center" else "left")
            elif token.type == "tr_open" and found.head:
                found.rows.append([])
            elif token.type == "td_open":
                found.rows[-1].append(self._inline(group[n + 1]))
        return found

    def _inline(self, token: "Token") -> list[Line]:
        """Return the text of an inline token, one line for each of its own."""
        runs: Line = []
        self._spans(iter(token.children or []), runs, theme.PLAIN)
        lines: list[Line] = [[]]
        for run in runs:
            if run[0] == "\n":
                lines.append([])
            else:
                lines[-1].append(run)
        return lines

    def _spans(self, tokens: "Iterator[Token]", runs: Line, style: Style) -> None:
        """Append the tokens up to the end of the span that is open. A line feed is a run of its own."""
        for token in tokens:
            if token.type == "text":
                if token.content:
                    runs.append((_flat(token.content), style))
            elif token.type in ("softbreak", "hardbreak"):
                runs.append(("\n", theme.PLAIN))
            elif token.type == "code_inline":
                runs.append((f"`{_flat(token.content)}`", style + theme.CODE))
            elif token.type == "link_open":
                self._link(tokens, token, runs, style)
            elif token.type == "image":
                runs.append((_flat(f"[image: {token.content}] ({_target(token, 'src')})"), style))
            elif token.nesting == 1:
                self._spans(tokens, runs, style + _INLINE.get(token.tag, theme.PLAIN))
            elif token.nesting == -1:
                return
            else:
                runs.append((_flat(token.content), style))

    def _link(self, tokens: "Iterator[Token]", token: "Token", runs: Line, style: Style) -> None:
        """Show a link as its text and its address: no hidden addresses."""
        start = len(runs)
        self._spans(tokens, runs, style)
        target = _flat(_target(token, "href"))
        label = plain(runs[start:])
        if target not in (label, f"mailto:{label}"):
            runs.append((f" ({target})", style + theme.DIM))


def _target(token: "Token", name: str) -> str:
    """Return where a link or an image leads, with its title as it is written in Markdown."""
    title = token.attrGet("title")
    return f"{token.attrGet(name) or ''}" + (f' "{title}"' if title else "")


def _beyond_language(info: str) -> str:
    """Return what the words behind a fence say more than a language; all of them where they begin with a file."""
    first = language(info)
    rest = info[len(first) :]
    return info if "." in first or rest.startswith(("/", "\\", "=")) else rest.lstrip(" :,")


def _flat(text: str) -> str:
    return clean(text).replace("\n", " ")


def _wrapped(lines: Iterable[Line], width: int) -> Rows:
    return [row for line in lines for row in wrap(line, max(width, MIN_WIDTH))]


def _groups(tokens: "Sequence[Token]") -> "Iterator[Sequence[Token]]":
    """Yield each token, or each opening token with all up to its close."""
    start, depth = 0, 0
    for n, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            yield tokens[start : n + 1]
            start = n + 1
