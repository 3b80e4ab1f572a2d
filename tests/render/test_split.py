"""Blocks of a streaming text: any chunking gives the same, nothing is lost, and the work is linear."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.render.split import LINE_CHARS, PIECE_LINES, TABLE_ROWS, Block, BlockSplitter, split
from tests.render.rig import MARKDOWN
from tests.render.test_screen import PARTS


def fed(pieces: list[str]) -> list[Block]:
    splitter = BlockSplitter()
    return [block for piece in pieces for block in splitter.feed(piece)] + splitter.finish()


@given(st.lists(PARTS, max_size=60), st.lists(st.integers(0, 80), max_size=20))
@settings(max_examples=300, deadline=None)
def test_any_chunking_gives_the_same_blocks(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert fed(pieces) == fed(list(text)) == split(text)


@given(st.lists(st.sampled_from(["a", "- b", "1. c", "  d", "", "```", "# e", "> f", "---", "|g|"]), max_size=30))
def test_no_word_is_lost(lines: list[str]) -> None:
    kept = " ".join(block.text for block in split("\n".join(lines)))
    for word in "abcdefg":
        assert kept.count(word) == "\n".join(lines).count(word)


def test_blocks_of_a_page() -> None:
    kinds = [block.kind for block in split(MARKDOWN)]
    assert kinds == [
        "heading", "text", "text", "item", "item", "item", "table", "code", "code", "code", "text", "rule", "text",
        "text",
    ]  # fmt: skip


def test_a_block_is_finished_as_soon_as_it_can_be() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("para") == []
    assert [b.text for b in splitter.feed("graph\n\n")] == ["paragraph"]
    assert [b.text for b in splitter.feed("# title\n")] == ["# title"]
    assert splitter.feed("- a\n\n  still a\n") == []
    assert [b.text for b in splitter.feed("- b\n")] == ["- a\n\n  still a"]
    assert [b.text for b in splitter.feed("```sh\nls\n\n# no title\n```\n")] == ["- b", "ls", "", "# no title"]


def test_items_keep_their_numbers() -> None:
    assert [b.number for b in split("3. a\n3. b\n\n1. c\n- d\n1. e\n")] == [3, 4, 5, None, 1]


def test_code_comes_by_lines_and_what_must_be_seen_whole_as_a_whole() -> None:
    code = ["import x", "", "/* a comment", "", "   of lines */", "let s = '/*'; // /*", "end()"]
    text = "```js\n" + "\n".join(code) + "\n```\nend"
    assert [b.text for b in split(text)] == [*code[:2], "\n".join(code[2:5]), *code[5:], "end"]
    assert [b.more for b in split(text)] == [False, True, True, True, True, False]
    endless = split("```c\n/*\n" + "\n".join(f"line {n}" for n in range(3 * PIECE_LINES)) + "\n```")
    assert "\n".join(b.text for b in endless).count("\n") == 3 * PIECE_LINES
    assert len(endless) > 3


def test_rows_of_a_table_come_one_by_one_once_its_columns_are_known() -> None:
    rows = [f"| {n} | b |" for n in range(TABLE_ROWS + 5)]
    splitter = BlockSplitter()
    first = splitter.feed("Said:\n| n | x |\n|--:|---|\n" + "\n".join(rows[:TABLE_ROWS]) + "\n")
    assert [b.kind for b in first] == ["text", "table"]
    assert [b.text for b in splitter.feed(rows[-1] + "\n")] == [rows[-1]]
    assert [b.kind for b in splitter.feed("- x\n")] == []


def test_a_long_item_goes_on_where_it_was_cut() -> None:
    lines = [f"   - part {n} {'word ' * 20}" for n in range(100)]
    blocks = split("1. first\n" + "\n".join(lines) + "\n2. second\n")
    assert {b.number for b in blocks[:-1]} == {1}
    assert [b.more for b in blocks] == [False, *[True] * (len(blocks) - 2), False]
    assert len(blocks) > 2
    fenced = split("- x\n  ```py\n" + "  y = 1\n" * 1_000 + "  ```\n  end\n")
    assert all(b.text.startswith("```py\n") for b in fenced[1:-1])
    assert fenced[-1].text.endswith("```\nend")


def test_a_line_without_end_is_broken() -> None:
    text = "x" * (3 * LINE_CHARS + 5)
    assert "".join(b.text for b in split(text)).replace("\n", "") == text


@pytest.mark.ratio
def test_work_grows_with_the_text() -> None:
    def seconds(lines: int) -> float:
        splitter, start = BlockSplitter(), time.perf_counter()
        for n in range(lines):
            splitter.feed("some words ")
            splitter.feed(f"of line {n}\n" + "\n" * (n % 7 == 0))
            splitter.open_block(4_000)
        return time.perf_counter() - start

    seconds(2_000)
    assert seconds(32_000) < 16 * seconds(2_000) * 3
