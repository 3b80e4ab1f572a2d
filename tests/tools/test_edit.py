"""Edits change what they say and not one byte else."""

import stat
from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
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
    "very long line": (b"a" * 100_000 + b"X" + b"b" * 100_000, "aXb", "aYb", b"a" * 100_000 + b"Y" + b"b" * 100_000),
}  # fmt: skip


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


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 40


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
    (root / "f").write_text("x\n" * 500)
    text = await fails(call, path="f", old="x", new="z")
    assert "500 times" in text
    assert len(text) < 400


@pytest.mark.parametrize(
    ("before", "old", "expected"),
    [
        ("def f():\n\treturn 1\n", "def f():\n    return 1", ["lines 1-2", "only in white space", "→return 1"]),
        ("a\n    b\n", "a\n  b", ["lines 1-2", "····b"]),
        ("a  \nb\n", "a\nb", ["lines 1-2", "a··", "white space"]),
        ("x\ny\nprice = total(cart)\nz\n", "price = total(card)", ["line 3", "= total(cart)", "text exactly"]),
        ("one\ntwo\nthree\nfour\n", "two\nthree\nfive", ["lines 2-4", "two\nthree\nfour"]),
        ("a\nb", "b\n", ["line 2", "line ends"]),
        ("\tb\n", "b \n", ["line 1", "→b", "white space"]),
        ("completely different\n", "zzz qqq", ["Nothing in the file is like it"]),
        ("", "x", ["Nothing in the file"]),
    ],
)  # fmt: skip
async def test_a_near_miss_is_shown(root: Path, call: Call, before: str, old: str, expected: list[str]) -> None:
    (root / "f").write_text(before)
    text = await fails(call, path="f", old=old, new="new")
    for part in expected:
        assert part in text, text
    assert (root / "f").read_text() == before


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
    """What read shows can be given to edit as it is: CRLF, a byte order mark and tabs do not come between."""
    (root / "f").write_bytes(BOM + b"if x:\r\n\ty = 1\r\n\tz = 2\r\n")
    assert (await call("grep", pattern="y = 1")).for_model == "f:2:\ty = 1"
    shown = (await call("read", path="f", offset=2, limit=1)).for_model
    line = shown.split("\n")[1]
    assert line == "\ty = 1"
    await call("edit", path="f", old=line + "\n", new="\ty = 3\n")
    assert (root / "f").read_bytes() == BOM + b"if x:\r\n\ty = 3\r\n\tz = 2\r\n"
