"""Edits change what they say and not one byte else."""

import codecs
import difflib
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
from agentsh.workspace.local import LocalWorkspace
from tests.tools import patch_cases
from tests.tools.conftest import Call

BOM = b"\xef\xbb\xbf"
HIGH = bytes(range(128, 255))
TEXT = b" and much more text of an ordinary kind\n" * 20

# name: (bytes before, old, new, bytes after)
CASES: dict[str, tuple[bytes, str, str, bytes]] = {
    "one word": (b"a b c\n", "b", "B", b"a B c\n"),
    "one line": (b"a\nb\nc\n", "b\n", "B\n", b"a\nB\nc\n"),
    "several lines": (b"a\nb\nc\nd\n", "b\nc", "x", b"a\nx\nd\n"),
    "deletion": (b"a\nb\nc\n", "b\n", "", b"a\nc\n"),
    "insertion": (b"a\nc\n", "a\n", "a\nb\n", b"a\nb\nc\n"),
    "the whole file": (b"a\n", "a\n", "b\n", b"b\n"),
    "down to nothing": (b"a\n", "a\n", "", b""),
    "at the start": (b"ab\n", "a", "", b"b\n"),
    "no final newline": (b"a\nb", "b", "c", b"a\nc"),
    "no final newline, edit elsewhere": (b"a\nb", "a", "c", b"c\nb"),
    "a final newline is added": (b"a", "a", "a\n", b"a\n"),
    "a final newline is taken": (b"a\n", "a\n", "a", b"a"),
    "only newlines": (b"\n\n\n", "\n\n\n", "\n", b"\n"),
    "tabs": (b"\tif x:\n\t\ty\n", "\t\ty", "\t\tz", b"\tif x:\n\t\tz\n"),
    "tabs and spaces": (b"\t  x\n", "\t  x", "\t  y", b"\t  y\n"),
    "trailing space": (b"a  \nb\n", "a  \n", "a\n", b"a\nb\n"),
    "CRLF, one word": (b"a\r\nb\r\n", "b", "c", b"a\r\nc\r\n"),
    "CRLF, lines with LF given": (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
    "CRLF, lines with CRLF given": (b"a\r\nb\r\nc\r\n", "a\r\nb\r\n", "x\r\n", b"x\r\nc\r\n"),
    "CRLF, a line more": (b"a\r\nb\r\n", "a", "a\nx", b"a\r\nx\r\nb\r\n"),
    "CRLF, up to the line end": (b"a\r\nb\r\n", "a\n", "A\n", b"A\r\nb\r\n"),
    "CRLF, from the line end on": (b"a\r\nb\r\n", "\nb", "\nB", b"a\r\nB\r\n"),
    "CRLF, no final newline": (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
    "mixed, in the LF part": (b"a\r\nb\nc\nd\r\n", "b\nc\n", "x\ny\n", b"a\r\nx\ny\nd\r\n"),
    "mixed, in the CRLF part": (b"a\nb\r\nc\r\nd\n", "b\nc\n", "x\ny\n", b"a\nx\r\ny\r\nd\n"),
    "mixed, over both, mostly CRLF": (b"a\nb\r\nc\r\nd\r\n", "a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\nd\r\n"),
    "mixed, the rest untouched": (b"a\r\nb\nX\r\n\nc\r\n", "X", "Y", b"a\r\nb\nY\r\n\nc\r\n"),
    "LF, CRLF wanted": (b"a\nb\n", "a\n", "a\r\n", b"a\r\nb\n"),
    "lone CR stays": (b"a\rb\nc\n", "c", "d", b"a\rb\nd\n"),
    "byte order mark": (BOM + b"a\nb\n", "a", "c", BOM + b"c\nb\n"),
    "byte order mark given too": (BOM + b"a\nb\n", "\ufeffa", "c", BOM + b"c\nb\n"),
    "byte order mark and CRLF": (BOM + b"a\r\nb\r\n", "a\nb\n", "c\n", BOM + b"c\r\n"),
    "UTF-8": ("größe = 1\n".encode(), "größe", "höhe", "höhe = 1\n".encode()),
    "composed and decomposed are not the same": ("e\u0301 é\n".encode(), "é", "x", "e\u0301 x\n".encode()),
    "line separator": ("a\u2028b\nc\n".encode(), "c", "d", "a\u2028b\nd\n".encode()),
    "form feed and other blanks": (b"a\x0cb\x0bc\nd\n", "d", "e", b"a\x0cb\x0bc\ne\n"),
    "latin-1": (b"caf\xe9 = 1\nna\xefve\n", "café = 1", "thé = 2", b"th\xe9 = 2\nna\xefve\n"),
    "latin-1, edit elsewhere": (b"caf\xe9\nx\n", "x", "y", b"caf\xe9\ny\n"),
    "latin-1 and CRLF": (b"caf\xe9\r\nx\r\n", "café\nx", "café\ny", b"caf\xe9\r\ny\r\n"),
    "windows-1252": (b"\x93caf\xe9\x94\nx\n", "“café”", "‘café’", b"\x91caf\xe9\x92\nx\n"),
    "every byte above 127": (HIGH + b"\xff" + TEXT, "ÿ", "y", HIGH + b"y" + TEXT),
    "UTF-16": ("\ufeffa\nb\n".encode("utf-16-le"), "b", "ü", "\ufeffa\nü\n".encode("utf-16-le")),
    "regular expression characters": (b"a.*(b)[c]\\d\n", "a.*(b)[c]\\d", "\\1$0", b"\\1$0\n"),
    "old is part of new": (b"x\n", "x", "xx", b"xx\n"),
    "exact goes before alike": (b"  a \n  b\na\nb\n", "a\nb\n", "x\n", b"  a \n  b\nx\n"),
    "very long line": (b"a" * 100_000 + b"X" + b"b" * 100_000, "aXb", "aYb", b"a" * 100_000 + b"Y" + b"b" * 100_000),
}  # fmt: skip


@pytest.fixture
def workspace(root: Path) -> LocalWorkspace:
    """As in conftest, but no process is looked for at the end: these tools start none, and the tables are long."""
    return LocalWorkspace(root, session="test-edit")


@pytest.mark.parametrize("case", CASES)
async def test_edit(root: Path, call: Call, case: str) -> None:
    before, old, new, after = CASES[case]
    (root / "f").write_bytes(before)
    (root / "f").chmod(0o755)
    outcome = await call("edit", path="f", old=old, new=new)
    assert (root / "f").read_bytes() == after
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o755
    assert outcome.for_model.startswith("edited f (1 place, line ")
    (edit,) = outcome.edits
    assert (edit.path, edit.before, edit.after) == ("f", before, after)


# As above; old is not there as it is, but for white space, and only once.
ALIKE: dict[str, tuple[bytes, str, str, bytes]] = {
    "trailing blanks in the file": (b"a  \nb\t\nc\n", "a\nb\n", "x\ny\n", b"x\ny\nc\n"),
    "trailing blanks in old": (b"a\nb\nc\n", "a \nb\t\n", "x\n", b"x\nc\n"),
    "trailing blanks stay where nothing changes": (b"a  \nb\nc\n", "a\nb\nc\n", "a\nB\nc\n", b"a  \nB\nc\n"),
    "trailing blanks, no line end in old": (b"a  \nb\nc\n", "a\nb", "a\nB", b"a  \nB\nc\n"),
    "indented more": (b"    a\n        b\n", "a\n    b\n", "a\n    c\n", b"    a\n        c\n"),
    "indented less": (b"a\n  b\n", "    a\n      b\n", "    x\n      y\n", b"x\n  y\n"),
    "indented less than the new lines can be": (b"a\nb\n", "  a\n  b\n", "x\n  y\n", b"x\ny\n"),
    "one line": (b"x\n\ta = 1\n", "    a = 1\n", "    a = 2\n", b"x\n\ta = 2\n"),
    "deeper lines that are new": (
        b"  if x:\n    y\n", "if x:\n  y\n", "if x:\n  if z:\n    y\n", b"  if x:\n    if z:\n      y\n"),
    "empty lines are not indented": (b"  a\n\n  b\n", "a\n\nb\n", "a\n\nc\n", b"  a\n\n  c\n"),
    "empty lines with blanks in the file": (b"a\n  \nb\n", "a\n\nb\n", "a\n\nc\n", b"a\n  \nc\n"),
    "empty lines with blanks in old": (b"a\n\nb\n", "a\n  \nb\n", "x\n", b"x\n"),
    "tabs in the file": (
        b"def f():\n\tif x:\n\t\treturn 1\n", "def f():\n    if x:\n        return 1\n",
        "def f():\n    if x:\n        return 2\n    return 3\n", b"def f():\n\tif x:\n\t\treturn 2\n\treturn 3\n"),
    "tabs in the file, two spaces in old": (b"a\n\tb\n\t\tc\n", "a\n  b\n    c", "a\n  d", b"a\n\td\n"),
    "tabs in the file, and a half": (b"\ta\n\t\tb\n", "    a\n        b\n", "    a\n      b\n", b"\ta\n\t  b\n"),
    "spaces in the file": (b"  a\n    b\n", "\ta\n\t\tb\n", "\ta\n\t\tc\n\t\t\td\n", b"  a\n    c\n      d\n"),
    "four spaces to a tab": (b"f\n    a\n", "f\n\ta\n", "f\n\tb\n", b"f\n    b\n"),
    "both kinds of blanks": (b"a \n\tb\n", "a\n    b \n", "a\n    c\n", b"a \n\tc\n"),
    "deletion": (b"x\n  a\n  b\ny\n", "a\nb\n", "", b"x\ny\n"),
    "deletion of the text, the line end stays": (b"x\n\ta\ny\n", "    a", "", b"x\n\ny\n"),
    "no line end at the end": (b"x\n  a\n  b", "a\nb\n", "a\nc\n", b"x\n  a\n  c"),
    "no line end at the end, none in old": (b"x\n\ta", "  a", "  b", b"x\n\tb"),
    "no line end at the end, exact but for it": (b"a\nb", "b\n", "c\n", b"a\nc"),
    "the same, deleted": (b"a\nb", "b\n", "", b"a\n"),
    "more lines at the end": (b"\ta\n", "    a\n", "    a\n    b\n", b"\ta\n\tb\n"),
    "an empty line first": (b"x\n\n\ta\n", "\n    a\n", "\n    b\n", b"x\n\n\tb\n"),
    "an empty line last": (b"\ta\n\nx\n", "    a\n\n", "    b\n\n", b"\tb\n\nx\n"),
    "CRLF, indented": (b"    a\r\n    b\r\n", "a\nb\n", "a\nc\n", b"    a\r\n    c\r\n"),
    "CRLF, trailing blanks": (b"a  \r\nb\r\n", "a\r\nb\r\n", "a\r\nc\r\n", b"a  \r\nc\r\n"),
    "CRLF, tabs, one more line": (b"\ta\r\nx\r\n", "    a\n", "    a\n    b\n", b"\ta\r\n\tb\r\nx\r\n"),
    "CRLF, no line end at the end": (b"x\r\n\ta", "    a\n", "    b\n", b"x\r\n\tb"),
    "byte order mark and tabs": (BOM + b"\ta\n", "    a\n", "    b\n", BOM + b"\tb\n"),
    "byte order mark, CRLF, blanks": (BOM + b"a \r\nb\r\n", "a\nb\n", "a\nc\n", BOM + b"a \r\nc\r\n"),
    "latin-1 and tabs": (b"\tcaf\xe9\n", "    café\n", "    thé\n", b"\tth\xe9\n"),
    "UTF-16 and tabs": ("\ufeff\ta\n".encode("utf-16-le"), "  a\n", "  b\n", "\ufeff\tb\n".encode("utf-16-le")),
    "replace_all is not needed for one": (b"\ta\nb\n", "    a\nb", "    c\nb", b"\tc\nb\n"),
    "moved lines": (b"\ta\n\tb\n", "    a\n    b\n", "    b\n    a\n", b"\tb\n\ta\n"),
    "comment characters and signs": (b"\t- a\n\t# b\n", "  - a\n  # b\n", "  - c\n  # b\n", b"\t- c\n\t# b\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", ALIKE)
async def test_white_space_is_forgiven_where_there_is_one_place(root: Path, call: Call, case: str) -> None:
    before, old, new, after = ALIKE[case]
    (root / "f").write_bytes(before)
    outcome = await call("edit", path="f", old=old, new=new)
    assert (root / "f").read_bytes() == after
    assert outcome.for_model.startswith("edited f (1 place, line ")
    assert ("alike but for" in outcome.for_model) is (old != "b\n")


@pytest.mark.parametrize(
    ("before", "old", "why"),
    [
        ("\ta\n\t\ta\n", "    a\n", "but for indentation it is there 2 times, first in line 1"),
        ("a \na\t\n", "a\nb", "1 + a·"),
        ("a \nb\na\t\nb\n", "a\nb\n", "but for blanks at the ends it is there 2 times"),
        ("  a\n b\n", "a\nb\n", "not found. Nearest: lines 1-2. They differ only in white space."),
        ("f( x )\n", "f(x)", "1 + f( x )"),
        ("\ta = 1  # one\n", "    a = 1\n", "1 + →a = 1  # one"),
        ("  \n", "\t\n", "not found"),
        ("“a”\n", '"a"', "1 + “a”"),
    ],
)
async def test_white_space_is_not_forgiven_where_it_is_not_clear(
    root: Path, call: Call, before: str, old: str, why: str
) -> None:
    (root / "f").write_text(before)
    assert why in await fails(call, path="f", old=old, new="new")
    assert (root / "f").read_text() == before


DRESSES: dict[str, Callable[[str], bytes]] = {
    "LF": str.encode,
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "byte order mark": lambda text: BOM + text.encode(),
    "byte order mark and CRLF": lambda text: BOM + text.replace("\n", "\r\n").encode(),
    "latin-1": lambda text: (text + "\u00e9\n").encode("latin-1"),
    "latin-1 and CRLF": lambda text: (text + "\u00e9\n").replace("\n", "\r\n").encode("latin-1"),
    "UTF-16": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    "no line end at the end": lambda text: (text + "end").encode(),
    "tabs": lambda text: text.replace("    ", "\t").encode(),
    "indented": lambda text: "".join(f"  {line}\n" if line else "\n" for line in text.split("\n")[:-1]).encode(),
    "trailing blanks": lambda text: text.replace("keep\n", "keep  \n").encode(),
}
CHANGES = {
    "a line": ("keep\n    old\nkeep\n", "keep\n    new\nkeep\n"),
    "lines put in": ("keep\n    old\n", "keep\n    old\n        more\n    more\n"),
    "lines taken away": ("keep\n    old\nkeep\n", "keep\nkeep\n"),
    "lines around an empty one": ("keep\n\n    old\n", "keep\n\n    new\n"),
}


@pytest.mark.parametrize("tool", ["edit", "apply_patch"])
@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("change", CHANGES)
async def test_however_a_file_is_written_it_stays_so(
    root: Path, call: Call, change: str, dress: str, tool: str
) -> None:
    """M185, M188: what a model gives is plain text with LF and spaces; each byte that is not meant stays."""
    old, new = CHANGES[change]
    (root / "f").write_bytes(DRESSES[dress](f"first\n{old}last\n"))
    if tool == "edit":
        await call("edit", path="f", old=old, new=new)
    else:
        kept = difflib.ndiff(old.splitlines(True), new.splitlines(True))
        lines = [line[0] + line[2:] for line in kept if line[0] != "?"]
        await call(
            "apply_patch", patch="*** Begin Patch\n*** Update File: f\n@@\n" + "".join(lines) + "*** End Patch"
        )
    assert (root / "f").read_bytes() == DRESSES[dress](f"first\n{new}last\n")


def test_there_are_enough_cases() -> None:
    by_hand = (
        len(CASES) + len(ALIKE) + len(patch_cases.UPDATES) + len(patch_cases.MISSES) + len(patch_cases.UNREADABLE)
    )
    assert by_hand >= 200, by_hand
    assert 2 * len(DRESSES) * len(CHANGES) >= 80


@pytest.mark.parametrize(
    ("before", "old", "new", "summary"),
    [
        ("a\nb\nc\n", "b", "B", "+1 -1"),
        ("a\nc\n", "a\n", "a\nb\n", "+1 -0"),
        ("a\nb\nc\n", "b\n", "", "+0 -1"),
        ("a\nb\nc\nd\n", "a\nb\nc", "1\nb\n3\n4", "+3 -2"),
    ],
)
async def test_summary_counts_as_a_diff_does(
    root: Path, call: Call, before: str, old: str, new: str, summary: str
) -> None:
    (root / "cart.py").write_text(before)
    assert (await call("edit", path="cart.py", old=old, new=new)).for_user == f"edit cart.py {summary}"


async def test_replace_all(root: Path, call: Call) -> None:
    (root / "f").write_bytes(b"aa a\r\nba\n")
    outcome = await call("edit", path="f", old="a", new="\n", replace_all=True)
    assert (root / "f").read_bytes() == b"\n\n \n\r\nb\n\n"
    assert outcome.for_model == "edited f (4 places, from line 1)"


async def fails(call: Call, **arguments: object) -> str:
    with pytest.raises(ToolFailed) as caught:
        await call("edit", **arguments)
    return caught.value.message


async def test_several_matches_are_listed_and_nothing_is_changed(root: Path, call: Call) -> None:
    (root / "f").write_text("x\ny\nx\n\nx x\n")
    text = await fails(call, path="f", old="x", new="z")
    assert "found 4 times, in lines 1, 3, 5, 5;" in text
    assert "replace_all" in text
    assert (root / "f").read_text() == "x\ny\nx\n\nx x\n"


async def test_overlapping_matches_are_not_unique(root: Path, call: Call) -> None:
    (root / "f").write_text("aaa\n")
    assert "2 times" in await fails(call, path="f", old="aa", new="b")


async def test_many_matches_are_cut_short(root: Path, call: Call) -> None:
    (root / "f").write_text("x\n" * 300_000)
    text = await fails(call, path="f", old="x", new="z")
    assert "300000 times" in text
    assert len(text) < 400
    outcome = await call("edit", path="f", old="x", new="z", replace_all=True)
    assert outcome.for_model == "edited f (300,000 places, from line 1)"


@pytest.mark.parametrize(
    ("before", "old", "expected"),
    [
        ("a\n    b\n c\n", "a\n  b\nc", ["lines 1-3", "only in white space", "    2 + ····b"]),
        ("x\ny\nprice = total(cart)\nz\n", "price = total(card)", ["line 3", "3 + price = total(cart)", "exactly"]),
        ("one\ntwo\nthree\nfour\n", "two\nthree\nfive", ["lines 2-4", "    2   two\n    3   three\n      - five\n"]),
        ("\tb c\n", "b  c\n", ["line 1", "- b  c", "1 + →b c", "white space"]),
        ("completely different\n", "zzz qqq", ["Nothing in the file is like it"]),
        ("", "x", ["Nothing in the file"]),
    ],
)  # fmt: skip
async def test_m188_a_near_miss_is_shown(root: Path, call: Call, before: str, old: str, expected: list[str]) -> None:
    (root / "f").write_text(before)
    text = await fails(call, path="f", old=old, new="new")
    for part in expected:
        assert part in text, text
    assert (root / "f").read_text() == before


async def test_the_nearest_line_of_a_large_file_is_found(root: Path, call: Call) -> None:
    (root / "f").write_text("".join(f"line number {i} = value(x, y)\n" for i in range(20_000)))
    text = await fails(call, path="f", old="line number 17777 = valu(x, y)", new="")
    assert "17778 + line number 17777 = value(x, y)" in text


async def test_a_near_miss_is_bounded(root: Path, call: Call) -> None:
    (root / "f").write_text("".join(f"{i} {'x' * 5_000}\n" for i in range(500)) + "}\n" * 100_000)
    text = await fails(call, path="f", old="\n".join(["7 " + "x" * 5_001, *["}"] * 1_000]), new="")
    assert len(text) < 10_000


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"old": "", "new": "x"}, "write tool"),
        ({"old": "a", "new": "a"}, "the same"),
        ({"path": "absent", "old": "a", "new": "b"}, "no such file"),
        ({"path": "ff", "old": "a", "new": "b"}, "did you mean f?"),
        ({"path": "binary", "old": "a", "new": "b"}, "binary file, not text"),
        ({"path": "dir", "old": "a", "new": "b"}, "list tool"),
        ({"path": "latin", "old": "x", "new": "→"}, "latin-1"),
        ({"old": "a", "new": "\ud800"}, "U+D800"),
    ],
)
async def test_what_cannot_be_edited(root: Path, call: Call, arguments: dict[str, str], why: str) -> None:
    (root / "f").write_text("a\n")
    (root / "latin").write_bytes(b"caf\xe9 x\n")
    (root / "binary").write_bytes(b"a\0b")
    (root / "dir").mkdir()
    assert why in await fails(call, **{"path": "f", **arguments})
    assert (root / "f").read_text() == "a\n"


async def test_read_grep_and_edit_agree_on_a_file(root: Path, call: Call) -> None:
    """M187, M188: what read shows can be given to edit as it is: CRLF, a mark and tabs do not come between."""
    (root / "f").write_bytes(BOM + b"if x:\r\n\ty = 1\r\n\tz = 2\r\n")
    assert (await call("grep", pattern="y = 1")).for_model == "f:2:\ty = 1"
    shown = (await call("read", path="f", offset=2, limit=1)).for_model
    line = shown.split("\n")[1]
    assert line == "\ty = 1"
    await call("edit", path="f", old=line + "\n", new="\ty = 3\n")
    assert (root / "f").read_bytes() == BOM + b"if x:\r\n\ty = 3\r\n\tz = 2\r\n"
