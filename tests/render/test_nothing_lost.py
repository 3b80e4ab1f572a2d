"""Random documents: every word of the source is shown, within the width, without controls, live as in a replay."""

import random
import re
from itertools import count

import pytest
from rich.cells import cell_len

from agentsh.base.text import clean
from agentsh.render.markdown import Flow
from agentsh.render.paint import Painter
from agentsh.render.split import TABLE_ROWS, BlockSplitter, split

# fmt: off
SPICE = (
    "**", "_", "`", "~~", "\\", "&amp;", "&#27;", "<b>", "<!-- ", "|", "![", "](", "[", "\t", "修复", "e\u0301",
    "👨‍👩‍👧", "\x1b[31m", "\u202e", "#", ":", "- ", "> ", "    ", "\x85", "\x00", "\ud800", "&#8238;", "  \n", "\\\n",
)
SPANS = (
    "{}", "{}", "{}", "[{}](h{})", '[{}](h{} "{}")', '![{}](h{} "{}")', "**{} {}**", "`{} | {}`", "``{} ` {}``",
    "<https://{}>", "<div class='{}'>", "[{}][{}]", "[{}]: /{} '{}'",
)
# fmt: on
BAD = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
SGR = re.compile("\x1b\\[[0-9;]*m")


class Document:
    """Shapes of Markdown, nested in each other, their words numbered."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._word = count(100)

    def words(self, most: int = 5) -> str:
        made = []
        for _ in range(self.random.randint(1, most)):
            made.append(re.sub(r"\{\}", lambda _: f"q{next(self._word)}", self.random.choice(SPANS)))
            if self.random.random() < 0.3:
                made.insert(self.random.randrange(len(made) + 1), self.random.choice(SPICE))
        return self.random.choice((" ", " ", "")).join(made)

    def table(self) -> str:
        columns = self.random.randint(1, 4)
        wide = [
            columns,
            *(columns + self.random.choice((0, 0, 1, -1)) for _ in range(self.random.choice((1, 3, 50)))),
        ]
        rows = [" | ".join(self.words(2) for _ in range(max(n, 1))) for n in wide]
        return "\n".join(f"| {row} |" for row in (rows[0], " | ".join([":-:"] * columns), *rows[1:]))

    def block(self, depth: int = 0) -> str:
        def inner() -> str:
            return self.words() if depth > 2 else self.block(depth + 1)

        match self.random.randrange(8):
            case 0:
                mark = self.random.choice(("- ", "* ", "1. ", "10) ", "-\t"))
                lead = " " * self.random.choice((len(mark), len(mark), 0, 4))
                items = [mark + f"\n{lead}".join(inner().split("\n")) for _ in range(self.random.randint(1, 3))]
                return self.random.choice(("\n", "\n\n")).join(items)
            case 1:
                return "\n".join("> " + line for line in inner().split("\n"))
            case 2:
                fence = self.random.choice(("```", "~~~"))
                info = self.random.choice(("", "python", "diff file=q042.py", "sh:q042.sh"))
                body = [self.random.choice((self.words(), '"""', "/*", "", "    ", "> x")) for _ in range(4)]
                return "\n".join([fence + info, *body, *self.random.choice(((), (fence,), (fence,)))])
            case 3:
                return self.table()
            case 4:
                return f"{self.words()}\n{self.random.choice(('===', '---', '-'))}"
            case 5:
                return "#" * self.random.randint(1, 7) + " " + self.words()
            case _:
                return "\n".join(self.words() for _ in range(self.random.randint(1, 3)))

    def text(self) -> str:
        gap = self.random.choice(("\n", "\n\n", "\n\n\n"))
        text = gap.join(self.block() for _ in range(self.random.randint(1, 5)))
        return text.replace("\n", "\r\n") if self.random.random() < 0.1 else text


def at_once(text: str, width: int, *, colour: bool = False) -> list[str]:
    return Flow().rows(split(text), Painter(colour=colour), width)


def streamed(text: str, width: int, sizes: random.Random) -> tuple[list[str], list[str]]:
    painter, flow, splitter = Painter(colour=False), Flow(), BlockSplitter()
    rows: list[str] = []
    previews: list[str] = []
    at = 0
    while at < len(text):
        size = sizes.choice((1, 3, 20, 200))
        rows += flow.rows(splitter.feed(text[at : at + size]), painter, width)
        if block := splitter.open_block(4_000):
            previews += flow.preview(block, painter, width)
        at += size
    return rows + flow.rows(splitter.finish(), painter, width), previews


@pytest.mark.parametrize("width", [20, 40, 80])
def test_random_documents(width: int) -> None:
    for seed in range(25):
        document = Document(1_000 * width + seed)
        text = document.text()
        rows = at_once(text, width)
        live, previews = streamed(text, width, document.random)
        assert live == rows, (seed, text)
        assert [SGR.sub("", row).rstrip() for row in at_once(text, width, colour=True)] == rows, (seed, text)
        for row in rows + previews:
            assert cell_len(row) <= width, (seed, row, text)
            assert not BAD.search(row), (seed, row, text)
        wide = " ".join(at_once(text, 4_000))
        assert not set(re.findall(r"q\d{3}", clean(text))) - set(re.findall(r"q\d{3}", wide)), (seed, text)


def test_a_row_with_more_cells_than_the_table_keeps_them() -> None:
    rows = at_once("| cmd | what |\n|---|---|\n| `a | b` | pipes |\n| c | d | e | f |\n| g |\n", 80)
    assert rows[2:] == ["`a | b`   pipes", "c         d | e | f", "g"]
    assert at_once("| a |\n|---|\n| &Tab;some words |\n", 80)[-1] == "        some words"
    nested = at_once("> - | x |\n>   |---|\n>   | y | z |\n", 80)
    assert nested[-1] == "│   y | z"


def test_titles_and_what_stands_behind_a_fence_are_shown() -> None:
    assert at_once('[a](u "why") ![b](v "how")', 80) == ['a (u "why") [image: b] (v "how")']
    text = "```python src/a.py\nx = 1\n```\n\n- ```sh:run.sh\n  ls\n  ```\n"
    assert at_once(text, 80) == ["  src/a.py", "  x = 1", "", "•   run.sh", "    ls"]
    for file in ("src/main.py", "main.py", "title=a"):
        assert at_once(f"```{file}\nx\n```\n", 80) == [f"  {file}", "  x"]
    assert at_once("```c++\nint x;\n```\n", 80) == ["  int x;"]


@pytest.mark.parametrize("end", ["> quoted", "- item", "7. item", "---", "    code"])
def test_a_table_ends_where_the_parser_ends_it(end: str) -> None:
    for rows in (1, TABLE_ROWS + 2):  # before its columns are known, and after
        text = "| a | b |\n|---|---|\n" + "| c | d |\n" * rows + f"{end}\n| e | f |\n"
        lines = at_once(text, 80)
        assert streamed(text, 80, random.Random(1))[0] == lines
        assert lines[rows + 2] == "", "air behind a table, whatever follows"
