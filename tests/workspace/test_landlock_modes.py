"""Under Landlock the helper changes modes, times and owners: with the results and errors of the real calls."""

import sys
from pathlib import Path

import pytest

from agentsh.workspace.bounds import bounds_of
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.sandbox import probe
from agentsh.workspace.sandbox_landlock import Landlock
from tests.workspace.conftest import SESSION

SCRIPT = """
import ctypes, os, stat, sys, time
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
say = lambda *words: print(*words)
def failed(call, *args, **more):
    try:
        call(*args, **more)
    except OSError as error:
        return error.errno
    return 0
os.makedirs("d/e")
open("d/f", "w").close()
os.symlink("f", "d/l")
d = os.open("d", os.O_RDONLY)
f = os.open("d/f", os.O_RDONLY)
os.chmod("d/f", 0o640); say(oct(os.stat("d/f").st_mode))
os.chmod("f", 0o600, dir_fd=d); say(oct(os.stat("d/f").st_mode))
os.chmod("d/l", 0o604); say(oct(os.stat("d/f").st_mode))
os.fchmod(f, 0o444); say(oct(os.stat("d/f").st_mode))
os.chmod("d/e", 0o2750); say(oct(os.stat("d/e").st_mode))
os.chmod("/proc/self/fd/%d" % f, 0o600); say(oct(os.stat("d/f").st_mode))
os.chmod("/dev/fd/%d" % f, 0o644); say(oct(os.stat("d/f").st_mode))
os.dup2(f, 0); os.chmod("/dev/stdin", 0o600); say(oct(os.stat("d/f").st_mode))
os.utime("d/f", ns=(1_000_000_001, 2_000_000_002)); say(os.stat("d/f").st_atime_ns, os.stat("d/f").st_mtime_ns)
os.utime(f, (3, 4)); say(os.stat("d/f").st_mtime)
os.utime("l", (5, 6), dir_fd=d, follow_symlinks=False); say(os.lstat("d/l").st_mtime, os.stat("d/f").st_mtime)
os.utime("d/f"); say(abs(os.stat("d/f").st_mtime - time.time()) < 60)
libc.utimes(b"d/f", (ctypes.c_long * 4)(7, 8, 9, 10)); say(os.stat("d/f").st_mtime_ns)
os.chown("d/f", -1, -1); os.lchown("d/l", os.getuid(), os.getgid()); os.fchown(f, os.getuid(), -1)
say(failed(os.chmod, "none", 0o600), failed(os.chmod, "d/f/x", 0o600), failed(os.chmod, "", 0o600))
say(failed(os.chmod, "x" * 300, 0o600), failed(os.chmod, "x/" * 3000, 0o600), failed(os.fchmod, 999, 0o600))
say(failed(os.utime, "none"), failed(os.utime, "d/f", ns=(0, 0), dir_fd=None))
say(libc.chmod(ctypes.c_void_p(1), 0o600), ctypes.get_errno())
r, w = os.pipe(); os.fchmod(r, 0o600); say(stat.S_ISFIFO(os.fstat(r).st_mode))
os.unlink("d/f"); os.fchmod(f, 0o640); say(oct(os.fstat(f).st_mode))
"""


@pytest.mark.skipif(not probe("landlock").works, reason="no Landlock")
async def test_every_form_of_these_calls_is_as_without_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    said = []
    for held in (False, True):
        root, tmp = tmp_path / f"root-{held}", tmp_path / f"tmp-{held}"
        root.mkdir()
        tmp.mkdir()
        bounds = bounds_of(root, tmp=str(tmp), homes=[], readable=[str(script), sys.prefix])  # both may lie in /tmp
        workspace = LocalWorkspace(root, session=SESSION, sandbox=Landlock(bounds) if held else None)
        result = await workspace.run(f"{sys.executable} {script} .", timeout_s=30, max_bytes=4_000)
        said.append(result.output)
    assert said[0] == said[1]
    assert said[0].count("\n") == 19, said[0]


@pytest.mark.skipif(not probe("landlock").works, reason="no Landlock")
async def test_archives_keep_their_modes_and_times(tmp_path: Path) -> None:
    root, tmp = tmp_path / "root", tmp_path / "tmp"
    root.mkdir()
    tmp.mkdir()
    workspace = LocalWorkspace(root, session=SESSION, sandbox=Landlock(bounds_of(root, tmp=str(tmp), homes=[])))
    line = (
        "set -e; mkdir a; echo x > a/f; ln -s f a/l; chmod 751 a/f; touch -hd 2001-02-03 a/l a/f; chmod 710 a; "
        "cp -a a b; tar cf a.tar a; mkdir t; tar xpf a.tar -C t; stat -c '%a %Y' a/f b/f t/a/f | uniq; "
        "stat -c '%a' a b t/a | uniq; stat -c %Y a/l b/l t/a/l | uniq"
    )
    result = await workspace.run(line, timeout_s=30, max_bytes=4_000)
    assert (result.exit, result.output.count("\n")) == (0, 3), result.output


@pytest.mark.skipif(not probe("landlock").works, reason="no Landlock")
async def test_what_is_hidden_in_the_workspace_stays_as_it_is(tmp_path: Path) -> None:
    root, tmp = tmp_path / "home" / "own", tmp_path / "tmp"
    for place in (root / "sessions", tmp):
        place.mkdir(parents=True)
    (root / "sessions" / "log").touch(mode=0o600)
    hidden = bounds_of(root, tmp=str(tmp), homes=[root, tmp_path / "home"])
    workspace = LocalWorkspace(root, session=SESSION, sandbox=Landlock(hidden))
    result = await workspace.run("chmod 777 sessions/log; chmod 700 .", timeout_s=30, max_bytes=4_000)
    assert result.output.count("Operation not permitted") == 1, result.output
    assert (root / "sessions" / "log").stat().st_mode & 0o777 == 0o600
    assert root.stat().st_mode & 0o777 == 0o700
