"""Makes a clone independent of the repository that it was made of: its history is packed into it, in the background.

Until then the objects are read from the origin, whose `gc` may drop what only the clone needs. The pack is marked
with a `.keep`: git never packs it again, and snapshots need not hold it, as it is the same history as the origin's.
"""

import os
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from agentsh.log.depths import discard_tree
from agentsh.workspace.git import GitFailed, environment, git
from agentsh.workspace.git_clone import alternate, repositories
from agentsh.workspace.git_names import KEEP_MARK, SCRATCH

SUFFIXES = (".pack", ".idx", ".rev", ".mtimes", ".keep")


class HistoryPacker:
    """Packs the history of a workspace's clones, one after the other, on a thread of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, where there is anything to pack. Returns at once."""
        if self._thread is None and (self._root / ".git").is_dir():
            self._thread = threading.Thread(target=self._run, name="git history", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop, and leave what is not done to the next opening. Idempotent."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()
        if self._thread is not None:
            self._thread.join()

    def wait(self) -> None:
        """Return once all is packed or was given up."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        for place in repositories(self._root):
            if self._stopped:
                return
            with suppress(GitFailed, OSError):  # it still has the objects of the origin; the next opening tries again
                self._settle(place)

    def _settle(self, place: Path) -> None:
        inner = place / ".git"
        alternates = inner / "objects" / "info" / "alternates"
        if not alternates.exists():
            return
        scratch = place / SCRATCH
        discard_tree(str(scratch))
        scratch.mkdir(mode=0o700)
        try:
            name = self._packed(place, scratch)
            if name is not None:
                _take_in(scratch, inner / "objects" / "pack", name)
                alternates.unlink()
        finally:
            discard_tree(str(scratch))

    def _packed(self, place: Path, scratch: Path) -> str | None:
        """Make the pack of all that the references, HEAD and the index need; return its name."""
        refs = set(git(place, "for-each-ref", "--format=%(objectname)").split())
        with suppress(GitFailed):
            refs.add(git(place, "rev-parse", "HEAD").strip())
        command = [
            "git", "pack-objects", "-q", "--revs", "--indexed-objects", "--delta-base-offset", "--threads=1",
            *(["--missing=allow-any"] if _promised(place) else []), str(scratch / "pack"),
        ]  # fmt: skip
        # What it is just writing goes where it is removed in any case, and not beside the clone's own packs.
        more = {
            "TMPDIR": str(scratch), "GIT_OBJECT_DIRECTORY": str(scratch),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(place / ".git" / "objects"),
        }  # fmt: skip
        with self._lock:
            if self._stopped:
                return None
            self._process = subprocess.Popen(
                command, cwd=place, env=environment(more), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        with self._process as process:
            said, _ = process.communicate(b"".join(ref + b"\n" for ref in sorted(refs)))
        with self._lock:
            self._process = None
        if process.returncode != 0:
            raise GitFailed(f"pack-objects ended with {process.returncode}")
        return f"pack-{said.decode().strip()}"


def _promised(place: Path) -> bool:
    """Tell whether the origin of a clone is a partial one, in which objects may be missing."""
    with suppress(OSError):
        said = (place / ".git" / "objects" / "info" / "alternates").read_bytes()
        return any(True for _ in Path(os.fsdecode(said).removesuffix("\n")).glob("pack/*.promisor"))
    return False


def _quoted(path: Path) -> str:
    """Return a path as git reads it in a list of directories."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _take_in(scratch: Path, packs: Path, name: str) -> None:
    """Move a pack into its place: the mark first, the index, which makes git see it, last."""
    packs.mkdir(parents=True, exist_ok=True)
    (packs / f"{name}.keep").write_bytes(KEEP_MARK + b"\n")
    for suffix in (".rev", ".pack", ".idx"):
        with suppress(FileNotFoundError):
            (scratch / f"{name}{suffix}").replace(packs / f"{name}{suffix}")


def base_packs(root: Path) -> list[str]:
    """Return the names of the packs in a workspace's own clone that hold the history of its origin."""
    packs = root / ".git" / "objects" / "pack"
    with suppress(OSError):
        keeps = [keep for keep in packs.glob("*.keep") if keep.read_bytes().startswith(KEEP_MARK)]
        return sorted(keep.name.removesuffix(".keep") for keep in keeps)
    return []


def give_history(root: Path, origin: Path | None, sibling: Path | None) -> str | None:
    """Give a clone that was made from a snapshot its history again; return what to say where that cannot be.

    From `sibling`, a workspace of the same origin, by copy; else from the origin, until it is packed.

    Raises:
        OSError: the disk refused.
    """
    objects = root / ".git" / "objects"
    if not (root / ".git").is_dir():
        return None
    packs = base_packs(sibling) if sibling is not None else []
    if sibling is not None and packs:
        theirs, ours = sibling / ".git" / "objects" / "pack", objects / "pack"
        ours.mkdir(parents=True, exist_ok=True)
        for file in (f"{name}{suffix}" for name in packs for suffix in SUFFIXES):
            with suppress(FileNotFoundError):
                shutil.copyfile(theirs / file, ours / file)
        return None
    source = None
    if origin is not None:
        with suppress(GitFailed, OSError):
            said = git(origin, "rev-parse", "--path-format=absolute", "--git-path", "objects")
            source = os.fsdecode(said).rstrip("\n")
    if source is None or not os.path.isdir(source):
        return "its git history is gone with the repository that it came from; the files are all there"
    (objects / "info").mkdir(parents=True, exist_ok=True)
    (objects / "info" / "alternates").write_bytes(os.fsencode(alternate(source)))
    with suppress(GitFailed):
        refs = git(root, "for-each-ref", "--format=%(objectname)")
        if b" missing\n" not in git(root, "cat-file", "--batch-check=%(objectname)", stdin=refs):
            return None
    (objects / "info" / "alternates").unlink()
    return "its git history is gone: there is another repository by now where it came from; the files are all there"
