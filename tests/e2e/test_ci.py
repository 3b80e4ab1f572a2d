"""`.ci/packages`: what cannot be installed is said; only CI fails for it."""

import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "packages"
PAIRS = re.findall(r"for pair in (.*); do", SCRIPT.read_text(encoding="utf-8"))[0].split()
PROGRAMS, PACKAGES = zip(*(pair.split(":") for pair in PAIRS), strict=True)


def run(place: Path, *, root: bool, mirror: bool, there: bool, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the script where nothing is installed but what these arguments say."""
    programs = {"id": f"echo {0 if root else 1000}", "apt-get": f"echo apt-get $*; exit {0 if mirror else 100}"}
    if there:
        programs |= dict.fromkeys(PROGRAMS, ":")
    for name, body in programs.items():
        (place / name).write_text(f"#!/bin/sh\n{body}\n")
        (place / name).chmod(0o755)
    return subprocess.run(
        ["/bin/sh", SCRIPT], env={"PATH": str(place), **env}, capture_output=True, encoding="utf-8", check=False
    )


@pytest.mark.parametrize("ci", ["", "true"])
def test_nothing_is_done_where_nothing_is_missing(tmp_path: Path, ci: str) -> None:
    done = run(tmp_path, root=True, mirror=False, there=True, CI=ci)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("ci", ["", "true"])
def test_root_installs_what_is_missing(tmp_path: Path, ci: str) -> None:
    done = run(tmp_path, root=True, mirror=True, there=False, CI=ci)
    assert done.returncode == 0
    assert f"install -y -qq {' '.join(PACKAGES)}" in done.stdout


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize(("ci", "code"), [("", 0), ("false", 0), ("true", 1), ("1", 1)])
def test_what_cannot_be_installed_is_said_and_fails_only_ci(tmp_path: Path, root: bool, ci: str, code: int) -> None:
    done = run(tmp_path, root=root, mirror=False, there=False, CI=ci)
    assert done.returncode == code
    assert f"not installed: {' '.join(PACKAGES)}" in done.stderr
