"""Patches made at random: any edit that can be written as one comes out, and nothing that is no patch crashes."""

import asyncio
import difflib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentsh.base.errors import ToolFailed
from agentsh.ports.tool import ToolContext
from agentsh.tools.apply_patch import apply_patch
from agentsh.tools.lines import Lines, shift
from agentsh.tools.patch_format import Hunk, parse_patch, touched
from agentsh.tools.patching import apply_hunks
from agentsh.workspace.local import LocalWorkspace

BOUNDED = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
LINE = st.sampled_from(["", "a", "  a", "\ta", "b", "b ", "}", "@@ x", "-a", "+b", "*** End of File"])
LINES = st.lists(LINE, max_size=12)
ENDS = st.lists(st.sampled_from(["\n", "\r\n"]), min_size=12, max_size=12)


def hunks_of(rows: list[str]) -> list[Hunk]:
    """One hunk with the whole file, as the parser reads it."""
    text = "\n".join(["*** Begin Patch", "*** Update File: f", "@@", *rows, "*** End of File", "*** End Patch"])
    (section,) = parse_patch(text)
    return section.hunks


@BOUNDED
@given(LINES.filter(bool), LINES, st.sampled_from(["\n", "\r\n"]))
def test_every_edit_can_be_made(old: list[str], new: list[str], newline: str) -> None:
    before, after = ("".join(line + newline for line in lines) for lines in (old, new))
    rows = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        rows += [" " + line for line in old[i1:i2]] if tag == "equal" else []
        if tag != "equal":
            rows += ["-" + line for line in old[i1:i2]] + ["+" + line for line in new[j1:j2]]
    assert apply_hunks(before, hunks_of(rows), newline=newline).text == after


@BOUNDED
@given(LINES.filter(bool), ENDS, st.booleans(), st.data())
def test_lines_that_stay_keep_their_ends(old: list[str], ends: list[str], ended: bool, data: st.DataObject) -> None:
    """One line is replaced; of the others not one byte is another, mixed line ends and the missing last one too."""
    before = [line + end for line, end in zip(old, ends, strict=False)]
    if not ended and old[-1]:
        before[-1] = old[-1]
    at = data.draw(st.integers(0, len(old) - 1))
    rows = [*(" " + line for line in old[:at]), "-" + old[at], "+NEW", *(" " + line for line in old[at + 1 :])]
    after = Lines.of(apply_hunks("".join(before), hunks_of(rows), newline="\n").text)
    kept = [text + end for text, end in zip(after.texts, after.ends, strict=True)]
    assert kept[:at] + kept[at + 1 :] == before[:at] + before[at + 1 :]
    assert after.texts[at] == "NEW"


@given(st.text(alphabet="a \r\n\x0b\x0c\u2028\x85", max_size=20))
def test_lines_are_a_text_split_and_nothing_else(text: str) -> None:
    assert str(Lines.of(text)) == text


INDENTS = st.sampled_from(["", " ", "  ", "    ", "\t", "\t\t", "\t ", "        "])


@given(st.lists(st.tuples(INDENTS, INDENTS, st.sampled_from(["x", "y", ""])), min_size=1, max_size=5))
def test_a_rule_of_indentation_holds_for_the_lines_that_it_comes_from(lines: list[tuple[str, str, str]]) -> None:
    given, there = [g + text for g, _, text in lines], [t + text for _, t, text in lines]
    rule = shift(given, there)
    if rule is not None:
        assert [rule(line) for line, text in zip(given, lines, strict=True) if text[2]] == [
            line for line, text in zip(there, lines, strict=True) if text[2]
        ]


PIECES = st.sampled_from(
    [
        "*** Begin Patch", "*** End Patch", "*** Update File: a", " *** Update File: dir/b", "*** Add File: new",
        "*** Add File: ../out", "*** Delete File: a", "*** Delete File: dir", "*** Move to: c", "*** Move to: a",
        "@@", "@@ one", "@@ -1 +1 @@", " one", "-one", "+two", "+", " ", "", "-", "*** End of File", "one", "***",
        "```",
    ]
)  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[LocalWorkspace]:
    root = tmp_path / "ws"
    (root / "dir").mkdir(parents=True)
    yield LocalWorkspace(root, session="test-patch")
    assert [path.name for path in tmp_path.iterdir()] == ["ws"]


@BOUNDED
@given(pieces=st.lists(PIECES, max_size=12), wrapped=st.booleans())
def test_whatever_a_model_writes_is_done_whole_or_not_at_all(
    workspace: LocalWorkspace, pieces: list[str], wrapped: bool
) -> None:
    """And what is changed is among the paths that were judged before."""
    root = Path(workspace.root)
    for path in [path for path in root.rglob("*") if path.is_file()]:
        path.unlink()
    for name in ("a", "dir/b"):
        (root / name).write_text("one\ntwo\n")
    before = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    patch = "\n".join(["*** Begin Patch", *pieces, "*** End Patch"] if wrapped else pieces)
    changed: dict[str, bytes | None] = {}
    with suppress(ToolFailed):
        outcome = asyncio.run(apply_patch.run(ToolContext(workspace, "c"), {"patch": patch}))
        changed = {edit.path: edit.after for edit in outcome.edits}
    after = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    assert after == {name: data for name, data in (before | changed).items() if data is not None}
    assert set(changed) <= set(touched(patch))
