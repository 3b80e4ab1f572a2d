"""The tool that searches files."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from agentsh.base.errors import PathRefused
from agentsh.base.text import clean, one_line, plural
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.ports.workspace import Workspace
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_SHOWN_BYTES, decode

if TYPE_CHECKING:
    from agentsh.tools.searching import Deadline, Searcher

MAX_MATCHES = 200
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_LINE_CHARS = 300
LIMIT_S = 10.0


@tool("grep", effects={"read"}, subject="pattern")
async def grep(
    ctx: ToolContext,
    pattern: Annotated[str, Field(description="regular expression (Python)")],
    path: Annotated[str, Field(description="directory or file")] = ".",
    glob: Annotated[str | None, Field(description="only files that match, e.g. *.py")] = None,
    ignore_case: Annotated[bool, Field(description="ignore case")] = False,
) -> ToolOutcome:
    """Search text files line by line; gives path:line:text. Ignored and binary files are left out.

    At most 200 lines, 10 s; files of 4 MB, lines of 4,000 characters.
    """
    from agentsh.tools.searching import Searcher, portable, stoppable

    searcher, began_s = Searcher(pattern, ignore_case=ignore_case), time.monotonic()
    wanted = portable(pattern, ignore_case=ignore_case)
    found = await ctx.workspace.mentions(wanted, path or ".", limit_s=LIMIT_S / 2) if wanted is not None else None

    def work(deadline: "Deadline") -> _Search:
        search = _Search(ctx.workspace, searcher, deadline, ctx.services.withheld)
        search.run(path or ".", glob, found)
        return search

    search = await stoppable(LIMIT_S - (time.monotonic() - began_s), work)
    return search.outcome(pattern)


TOOL = grep


class _Search:
    """One search. stopped: why it ended before everything was looked at, or None. withheld: see `Services`."""

    def __init__(
        self,
        workspace: Workspace,
        searcher: "Searcher",
        deadline: "Deadline",
        withheld: Callable[[str], bool] | None = None,
    ) -> None:
        self.stopped: str | None = None
        self._is_withheld = withheld
        self._withheld = 0
        self._workspace = workspace
        self._searcher = searcher
        self._deadline = deadline
        self._lines: list[str] = []
        self._files = 0
        self._fitting: int | None = None
        self._left_out = 0
        self._room = MAX_SHOWN_BYTES

    def run(self, path: str, glob: str | None, found: Sequence[str] | None) -> None:
        """Look through the files. found: those to look through, where that is known."""
        from agentsh.tools.globs import matcher
        from agentsh.tools.searching import LINE_S

        name = self._workspace.relative(path)
        prefix = "" if name == "." else name + "/"
        fits = matcher(glob) if glob else None
        try:
            for file in found if found is not None else self._files_below(name):
                self._deadline.check()
                if fits and not fits(file.removeprefix(prefix)):
                    continue
                if self._is_withheld is not None and self._is_withheld(file):
                    self._withheld += 1
                    continue
                self._file(file)
                if self.stopped:
                    break
            if fits and not self._lines:
                self._fitting = sum(fits(file.removeprefix(prefix)) for file in self._files_below(name))
        except TimeoutError:
            self.stopped = f"the time limit of {LIMIT_S:g} s, {LINE_S:g} s for one line"

    def _files_below(self, name: str) -> Iterator[str]:
        for entry in self._workspace.walk(name):
            self._deadline.check()
            if entry.kind == "file":
                yield entry.path

    def _file(self, path: str) -> None:
        try:
            data = self._workspace.read_bytes(path, max_bytes=MAX_FILE_BYTES)
        except PathRefused:
            self._left_out += 1
            return
        if not self._searcher.may_match(data):
            return
        file = decode(data)
        if file is None:
            return
        before, name = len(self._lines), path.replace("\n", "\\n")  # no name makes lines of its own
        for number, line in self._searcher.matches(file.text, self._deadline):
            if not self._add(f"{name}:{number}:{_cut(line)}"):
                break
        self._files += len(self._lines) > before

    def _add(self, line: str) -> bool:
        size = len(line.encode("utf-8", "surrogatepass")) + 1
        if len(self._lines) == MAX_MATCHES:
            self.stopped = f"{MAX_MATCHES} matching lines"
        elif size > self._room:
            self.stopped = f"{MAX_SHOWN_BYTES:,} bytes of matches"
        else:
            self._room -= size
            self._lines.append(line)
            return True
        return False

    def outcome(self, pattern: str) -> ToolOutcome:
        """Return what was found, and whether that is all."""
        found = f"{len(self._lines)} {'match' if len(self._lines) == 1 else 'matches'}"
        summary = f"grep {one_line(pattern, 80)} · {found} in {plural(self._files, 'file')}"
        where = "" if self._fitting is None else f" in the {plural(self._fitting, 'file')} that the glob fits"
        text = list(self._lines) or [f"[no match{where}]"]
        if self.stopped:
            summary += ", stopped early"
            text.append(f"[stopped at {self.stopped}: there may be more; narrow it with path or glob]")
        if self._left_out:
            text.append(f"[{plural(self._left_out, 'file')} larger than 4 MB or unreadable left out]")
        if self._withheld:
            text.append(f"[{plural(self._withheld, 'file')} left out by a rule of the user]")
        return ToolOutcome("\n".join(text), summary)


def _cut(line: str) -> str:
    line = clean(line)
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + "…"
