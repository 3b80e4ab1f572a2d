"""What the user sees before saying yes: of an edit the diff that it would make, of all else every argument whole."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.engine.edits import diff
from agentsh.ports.tool import Tool, ToolContext
from agentsh.ports.workspace import Change, Entry, ProcessResult, ShellState, Wanted, Workspace


class DryWorkspace:
    """Implements `ports.workspace.Workspace` over another one: what is written stays in memory, nothing runs."""

    sandbox = "none"
    guards = True

    def __init__(self, real: Workspace) -> None:
        self._real = real
        self._written: dict[str, bytes | None] = {}

    @property
    def root(self) -> str:
        """The root of the real one."""
        return self._real.root

    def relative(self, path: str) -> str:
        """Return `path` relative to the root."""
        return self._real.relative(path)

    def read_bytes(self, path: str, *, max_bytes: int) -> bytes:
        """Return what was written here, else what is there."""
        name = self.relative(path)
        if name not in self._written:
            return self._real.read_bytes(path, max_bytes=max_bytes)
        written = self._written[name]
        if written is None:
            raise PathRefused(f"{name}: there is no such file or directory")
        return written

    def write_bytes(self, path: str, data: bytes) -> None:
        """Keep it in memory."""
        self._written[self.relative(path)] = data

    def change(self, changes: Sequence[Change]) -> None:
        """Keep them in memory."""
        self._written |= {self.relative(each.path): each.data for each in changes}

    def exists(self, path: str) -> bool:
        """Tell whether it is there, or was written here."""
        name = self.relative(path)
        return self._written[name] is not None if name in self._written else self._real.exists(path)

    def entries(self, path: str) -> list[Entry]:
        """Return what is really there."""
        return self._real.entries(path)

    def walk(self, path: str = ".") -> Iterator[Entry]:
        """Yield what is really there."""
        return self._real.walk(path)

    async def mentions(self, wanted: Wanted, path: str, *, limit_s: float) -> tuple[str, ...] | None:
        """Return that it is not known: what was written here is nowhere else."""
        return None

    def real(self, path: str) -> str | None:
        """Return `path` with links followed."""
        return self._real.real(path)

    def expands(self, pattern: str) -> list[str]:
        """Return what a pattern stands for."""
        return self._real.expands(pattern)

    def starts_in(self, directory: str | None) -> str:
        """Return where a command would start."""
        return self._real.starts_in(directory)

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
        """Run nothing."""
        raise ToolFailed("nothing is run for a preview")


async def preview(tool: Tool, arguments: Mapping[str, Any], workspace: Workspace) -> str:
    """Return all that the user should see: the diff of an edit, else each argument, text as text."""
    if tool.spec.tryable:
        try:
            outcome = await tool.run(ToolContext(DryWorkspace(workspace), ""), arguments)
        except ToolFailed as error:
            return f"(it will fail: {error.message})\n{_arguments(arguments)}"
        except Exception:  # noqa: BLE001 - a tool that cannot be tried is shown by its arguments
            return _arguments(arguments)
        if outcome.edits:
            stops = f"(it will not do all: {outcome.for_user})\n" if outcome.status != "ok" else ""
            return stops + "".join(
                (f"{edit.path}\n" if len(outcome.edits) > 1 else "") + (diff(edit) or "(nothing changes)\n")
                for edit in outcome.edits
            )
    return _arguments(arguments)


def _arguments(arguments: Mapping[str, Any]) -> str:
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}")
    return "\n".join(lines)
