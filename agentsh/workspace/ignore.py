"""Says which files are nobody's work: what .gitignore files exclude, and caches by name."""

from typing import TYPE_CHECKING

from agentsh.base.light import dataclass

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

GITIGNORE = ".gitignore"
MAX_GITIGNORE_BYTES = 1_048_576
CACHES = frozenset(
    {"node_modules", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".hg", ".svn"}
)
"""Ignored wherever no .gitignore says otherwise (`!node_modules`)."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules that hold in one directory: those of all directories from the top down to it."""

    layers: tuple[tuple[str, "GitIgnoreSpec"], ...] = ()

    def below(self, directory: str, gitignore: bytes) -> "Ignore":
        """Return the rules for `directory`, whose .gitignore holds `gitignore`. directory: `.` at the top."""
        spec = _spec(gitignore.decode("utf-8", "surrogateescape"))
        prefix = "" if directory == "." else directory + "/"
        return Ignore((*self.layers, (prefix, spec))) if len(spec) else self

    def excludes(self, path: str, *, directory: bool) -> bool:
        """Tell whether `path`, relative to the top, is ignored; the deepest .gitignore that names it decides."""
        name = path.rpartition("/")[2]
        if name == ".git":
            return True
        for prefix, spec in reversed(self.layers):
            include = spec.check_file(path[len(prefix) :] + ("/" if directory else "")).include
            if include is not None:
                return include
        return directory and name in CACHES


def _spec(text: str) -> "GitIgnoreSpec":
    """Parse a .gitignore; a line that is no pattern is passed over, as git does."""
    from pathspec import GitIgnoreSpec

    lines = text.split("\n")
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
