"""Changes several files, all or none: everything is written aside first, then put in place by renames."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.base.light import dataclass
from agentsh.ports.workspace import Change
from agentsh.workspace.jail import Jail, fill, plain, shown, temporary_name, there, translated

MAX_CHANGES = 200
"""Each holds a descriptor of its directory until all are done."""


@dataclass(slots=True)
class _Step:
    """One file. fresh: its new bytes, under another name. old: what was there, likewise, once it is kept."""

    path: str
    directory: int
    name: str
    existed: bool
    fresh: str | None = None
    old: str | None = None
    done: bool = False

    def do(self) -> None:
        with translated(self.path):
            if self.existed:
                self._keep()
            if self.fresh is not None:
                os.rename(self.fresh, self.name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
                self.fresh = None
            self.done = True

    def _keep(self) -> None:
        """Give what is there a second name; where there are no hard links, or it is to go, that name only."""
        kept = temporary_name()
        if self.fresh is not None:
            with suppress(OSError):
                os.link(self.name, kept, src_dir_fd=self.directory, dst_dir_fd=self.directory, follow_symlinks=False)
                self.old = kept
                return
        os.rename(self.name, kept, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        self.old = kept

    def undo(self) -> None:
        with suppress(OSError):
            if self.old is not None:
                # Of two links to one file this does nothing, so the name is left to `close` to remove.
                os.rename(self.old, self.name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
            elif self.done and not self.existed:
                os.unlink(self.name, dir_fd=self.directory)

    def close(self) -> None:
        for name in (self.fresh, self.old):
            if name is not None:
                with suppress(OSError):
                    os.unlink(name, dir_fd=self.directory)
        os.close(self.directory)


def change(jail: Jail, changes: Sequence[Change]) -> None:
    """Do what `Workspace.change` says; at most 200 files.

    Raises:
        PathRefused, ToolFailed: one cannot be changed; the others are as they were.
    """
    if len(changes) > MAX_CHANGES:
        raise ToolFailed(f"{len(changes)} files at once are more than the limit of {MAX_CHANGES}")
    missing = [path for each in changes if each.data is not None for path in _missing(jail, each.path)]
    steps: list[_Step] = []
    failed = True
    try:
        steps.extend(_prepared(jail, each) for each in changes)
        for step in steps:
            step.do()
        failed = False
    finally:
        if failed:
            for step in reversed(steps):
                step.undo()
        for step in steps:
            step.close()
        if failed:
            for path in sorted(set(missing), key=len, reverse=True):
                _remove(jail, path)


def _prepared(jail: Jail, wanted: Change) -> _Step:
    going = wanted.data is None
    with translated(wanted.path), jail.place(wanted.path, create=not going, follow=not going) as place:
        if place.name == ".":
            raise OSError(errno.EISDIR, "")
        if going and stat.S_ISLNK(there(place).st_mode):
            raise PathRefused(f"{shown(wanted.path)}: it is a link; use the shell to remove or rename it")
        before = None if place.info is None else plain(wanted.path, place.info)
        step = _Step(wanted.path, os.dup(place.directory), place.name, before is not None)
        try:
            if wanted.data is not None:
                step.fresh = temporary_name()
                like = before if before is not None or wanted.mode_of is None else _info(jail, wanted.mode_of)
                fill(step.directory, step.fresh, wanted.data, like)
        except BaseException:
            step.close()
            raise
        return step


def _info(jail: Jail, path: str) -> os.stat_result:
    with translated(path), jail.place(path) as place:
        return plain(path, there(place))


def _missing(jail: Jail, path: str) -> Iterator[str]:
    """Yield the directories above `path` that are not there."""
    parts = jail.relative(path).split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        above = "/".join(parts[:depth])
        if jail.kind(above) is None:
            yield above


def _remove(jail: Jail, directory: str) -> None:
    with suppress(OSError, ToolFailed), jail.place(directory) as place:
        os.rmdir(place.name, dir_fd=place.directory)
