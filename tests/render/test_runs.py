"""Lines of styled text: broken as rich breaks them; code in the colours that it has as a whole; tables that fit."""

import inspect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from agentsh.render import split as split_module
from agentsh.render.code import Colours
from agentsh.render.markdown import Flow
from agentsh.render.paint import Painter
from agentsh.render.runs import Line, columns, fold, plain, wrap
from agentsh.render.split import TABLE_ROWS, split
from agentsh.render.theme import BOLD, PLAIN

WORDS = st.sampled_from(
    ["a", "word", "longer-than-most", "x" * 33, " ", " ", " ", "  ", "\t", "修复", "修复失败的测试用例", "e\u0301",
     "é", "👩\u200d👩\u200d👧"]
)  # fmt: skip


@given(words=st.lists(WORDS, max_size=30), width=st.integers(8, 40))
@settings(max_examples=400, deadline=None)
def test_lines_break_where_rich_breaks_them(words: list[str], width: int) -> None:
    text = "".join(words)
    runs = [(word, BOLD if n % 2 else PLAIN) for n, word in enumerate(words)]
    ours = [plain(part).rstrip() for part in wrap(runs, width)]
    theirs = Text(text).wrap(Console(width=width), width, overflow="fold", tab_size=8)
    assert ours == [line.plain.rstrip() for line in theirs]


@given(words=st.lists(WORDS, max_size=12), width=st.integers(8, 40))
def test_code_breaks_at_the_edge_and_loses_nothing(words: list[str], width: int) -> None:
    text = "".join(words).replace("\t", "    ")
    parts = fold([(text, PLAIN)], width)
    assert "".join(map(plain, parts)) == text
    assert all(columns(part) <= width for part in parts)


SAMPLES = {
    "python": inspect.getsource(split_module),
    "js": "/**\n * It adds.\n */\nfunction f(a) {\n  let s = `sum\n  ${a}`; // done\n  return /x/.test(s);\n}\n",
    "css": "/* a\n   comment */\na:hover,\n.b {\n  color: #fff;\n  margin: 0 auto;\n}\n",
    "html": "<!-- a\n comment -->\n<p class='x'>\n<script>\nlet a = 1;\n</script>\n</p>\n",
    "go": "package a\n\nvar s = `raw\nstring`\n\nfunc f() int { return 1 }\n",
    "bash": 'for f in *; do\n  echo "a\n  b $f"\ndone\n',
    "sql": "select a, /* not\n b */ c\nfrom t where x = 'y';\n",
}


def characters(lines: list[Line]) -> list[tuple[str, object]]:
    return [
        (char, style)
        for line in lines
        for text, style in [*line, ("\n", PLAIN)]
        for char in text
        if not char.isspace()
    ]


@pytest.mark.parametrize("language", SAMPLES)
def test_code_by_lines_has_the_colours_of_the_whole(language: str) -> None:
    text = SAMPLES[language].rstrip("\n")
    fence = "~" * 9
    by_lines = Colours(language)
    blocks = [block for block in split(f"{fence}{language}\n{text}\n{fence}\n") if block.kind == "code"]
    assert len(blocks) > text.count("\n") // 2
    lines = [line for block in blocks for line in by_lines.lines(block.text)]
    whole = Colours(language).lines(text)
    assert [plain(line) for line in lines] == text.split("\n")
    assert characters(lines) == characters(whole)
    assert len({style for _, style in characters(whole)}) > 2


def shown(text: str, width: int) -> list[str]:
    return Flow().rows(split(text), Painter(colour=False), width)


def test_rows_of_a_long_table_stand_below_each_other() -> None:
    rows = "".join(f"| row {n} | {n * 1000} |\n" for n in range(3 * TABLE_ROWS))
    lines = shown("| name | n |\n|---|--:|\n" + rows, 40)
    assert len(lines) == 2 + 3 * TABLE_ROWS
    assert {len(line) for line in lines[2:102]} == {14}
    assert {len(line) for line in lines[102:]} == {16}  # both columns need one more from here on


def test_a_table_that_does_not_fit_becomes_lists() -> None:
    names = [f"column {n}" for n in range(8)]
    line = "| " + " | ".join(names) + " |\n"
    lines = shown(line + "|---" * 8 + "|\n" + line.replace("column", "value") * 2, 40)
    one = [f"column {n}: value {n}" for n in range(8)]
    assert lines == [*one, "", *one]
