"""A changed file as a fact: the diff is the one that patch(1) would take."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.engine.edits import MAX_DIFF_BYTES, code_edit, diff
from agentsh.ports.tool import Edit

files = st.none() | st.text(alphabet="ab\n", max_size=20).map(str.encode)


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch(1) is not installed")
@given(files, files.filter(lambda f: f is not None))
@settings(deadline=None, max_examples=60)
def test_the_diff_applied_to_before_gives_after(
    tmp_path_factory: pytest.TempPathFactory, before: bytes | None, after: bytes
) -> None:
    text = diff(Edit("f", before, after))
    if (before or b"") == after:
        assert text == ""
        return
    place: Path = tmp_path_factory.mktemp("patch")
    (place / "f").write_bytes(before or b"")
    patch = f"--- f\n+++ f\n{text}".encode()
    done = subprocess.run(["patch", "-p0", "f"], cwd=place, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert ((place / "f").read_bytes() if (place / "f").exists() else b"") == after


def test_a_rewrite_of_a_large_file_is_quick_and_whole() -> None:
    before = b"".join(b"line %d %d\n" % (n, n * 7919 % 1000) for n in range(12_000))
    after = before.replace(b"line", b"row")
    text = diff(Edit("f", before, after))
    assert text.startswith("@@ -1,12000 +1,12000 @@\n")
    assert text.count("\n+row") == 12_000
    assert diff(Edit("f", before, before + b"end\n")).endswith("+end\n")


def test_a_new_file_has_only_its_own_lines() -> None:
    assert diff(Edit("f", None, b"a\nb\n")) == "@@ -0,0 +1,2 @@\n+a\n+b\n"


def test_binary_and_large_files_have_sizes_only() -> None:
    assert diff(Edit("f", b"\0", b"x")) == "binary or large: 1 bytes before, 1 after\n"
    assert "large" in diff(Edit("f", None, b"x" * (MAX_DIFF_BYTES + 1)))


def test_the_fact_names_both_hashes() -> None:
    fact = code_edit("call_1", Edit("f", None, b""))
    assert fact.before is None
    assert fact.after == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
