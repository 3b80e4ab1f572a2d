"""Patches change what they say and not one byte else, and stop at the first section that does not fit."""

import gc
import json
import os
import re
import stat
from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
from agentsh.engine.preview import preview
from agentsh.ports.workspace import Change
from agentsh.tools import patch_files as module
from agentsh.tools.apply_patch import apply_patch
from agentsh.tools.patch_format import touched
from agentsh.workspace.local import LocalWorkspace
from tests.tools.conftest import Call
from tests.tools.patch_cases import MISSES, UNREADABLE, UPDATES

DOCS = Path(__file__).parents[2] / "docs"


def patch_of(*sections: str) -> str:
    return "*** Begin Patch\n" + "".join(sections) + "*** End Patch\n"


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything below, directories too."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }  # fmt: skip


async def fails(call: Call, patch: str) -> str:
    with pytest.raises(ToolFailed) as caught:
        await call("apply_patch", patch=patch)
    return caught.value.message


@pytest.fixture
def workspace(root: Path) -> LocalWorkspace:
    """As in conftest, but no process is looked for at the end: this tool starts none, and the tables are long."""
    return LocalWorkspace(root, session="test-apply-patch")


@pytest.mark.parametrize("case", UPDATES)
async def test_update(root: Path, call: Call, case: str) -> None:
    before, hunks, after = UPDATES[case]
    (root / "f").write_bytes(before)
    (root / "f").chmod(0o755)
    outcome = await call("apply_patch", patch=patch_of("*** Update File: f\n", hunks))
    assert (root / "f").read_bytes() == after
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o755
    assert outcome.for_model.startswith("changed f: line ")
    (edit,) = outcome.edits
    assert (edit.path, edit.before, edit.after) == ("f", before, after)


@pytest.mark.parametrize("case", MISSES)
async def test_what_does_not_fit_says_where_and_changes_nothing(root: Path, call: Call, case: str) -> None:
    before, hunks, expected = MISSES[case]
    (root / "f").write_bytes(before)
    was = tree(root)
    text = await fails(call, patch_of("*** Update File: f\n", hunks, "*** Add File: new\n+x\n"))
    assert text.startswith("nothing was changed. ")
    for part in expected:
        assert part in text, text
    assert tree(root) == was


@pytest.mark.parametrize("case", UNREADABLE)
async def test_what_is_no_patch_says_what_one_is(root: Path, call: Call, case: str) -> None:
    patch, expected = UNREADABLE[case]
    (root / "f").write_text("a\n")
    text = await fails(call, patch)
    for part in expected:
        assert part in text, text
    assert tree(root) == {"f": b"a\n"}
    assert touched(patch) == ()


@pytest.mark.parametrize(
    "dress",
    [
        "{}",
        "\n\n  {}\n\n",
        "```\n{}\n```",
        "```diff\n{}\n```",
        "<<'EOF'\n{}\nEOF",
        '<<"EOF"\n{}\nEOF\n',
        "apply_patch <<'PATCH'\n{}\nPATCH",
        "<<EOF\n{}\nEOF",
    ],
)
async def test_what_stands_around_a_patch_is_taken_off(root: Path, call: Call, dress: str) -> None:
    await call("apply_patch", patch=dress.replace("{}", patch_of("*** Add File: f\n+a\n").strip()))
    assert tree(root) == {"f": b"a\n"}


def in_indentation(text: str) -> str:
    (found,) = re.findall(r"^( *)(\*\*\* Begin Patch\n.*?\*\*\* End Patch)", text, re.M | re.S)
    return re.sub(f"^{found[0]}", "", "".join(found), flags=re.M)


async def test_the_example_of_the_manual_is_one(root: Path, call: Call) -> None:
    (root / "src").mkdir()
    was = "import os\n\n\nclass Cart:\n    def total(self):\n        return 40\n"
    (root / "src/cart.py").write_text(was)
    (root / "old.txt").touch()
    await call("apply_patch", patch=in_indentation((DOCS / "tools.md").read_text()))
    assert tree(root) == {
        "src": None,
        "src/basket.py": was.replace("40", "42").encode(),
        "notes": None,
        "notes/new.md": b"first line\n",
    }


async def test_the_example_that_models_are_given_is_one(root: Path, call: Call) -> None:
    (root / "a.py").write_text("old\n\n\nclass A(B):\n    ...\ncontext\nold\n")
    (root / "c.py").touch()
    await call("apply_patch", patch=in_indentation(apply_patch.spec.description))
    assert tree(root) == {"b.py": b"old\n\n\nclass A(B):\n    ...\ncontext\nnew\n", "new.py": b"line\n"}


async def test_several_files_at_once(root: Path, call: Call) -> None:
    (root / "old").mkdir()
    for name, text in {"a": "1\n", "gone": "x\n", "old/name": "p\nq\n", "over": "was\n"}.items():
        (root / name).write_text(text)
    (root / "old/name").chmod(0o750)
    outcome = await call(
        "apply_patch",
        patch=patch_of(
            "*** Update File: a\n@@\n-1\n+2\n",
            "*** Delete File: gone\n",
            "*** Update File: old/name\n*** Move to: new/deep/name\n@@\n-q\n+Q\n",
            "*** Add File: over\n+now\n",
            "*** Add File: fresh/empty\n",
        ),
    )
    assert tree(root) == {
        "a": b"2\n",
        "old": None,
        "new": None,
        "new/deep": None,
        "new/deep/name": b"p\nQ\n",
        "over": b"now\n",
        "fresh": None,
        "fresh/empty": b"",
    }
    assert stat.S_IMODE((root / "new/deep/name").stat().st_mode) == 0o750
    assert outcome.for_model == (
        "changed a: line 1\ndeleted gone\nmoved old/name to new/deep/name: line 2\nreplaced over (1 line)\n"
        "added fresh/empty (0 lines)"
    )
    assert outcome.for_user == "apply_patch a, gone, old/name, new/deep/name, over, fresh/empty +4 -5"
    assert [(e.path, e.before, e.after) for e in outcome.edits] == [
        ("a", b"1\n", b"2\n"),
        ("gone", b"x\n", None),
        ("old/name", b"p\nq\n", None),
        ("new/deep/name", None, b"p\nQ\n"),
        ("over", b"was\n", b"now\n"),
        ("fresh/empty", None, b""),
    ]


@pytest.mark.parametrize(
    ("sections", "after"),
    [
        (["*** Update File: a\n@@\n-1\n+2\n", "*** Update File: a\n@@\n-2\n+3\n"], {"a": b"3\n"}),
        (["*** Update File: ./a\n@@\n-1\n+2\n", "*** Update File: a\n@@\n+4\n"], {"a": b"2\n4\n"}),
        (["*** Add File: b\n+x\n", "*** Update File: b\n@@\n-x\n+y\n"], {"a": b"1\n", "b": b"y\n"}),
        (["*** Delete File: a\n", "*** Add File: a\n+new\n"], {"a": b"new\n"}),
        (["*** Update File: a\n*** Move to: b\n", "*** Update File: b\n@@\n-1\n+2\n"], {"b": b"2\n"}),
        (["*** Update File: a\n*** Move to: b\n", "*** Update File: b\n*** Move to: c\n"], {"c": b"1\n"}),
        (["*** Update File: a\n*** Move to: b\n", "*** Add File: a\n+x\n"], {"a": b"x\n", "b": b"1\n"}),
        (["  *** Update File: a  \n@@\n-1\n+2\n"], {"a": b"2\n"}),
        (["*** Add File: b c\n+x\n\n+y\n\n"], {"a": b"1\n", "b c": b"x\n\ny\n"}),
        (["*** Add File: ü\n++\n+ \n+\n"], {"a": b"1\n", "ü": b"+\n \n\n"}),
    ],
)
async def test_sections_follow_each_other(
    root: Path, call: Call, sections: list[str], after: dict[str, bytes]
) -> None:
    (root / "a").write_bytes(b"1\n")
    await call("apply_patch", patch=patch_of(*sections))
    assert tree(root) == after


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ("*** Update File: absent\n@@\n+x\n", "absent: there is no such file"),
        ("*** Update File: aa\n@@\n+x\n", "did you mean a?"),
        ("*** Delete File: absent\n", "absent: there is no such file"),
        ("*** Delete File: dir\n", "dir: it is a directory"),
        ("*** Add File: dir\n+x\n", "dir: it is a directory"),
        ("*** Update File: a\n*** Move to: a\n", "moved to itself"),
        ("*** Add File: x\n+\ud800\n", "half a surrogate pair in line 1"),
    ],
)
async def test_what_stands_before_a_section_that_does_not_fit_is_done_and_told(
    root: Path, call: Call, section: str, why: str
) -> None:
    (root / "dir").mkdir()
    (root / "a").write_bytes(b"1\n")
    was = tree(root)
    assert why in (text := await fails(call, patch_of(section)))
    assert text.startswith("nothing was changed. ")
    outcome = await call(
        "apply_patch",
        patch=patch_of(
            "*** Add File: new\n+x\n", section, "*** Update File: a\n@@\n-1\n+2\n", "*** Delete File: no\n"
        ),
    )
    assert outcome.status == "error"
    first, *rest = outcome.for_model.split("\n")
    assert first.startswith("The patch stopped at section 2 of 4: ")
    assert why in first
    assert rest == [
        "no: there is no such file or directory",
        "Done before it, and not to be sent again:",
        "added new (1 line)",
        "Nothing else was changed.",
    ]
    assert outcome.for_user.startswith("apply_patch new +1 -0, then stopped: ")
    assert [(edit.path, edit.before, edit.after) for edit in outcome.edits] == [("new", None, b"x\n")]
    assert tree(root) == was | {"new": b"x\n"}


@pytest.mark.parametrize(
    ("section", "after"),
    [
        ("*** Update File: new\n@@\n-y\n+z\n", {"a": b"1\n", "new": b"x\n"}),
        ("*** Update File: a\n@@\n-1\n+2\n@@\n-7\n+8\n", {"a": b"1\n", "new": b"x\n"}),
        ("*** Update File: new\n*** Move to: a\n@@\n-7\n+8\n", {"a": b"1\n", "new": b"x\n"}),
        ("*** Update File: a\n*** Move to: b\n*** Delete File: a\n", {"b": b"1\n", "new": b"x\n"}),
        ("*** Delete File: a\n*** Update File: a\n@@\n+x\n", {"new": b"x\n"}),
        ("*** Delete File: new\n*** Delete File: new\n", None),
    ],
)
async def test_no_part_of_a_section_that_does_not_fit_is_done(
    root: Path, call: Call, section: str, after: dict[str, bytes] | None
) -> None:
    (root / "a").write_bytes(b"1\n")
    patch = patch_of("*** Add File: new\n+x\n", section)
    if after is None:
        assert (await fails(call, patch)).startswith("nothing was changed. ")
    else:
        assert (await call("apply_patch", patch=patch)).status == "error"
    assert tree(root) == (after or {"a": b"1\n"})


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ("*** Add File: ../out\n+x\n", "out of the workspace"),
        ("*** Add File: /etc/x\n+x\n", "out of the workspace"),
        ("*** Update File: a\n*** Move to: ../out\n", "out of the workspace"),
        ("*** Delete File: link\n", "it is a link"),
        ("*** Update File: link\n*** Move to: b\n", "it is a link"),
        ("*** Add File: a/b\n+x\n", "a part of the path is no directory"),
        ("*** Delete File: a\n*** Add File: a\n+1\n", "changes nothing"),
    ],
)
async def test_what_leads_out_or_cannot_be_put_in_place_changes_nothing(
    root: Path, call: Call, section: str, why: str
) -> None:
    (root / "a").write_bytes(b"1\n")
    (root / "link").symlink_to("a")
    was = tree(root)
    before = "" if "changes nothing" in why else "*** Add File: deep/down/new\n+x\n"
    assert why in await fails(call, patch_of(before, section))
    assert tree(root) == was
    assert (root / "link").is_symlink()


async def test_a_link_inside_is_followed(root: Path, call: Call) -> None:
    (root / "a").write_bytes(b"1\n")
    (root / "link").symlink_to("a")
    await call("apply_patch", patch=patch_of("*** Update File: link\n@@\n-1\n+2\n*** Update File: a\n@@\n+3\n"))
    assert (root / "link").is_symlink()
    assert (root / "a").read_bytes() == b"2\n3\n"


async def test_several_problems_are_told_at_once(root: Path, call: Call) -> None:
    text = await fails(call, patch_of(*(f"*** Delete File: absent{n}\n" for n in range(5))))
    assert text.count("no such file") == module.MAX_PROBLEMS
    assert text.endswith("[2 more files failed]")


async def test_limits(root: Path, call: Call) -> None:
    sections = [f"*** Add File: d/{n}\n+x\n" for n in range(module.MAX_FILES + 1)]
    assert "101 files, more than 100" in await fails(call, patch_of(*sections))
    assert tree(root) == {}
    await call("apply_patch", patch=patch_of(*sections[:-1]))
    assert len(os.listdir(root / "d")) == module.MAX_FILES
    line = "+" + "x" * 1_000_000 + "\n"
    assert "more than the limit" in await fails(call, patch_of("*** Add File: big\n", *[line] * 11))
    (root / "f").write_text("".join(f"{i} {'x' * 5_000}\n" for i in range(500)))
    text = await fails(call, patch_of("*** Update File: f\n@@\n", *[f"-7 {'x' * 5_001}\n-}}\n"] * 300))
    assert len(text) < 10_000


async def test_the_time_is_limited(root: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_S", 0.0)
    outcome = await call("apply_patch", patch=patch_of("*** Add File: a\n+x\n", "*** Add File: b\n+x\n"))
    assert outcome.for_model.startswith(
        "The patch stopped at section 2 of 2: the time limit of 0 s is over; send the"
    )
    assert tree(root) == {"a": b"x\n"}


async def test_the_result_tells_what_was_not_exact(root: Path, call: Call) -> None:
    (root / "f").write_bytes(b"  a\nb\nb\n")
    outcome = await call("apply_patch", patch=patch_of("*** Update File: f\n@@\n-a\n+A\n@@\n-b\n+B\n"))
    told = "changed f: line 1 (alike but for indentation), line 2 (the first of 2 such places)"
    assert outcome.for_model == told


async def test_the_preview_is_the_diff_and_nothing_is_written(root: Path, workspace: LocalWorkspace) -> None:
    (root / "a").write_bytes(b"1\n2\n")
    (root / "b").write_bytes(b"x\n")
    arguments = {"patch": patch_of("*** Update File: a\n@@\n-2\n+3\n", "*** Delete File: b\n")}
    shown = await preview(apply_patch, apply_patch.parse(json.dumps(arguments)), workspace)
    assert shown == "a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\nb\n@@ -1 +0,0 @@\n-x\n"
    assert tree(root) == {"a": b"1\n2\n", "b": b"x\n"}
    bad = {"patch": patch_of("*** Update File: a\n@@\n-7\n+3\n")}
    assert (await preview(apply_patch, bad, workspace)).startswith("(it will fail: nothing was changed. a: hunk 1")
    half = {"patch": patch_of("*** Delete File: b\n", "*** Update File: a\n@@\n-7\n+3\n")}
    first, rest = (await preview(apply_patch, half, workspace)).split("\n", 1)
    assert first.startswith("(it will not do all: apply_patch b +0 -1, then stopped: a: hunk 1")
    assert rest == "@@ -1 +0,0 @@\n-x\n"


def test_a_call_tells_every_path_that_it_touches() -> None:
    patch = patch_of(
        " *** Update File: src/a.py \n*** Move to: .git/hooks/x\n@@\n-*** Add File: not\n+*** Delete File: nor\n",
        "*** Delete File: b\n\n*** Add File: c d\n+*** Update File: no\n",
    )
    assert touched(patch) == ("src/a.py", ".git/hooks/x", "b", "c d")


class TestChange:
    """`Workspace.change` is all or nothing, whatever refuses."""

    def test_what_cannot_be_put_in_place_takes_all_back(
        self, root: Path, workspace: LocalWorkspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("a", "b", "c"):
            (root / name).write_text(name)
        (root / "a").chmod(0o711)
        was, inode = tree(root), (root / "a").stat().st_ino
        real, done = os.rename, []

        def rename(old: str, new: str, **more: int) -> None:
            if new == "c":
                raise OSError(28, "No space left on device")
            done.append(new)
            real(old, new, **more)

        monkeypatch.setattr(os, "rename", rename)
        changes = [
            Change("a", b"new"),
            Change("b", None),
            Change("x/y/new", b"n"),
            Change("c", b"new"),
            Change("z", b""),
        ]
        with pytest.raises(ToolFailed, match="c: no space left"):
            workspace.change(changes)
        assert "a" in done, "nothing was in place when it failed, so nothing was tried"
        assert tree(root) == was
        assert (root / "a").stat().st_ino == inode
        assert stat.S_IMODE((root / "a").stat().st_mode) == 0o711

    def test_a_file_system_without_hard_links(
        self, root: Path, workspace: LocalWorkspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def link(*_: object, **__: object) -> None:
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
        (root / "a").write_text("a")
        workspace.change([Change("a", b"new")])
        assert tree(root) == {"a": b"new"}

    def test_descriptors_are_given_back(self, root: Path, workspace: LocalWorkspace) -> None:
        gc.collect()  # what an earlier test left is not counted here
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            workspace.change([Change(f"d/{n}", b"x") for n in range(50)])
            with pytest.raises(ToolFailed):
                workspace.change([Change("ok", b"x"), Change("absent", None)])
        assert len(os.listdir("/proc/self/fd")) == before
        assert sorted(os.listdir(root)) == ["d"]
