"""A plain directory as a workspace: files through the jail, commands in the sandbox that it is given."""

import asyncio
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from agentsh.base.errors import ToolFailed
from agentsh.ports.workspace import Change, Entry, ProcessResult, ShellState, Wanted
from agentsh.workspace.environ import PROCESS_MARK, scrubbed
from agentsh.workspace.git_watch import GitWatch
from agentsh.workspace.ignore import GITIGNORE, MAX_GITIGNORE_BYTES, Ignore
from agentsh.workspace.jail import Jail
from agentsh.workspace.process import run_shell
from agentsh.workspace.sandbox_port import Limits, Sandbox
from agentsh.workspace.strays import kill_session
from agentsh.workspace.temporary import remove_tmp
from agentsh.workspace.watcher import Watcher

MAX_EXPANDED = 1_000
# Commands that set up repositories; the others do not touch configuration and hooks.
_OF_GIT = re.compile(r"\b(?:git|pre-commit|husky|lefthook|npm|npx|pnpm|yarn|bun)\b")


class LocalWorkspace:
    """Implements `ports.workspace.Workspace` on a directory of this machine. Close it at the end."""

    def __init__(
        self,
        root: Path,
        *,
        session: str,
        in_place: bool = False,
        start: str | None = None,
        sandbox: Sandbox | None = None,
        limits: Limits | None = None,
        tmp: str | None = None,
        watched: bool = False,
        unguarded: bool = False,
    ) -> None:
        """Use `root`, which is there. session: marks the processes. start: the directory in it where commands begin.

        in_place: the directory is the user's own and may be part of a repository above it; otherwise git never
        looks above it. sandbox: holds commands. limits: for commands, in it or not. tmp: a private temporary
        directory that goes with the workspace. watched: commands that no sandbox ends with this process are ended by
        a process beside it. unguarded: commands can change what decides about programs outside of the sandbox.
        """
        self._sandbox = sandbox
        self._limits = limits
        self._tmp = tmp
        self._watcher = Watcher() if watched else None
        self._jail = Jail(str(root))
        self._session = session
        self._start = start
        self._unguarded = unguarded or sandbox is None
        # In place the user changes it as well: what cannot be held there is asked about.
        holds = sandbox is None or sandbox.guards or in_place
        self._git = None if sandbox is None else GitWatch(self._jail.root, holds=holds)
        self._ceiling = None if in_place else os.path.dirname(self._jail.root)

    @property
    def sandbox(self) -> str:
        """What holds commands; `none` for nothing."""
        return "none" if self._sandbox is None else self._sandbox.name

    @property
    def guards(self) -> bool:
        """Whether commands cannot change, for good, what decides about programs outside of the sandbox."""
        return not self._unguarded

    @property
    def root(self) -> str:
        """The absolute path of the directory, spelled as it was given."""
        return self._jail.root

    def relative(self, path: str) -> str:
        """Return `path` relative to the root; judged by spelling, links are judged when something is opened."""
        return self._jail.relative(path)

    def read_bytes(self, path: str, *, max_bytes: int) -> bytes:
        """Return the bytes of a plain file."""
        return self._jail.read(path, max_bytes)

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace or create a file; synced before the name points to it."""
        with self.taken_over() if self._in_git(path) else nullcontext():
            self._jail.write(path, data)

    def change(self, changes: Sequence[Change]) -> None:
        """Change several files, all or none; at most 200."""
        from agentsh.workspace.changing import change

        with self.taken_over() if any(self._in_git(each.path) for each in changes) else nullcontext():
            change(self._jail, changes)

    def taken_over(self) -> AbstractContextManager[None]:
        """What changes in `.git` meanwhile is the user's doing, or agentsh's own: nothing of it is undone."""
        return nullcontext() if self._git is None else self._git.others()

    def _in_git(self, path: str) -> bool:
        try:
            return self._jail.relative(path).split("/")[0] == ".git"
        except ToolFailed:  # refused by what comes
            return False

    def exists(self, path: str) -> bool:
        """Tell whether something of that name is inside."""
        return self._jail.kind(path) is not None

    def entries(self, path: str) -> list[Entry]:
        """Return what is in a directory, sorted by name."""
        return self._jail.entries(path)

    def walk(self, path: str = ".") -> Iterator[Entry]:
        """Yield the files and links below `path`, sorted by path; a file yields itself.

        What cannot be read on the way is passed over.
        """
        top = self._jail.relative(path)
        if self._jail.kind(top) == "file":
            yield Entry(top, "file", self._jail.size(top))
            return
        rules = self._rules_for(top)
        todo = [(entry, rules) for entry in _ordered(self._jail.entries(top))]
        while todo:
            entry, rules = todo.pop()
            if rules.excludes(entry.path, directory=entry.kind == "directory"):
                continue
            if entry.kind == "directory":
                try:
                    found = self._jail.entries(entry.path)
                except ToolFailed:
                    continue
                inner = self._rules_in(entry.path, found, rules)
                todo += [(below, inner) for below in _ordered(found)]
            elif entry.kind != "other":
                yield entry

    async def mentions(self, wanted: Wanted, path: str, *, limit_s: float) -> tuple[str, ...] | None:
        """Return which files below a directory may hold a match, by ripgrep; None where it is not installed."""
        from agentsh.workspace.ripgrep import mentions

        top = await asyncio.to_thread(self._directory, path)
        if top is None:
            return None
        environment = scrubbed(os.environ, session=self._session, ceiling=self._ceiling)
        found = await mentions(self._jail.root, top, wanted, limit_s=limit_s, environment=environment)
        return None if found is None else await asyncio.to_thread(self._not_ignored, top, found)

    def _directory(self, path: str) -> str | None:
        top = self._jail.relative(path)
        return top if self._jail.kind(top) == "directory" else None

    def _not_ignored(self, top: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Return those of the paths below `top` that `walk` would yield."""
        known = {top: self._rules_for(top)}
        out: set[str] = set()

        def rules_in(directory: str) -> Ignore | None:
            if directory in out:
                return None
            if directory not in known:
                above = rules_in(directory.rpartition("/")[0] or ".")
                if above is None or above.excludes(directory, directory=True):
                    out.add(directory)
                    return None
                known[directory] = self._rules_in(directory, None, above)
            return known[directory]

        kept = []
        for path in paths:
            rules = rules_in(path.rpartition("/")[0] or ".")
            if rules is not None and not rules.excludes(path, directory=False):
                kept.append(path)
        return tuple(kept)

    def real(self, path: str) -> str | None:
        """Return `path` relative to the root with every link followed; None where that is outside."""
        root = os.path.realpath(self.root)
        try:
            found = os.path.realpath(os.path.join(root, path))
        except (OSError, ValueError):
            return None
        if found == root:
            return "."
        return os.path.relpath(found, root) if found.startswith(root.rstrip("/") + "/") else None

    def expands(self, pattern: str) -> list[str]:
        """Return what a shell pattern stands for now, hidden names too: rather too many than too few."""
        found = glob.iglob(pattern, root_dir=self.root, include_hidden=True)
        return list(islice(found, MAX_EXPANDED))

    def starts_in(self, directory: str | None) -> str:
        """Return where a command starts, relative to the root: `directory` while it is there, else `start`, or it."""
        for each in (directory, self._start if directory is None else None):
            if each is not None and self._jail.kind(each) == "directory":
                return self._jail.relative(each)
        return "."

    async def run(
        self,
        command: str,
        *,
        timeout_s: float,
        max_bytes: int,
        on_output: Callable[[str], None] | None = None,
        on_bytes: Callable[[bytes], None] | None = None,
        outside_sandbox: bool = False,
        shell: ShellState | None = None,
    ) -> ProcessResult:
        """Run a shell command; see the port."""
        before = shell or ShellState()
        sandbox = None if outside_sandbox else self._sandbox
        watcher = self._watcher if sandbox is None or not sandbox.owns_processes else None
        begin = self.starts_in(before.directory)
        watch = self._git if sandbox is not None else None
        # A job outside of the sandbox may run for hours: so long everything is watched.
        theirs = outside_sandbox and on_bytes is None and _OF_GIT.search(command) is not None
        mark = watch.begin() if watch is not None else 0  # here: nothing may come between it and its end
        undone: tuple[str, ...] = ()
        try:
            with self.taken_over() if theirs else nullcontext():
                result = await run_shell(
                    command,
                    cwd=self.root if begin == "." else os.path.join(self.root, begin),
                    environment=self._environment(),
                    timeout_s=timeout_s,
                    max_bytes=max_bytes,
                    on_output=on_output,
                    on_bytes=on_bytes,
                    sandbox=sandbox,
                    limits=self._limits,
                    exported=before.exports,
                    watcher=watcher,
                    look=partial(watch.look, mark) if watch is not None else None,
                )
        finally:
            if watch is not None:
                undone = watch.end()
        return replace(self._inside(replace(result, began_in=begin)), undone=undone)

    def _environment(self) -> dict[str, str]:
        environment = scrubbed(os.environ, session=self._session, ceiling=self._ceiling)
        return environment if self._watcher is None else {**environment, PROCESS_MARK: self._watcher.value}

    def _inside(self, result: ProcessResult) -> ProcessResult:
        """Return a result whose directory is told relative to the root, or named as one that is outside, or gone."""
        if result.shell is None or result.shell.directory is None:
            return result
        directory = self.real(result.shell.directory)
        if directory is not None and self._jail.kind(directory) != "directory":
            directory = None
        left = result.shell.directory if directory is None else None
        return replace(result, shell=ShellState(directory or ".", result.shell.exports), left_workspace=left)

    async def close(self) -> None:
        """Kill what is left of the session's commands, and remove their temporary directory. Idempotent."""
        await self.kill_strays()
        if self._watcher is not None:
            await asyncio.to_thread(self._watcher.close)
        if self._tmp is not None:
            await asyncio.to_thread(remove_tmp, self._tmp)
            self._tmp = None

    async def kill_strays(self) -> int:
        """Kill what the session's commands of this or an earlier process left running; return how many there were."""
        return await asyncio.to_thread(kill_session, self._session)

    def _rules_for(self, directory: str) -> Ignore:
        """Return the rules in `directory`; those above do not count if it is itself ignored: it was asked for."""
        rules = self._rules_in(".", self._jail.entries("."), Ignore())
        if directory == ".":
            return rules
        parts = directory.split("/")
        for depth in range(1, len(parts) + 1):
            above = "/".join(parts[:depth])
            if rules.excludes(above, directory=True):
                rules = Ignore()
            rules = self._rules_in(above, self._jail.entries(above), rules)
        return rules

    def _rules_in(self, directory: str, found: list[Entry] | None, rules: Ignore) -> Ignore:
        """Return the rules in a directory. found: what is in it, where that is known."""
        name = GITIGNORE if directory == "." else f"{directory}/{GITIGNORE}"
        if found is not None and not any(entry.path == name and entry.kind == "file" for entry in found):
            return rules
        try:
            return rules.below(directory, self._jail.read(name, MAX_GITIGNORE_BYTES))
        except ToolFailed:
            return rules


def _ordered(entries: list[Entry]) -> list[Entry]:
    """Return entries so that popping from the end yields whole paths in order."""
    return sorted(entries, key=lambda e: e.path + "/" if e.kind == "directory" else e.path, reverse=True)
