"""The files of one patch: changed in memory first, then in the workspace, all at once or none.

A section that does not fit ends the patch: what stands before it is done, as the models know it that were taught this
form (docs/adr/0013-patches-stop-where-they-do-not-fit.md).
"""

from collections.abc import Sequence
from dataclasses import replace

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.base.light import dataclass
from agentsh.base.text import one_line, plural
from agentsh.ports.tool import Edit, ToolOutcome
from agentsh.ports.workspace import Change, Workspace
from agentsh.tools.patch_format import Section, parse_patch
from agentsh.tools.patching import Spot, apply_hunks
from agentsh.tools.replacing import changed_lines
from agentsh.tools.textfile import MAX_FILE_BYTES, decode, kind_of_binary, load

MAX_FILES = 100
MAX_PROBLEMS = 3
MAX_SHOWN_SPOTS = 30


def apply(workspace: Workspace, patch: str) -> ToolOutcome:
    """Change the files that a patch names, up to the first section that does not fit, and say what was done.

    Sections behind that one are only tried, so that all that has to be mended is told at once: of the first three
    that fail.

    Raises:
        ToolFailed: it is no patch, names a place outside of the workspace or too many files, or no section before the
            first that fails changes anything: nothing was changed.
    """
    files, sections = _Files(workspace), parse_patch(patch)
    _check(workspace, sections)
    problems, fit = [], 0
    for section in sections:
        try:
            files.apply(section)
        except ToolFailed as error:
            problems.append(error.message)
        else:
            if not problems:
                files.keep()
                fit += 1
    if not problems:
        return files.write()
    more = f"\n[{len(problems) - MAX_PROBLEMS} more files failed]" if len(problems) > MAX_PROBLEMS else ""
    told = "\n".join(problems[:MAX_PROBLEMS]) + more
    files.back()
    if not files.changed():
        raise ToolFailed("nothing was changed. " + told)
    outcome = files.write()
    return replace(
        outcome,
        for_model=f"The patch stopped at section {fit + 1} of {len(sections)}: {told}\nDone before it, and not to be "
        f"sent again:\n{outcome.for_model}\nNothing else was changed.",
        for_user=f"{outcome.for_user}, then stopped: {one_line(problems[0], 80)}",
        status="error",
    )


def _check(workspace: Workspace, sections: Sequence[Section]) -> None:
    """Refuse as a whole what is no matter of one file.

    Raises:
        ToolFailed: a name leads out of the workspace, or there are too many.
    """
    names = set()
    for section in sections:
        for path in filter(None, (section.path, section.move_to)):
            try:
                names.add(workspace.relative(path))
            except ToolFailed as error:
                raise ToolFailed("nothing was changed. " + error.message) from None
    if len(names) > MAX_FILES:
        raise ToolFailed(f"nothing was changed. The patch names {len(names)} files, more than {MAX_FILES}; split it")


@dataclass(slots=True)
class _File:
    """A file that a patch names. was, now: its bytes, None where absent. mode_of: where it was moved from."""

    path: str
    was: bytes | None
    now: bytes | None
    mode_of: str | None = None


class _Files:
    """The files of one patch, changed in memory until it is known what fits."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files: dict[str, _File] = {}
        self._told: list[str] = []
        self._kept: tuple[dict[str, _File], list[str]] = ({}, [])

    def keep(self) -> None:
        """Keep what the files are by now, to come back to."""
        self._kept = ({key: replace(file) for key, file in self._files.items()}, list(self._told))

    def back(self) -> None:
        """Come back to what was kept last."""
        self._files, self._told = self._kept

    def changed(self) -> list[_File]:
        """Return the files that are not as they were."""
        return [file for file in self._files.values() if file.now != file.was]

    def apply(self, section: Section) -> None:
        """Apply one section.

        Raises:
            ToolFailed: it does not fit; the message names the file.
        """
        file = self._file(section.path)
        if section.kind == "add":
            text = "".join(line + "\n" for line in section.added)
            did = "added" if file.now is None else "replaced"
            self._set(file, _encoded(file.path, text))
            self._told.append(f"{did} {file.path} ({plural(len(section.added), 'line')})")
        elif section.kind == "delete":
            self._there(file)
            file.now = None
            self._told.append(f"deleted {file.path}")
        else:
            self._update(file, section)

    def _update(self, file: _File, section: Section) -> None:
        before, after, where = self._there(file), None, ""
        if section.hunks:
            decoded = decode(before)
            if decoded is None:
                raise ToolFailed(f"{file.path} is a {kind_of_binary(before)}, not text")
            try:
                patched = apply_hunks(decoded.text, section.hunks, newline=decoded.newline)
                after = decoded.encode(patched.text)
            except ToolFailed as error:
                raise ToolFailed(f"{file.path}: {error.message}") from None
            where = f": {_where(patched.spots)}"
        after = before if after is None else after
        if section.move_to is None:
            if after == before:
                raise ToolFailed(f"{file.path}: the hunks change nothing")
            self._set(file, after)
            self._told.append(f"changed {file.path}{where}")
            return
        target = self._file(section.move_to)
        if target is file:
            raise ToolFailed(f"{file.path} cannot be moved to itself")
        over = ", over what was there" if target.now is not None else ""
        target.mode_of = None if target.was is not None else file.path if file.was is not None else file.mode_of
        self._set(target, after)
        file.now = None
        self._told.append(f"moved {file.path} to {target.path}{over}{where}")

    def write(self) -> ToolOutcome:
        """Change the files, and say what was done."""
        changed = self.changed()
        if not changed:
            raise ToolFailed("the patch changes nothing: the files are so already")
        self._workspace.change([Change(file.path, file.now, file.mode_of) for file in changed])
        added = removed = 0
        for file in changed:
            plus, minus = changed_lines(_text(file.was), _text(file.now))
            added, removed = added + plus, removed + minus
        names = one_line(", ".join(file.path for file in changed), 200)
        return ToolOutcome(
            "\n".join(self._told),
            f"apply_patch {names} +{added} -{removed}",
            edits=tuple(Edit(file.path, file.was, file.now) for file in changed),
        )

    def _file(self, path: str) -> _File:
        """Return the file of that name; two names of one file are one."""
        name = self._workspace.relative(path)
        key = self._workspace.real(name) or name
        if key not in self._files:
            was = load(self._workspace, name) if self._workspace.exists(name) else None
            self._files[key] = _File(name, was, was)
        return self._files[key]

    def _there(self, file: _File) -> bytes:
        if file.now is None:
            if file.was is None:
                load(self._workspace, file.path)  # says why not, and names that are close
            raise PathRefused(f"{file.path}: there is no such file or directory")
        return file.now

    def _set(self, file: _File, data: bytes) -> None:
        if len(data) > MAX_FILE_BYTES:
            raise ToolFailed(f"{file.path} would have {len(data):,} bytes, more than the limit of {MAX_FILE_BYTES:,}")
        file.now = data


def _encoded(path: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ToolFailed(f"{path}: half a surrogate pair in line {line}; UTF-8 has no such") from None


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _where(spots: tuple[Spot, ...]) -> str:
    """Say where the hunks went, and what was not as the patch has it."""
    told = []
    for spot in spots[:MAX_SHOWN_SPOTS]:
        text = f"line {spot.line}"
        if spot.found is not None and spot.found.likeness != "exact":
            text += f" (alike {spot.found.likeness})"
        if spot.found is not None and spot.found.others:
            text += f" (the first of {spot.found.others + 1} such places)"
        told.append(text)
    rest = len(spots) - len(told)
    return ", ".join(told) + (f", and {rest} more" if rest else "")
