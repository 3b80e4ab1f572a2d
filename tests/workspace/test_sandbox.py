"""The choice of a sandbox, what it is told, and the texts and tables that cannot be run here."""

import os
import re
from pathlib import Path

import pytest

from agentsh.workspace import launching, sandbox, sandbox_bwrap
from agentsh.workspace.bounds import bounds_of
from agentsh.workspace.git_guard import DECIDING
from agentsh.workspace.sandbox_port import Bounds, Found, Limits
from agentsh.workspace.sandbox_seatbelt import profile
from agentsh.workspace.seccomp import AARCH64, NUMBERS, X86_64, for_landlock, for_namespaces


def test_the_best_that_works_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    works = {"landlock"}
    monkeypatch.setattr(sandbox, "probe", lambda kind: Found(kind in works, "because"))
    assert sandbox.choose("auto") == ("landlock", None)
    works.add("bwrap")
    assert sandbox.choose("auto") == ("bwrap", None)
    assert sandbox.choose("landlock") == ("landlock", None)
    assert sandbox.choose("none") == ("none", None)
    works.clear()
    kind, why = sandbox.choose("auto")
    assert kind == "none"
    assert why is not None
    assert "bwrap: because; landlock: because" in why


def test_a_probe_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox_bwrap.probe() == Found(False, "bubblewrap is not installed")
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    program.chmod(0o755)
    assert sandbox_bwrap.probe() == Found(False, "No permissions to create new namespace")


def test_what_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user, home = tmp_path / "user", tmp_path / "agentsh"
    root = home / "workspaces" / "id"
    for place in (user / ".ssh", root / ".git" / "hooks"):
        place.mkdir(parents=True)
    (user / ".netrc").touch()
    (root / ".git" / "config").touch()
    monkeypatch.setenv("HOME", str(user))
    bounds = bounds_of(root, tmp="/t", homes=[home, user / ".agentsh"], unreadable=["~/.netrc", "~/absent"])
    assert set(bounds.hidden) == {str(p.resolve()) for p in (user / ".ssh", user / ".netrc", home)}
    assert set(bounds.guarded) == {str(root / ".git" / name) for name in DECIDING}


def test_in_a_home_that_is_the_workspace_its_parts_are_hidden(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "agentsh.toml").touch()
    bounds = bounds_of(tmp_path, tmp="/t", homes=[tmp_path])
    assert {str(tmp_path / "sessions"), str(tmp_path / "agentsh.toml")} <= set(bounds.hidden)
    assert str(tmp_path) not in bounds.hidden


def test_the_profile_of_seatbelt() -> None:
    bounds = Bounds(
        root="/w/s",
        tmp="/t",
        home="/h",
        writable=("/c",),
        hidden=("/h/.ssh", "/w", "/w/s/key"),
        guarded=("/w/s/.git/hooks",),
    )
    lines = profile(bounds).split("\n")
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "network" not in "".join(lines)
    assert lines.index('(deny file-read* file-write* (subpath "/w"))') < lines.index(
        '(allow file-read* file-write* (subpath "/w/s"))'
    )
    assert lines[-2] == '(deny file-read* file-write* (subpath "/w/s/key"))'
    assert '(deny file-write* (subpath "/w/s/.git/hooks"))' in lines
    quoted = profile(Bounds(root='/a"b\\', tmp="/t", home="/h", network=True))
    assert '(subpath "/a\\"b\\\\")' in quoted
    assert "(allow network*)" in quoted


@pytest.mark.parametrize("column", [0, 1])
def test_numbers_of_system_calls(column: int) -> None:
    """Held against the headers of the kernel, where they are there."""
    places = {
        0: ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
        1: ["/usr/include/asm-generic/unistd.h"],
    }[column]
    header = next((Path(place) for place in places if os.path.exists(place)), None)
    if header is None:
        pytest.skip("no headers of the kernel")
    found = {m[1]: int(m[2]) for m in re.finditer(r"#define __NR(?:3264)?_(\w+) (\d+)\n", header.read_text())}
    for name, numbers in NUMBERS.items():
        if name in found:
            assert numbers[column] == found[name], name
    assert len(found.keys() & NUMBERS.keys()) > 30 - 3 * column


def test_filters_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, arch in (("x86_64", X86_64), ("aarch64", AARCH64)):
        monkeypatch.setattr(os, "uname", lambda machine=machine: os.uname_result(("Linux", "", "", "", machine)))
        for program in (for_namespaces(), for_landlock(network=False), for_landlock(network=True)):
            assert program is not None
            assert len(program) % 8 == 0
            assert len(program) // 8 < 4096  # BPF_MAXINSNS
            assert arch.to_bytes(4, "little") in program[:24]
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "", "", "", "riscv64")))
    assert for_namespaces() is None


def test_limits_can_be_left_out() -> None:
    assert launching.ulimits(Limits(0, 0, 0, 0)) == "ulimit -c 0 2>/dev/null; "
    assert "ulimit -t 5 " in launching.ulimits(Limits(cpu_s=5))
