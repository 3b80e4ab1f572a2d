"""The Markdown parser, set up so that nothing of a text is dropped. It loads when it is first asked for."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

_PIPE = re.compile(r"(?<!\\)\|")
_TICKS = re.compile(r"(?<!\\)`+")


@cache
def parser() -> "MarkdownIt":
    """Return the parser: CommonMark with tables and strikethrough; HTML and references stay as they were written."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import table

    def rule(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        first = len(state.tokens)
        found = table(state, start, end, silent)
        if found and not silent:
            _keep_cells(state, state.tokens[first:])
        return found

    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")
    made.block.ruler.at("table", rule, {"alt": ["paragraph", "reference"]})
    return made


def _keep_cells(state: "StateBlock", tokens: "list[Token]") -> None:
    """Give a row the cells back that it has beyond the columns of its table, which the parser drops."""
    rows: list[tuple[int, list[Token]]] = []
    for token in tokens:
        if token.type == "tr_open" and token.map:
            rows.append((token.map[0], []))
        elif token.type == "inline":
            rows[-1][1].append(token)
    for line, inlines in rows[1:]:
        source = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
        cells = _PIPE.split(source.strip().removeprefix("|"))
        if len(cells) > 1 and not cells[-1].strip():
            cells.pop()
        if len(cells) > len(inlines):
            for token, text in zip(inlines, _joined(cells, len(inlines)), strict=True):
                token.content = text.strip()


def _joined(cells: list[str], most: int) -> list[str]:
    """Join cells until they are at most so many: first where a pipe stands in code, then the last ones."""
    joined: list[str] = []
    for n, cell in enumerate(cells):
        spare = len(joined) + len(cells) - n > most
        if joined and spare and len(_TICKS.findall(joined[-1])) % 2:
            joined[-1] += "|" + cell
        else:
            joined.append(cell)
    return [*joined[: most - 1], "|".join(joined[most - 1 :])]
