"""Verification of whole homes, and its findings in plain words. Loads no pydantic and no framework."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence

from agentsh.app.catalog import DIRECTORY_HINT, Place, no_directory
from agentsh.app.obstacles import of_session
from agentsh.app.paths import Home
from agentsh.app.remembered import as_told
from agentsh.base.text import plural
from agentsh.log.segment import OPEN_NAME
from agentsh.log.store import Damage
from agentsh.stores.marks import Marks
from agentsh.stores.session_check import Finding
from agentsh.stores.verify import Verifier

MARKS_FILE = "verified.json"
"""In a home: what `--incremental` need not read again. A cache."""
SMALL_BYTES = 16 << 20
"""Less than that is read sooner than processes start."""

_NO_FILE = frozenset({errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO})
"""What `open_plain` says of directories, links and stranger things in the place of a file."""

_WORDS = {
    "crc": "an entry does not read",
    "half": "half an entry",
    "nul": "NUL bytes",
    "garbage": "bytes that are no entry",
    "glued": "half an entry, with a whole one behind it",
    "newline": "a line end is missing",
    "gap": "entries are missing",
    "doubled": "an entry stands there twice",
    "conflict": "two programs have written different entries with one number",
    "late": "an entry comes too late to be put in its place",
    "foreign": "lines of another log",
    "header": "the header of a segment is damaged",
    "session": "the log says that it belongs to another session",
    "bom": "a byte-order mark, which an editor may have put there",
    "blank": "blank lines",
    "crlf": "line ends of another system",
    "json": "an entry that was written without a number",
    "dur": "an entry says that more was saved than could be",
    "chain": "the segment before this one is not the one that was closed",
    "blob": "a long text that an entry names is missing or damaged",
    "lock": "`lock` is no plain file",
    "unreadable": "nothing in this log reads",
    "sealed": "a part of a sealed segment does not unpack",
    "archive": "the archive is damaged; what comes before that reads",
    "scratch": "bytes of the archive are damaged, and all that is in it reads",
    "newer": "it is written by a newer agentsh",
    "torn": "an unfinished entry at the end",
    "missing": "there is no open segment",
    "empty": "there is no entry",
}
_REMARKS = {
    "torn": "an unfinished entry at the end, which the next opening sets aside",
    "unended": "the last line end is missing, which the next opening adds",
    "missing": "no open segment, which the next opening begins",
    "empty": "no entry yet",
}


def default_jobs() -> int:
    """Return how many processes are worth while here."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


def verify(
    places: Sequence[Place], *, jobs: int | None = None, incremental: bool = False, blobs: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Iterator[tuple[Place, Finding]]:  # fmt: skip
    """Yield what was found of each session; those of one home come together."""
    for home in dict.fromkeys(place.home for place in places):
        mine = [place for place in places if place.home == home]
        workers = jobs or (1 if sum(place.size for place in mine) < SMALL_BYTES else default_jobs())
        marks = _marks(home) if blobs else None  # a pass that left the blobs out covers nothing
        verifier = Verifier(
            str(home.sessions), str(home.blobs) if blobs else None, jobs=workers, marks=marks,
            incremental=incremental, progress=progress,
        )  # fmt: skip
        no_sessions = {place.id: what for place in mine if (what := no_directory(place)) is not None}
        checked = verifier.check([place.id for place in mine if place.id not in no_sessions])
        for place in mine:
            if place.id in no_sessions:
                yield place, Finding(place.id, problem=no_sessions[place.id], problem_errno=errno.ENOTDIR)
                continue
            found = next(checked)
            obstacles = tuple(map(str, of_session(home, place.id)))
            damages = as_told(home, place.id, found.damages) or _nothing_there(found)
            yield place, found._replace(damages=damages, obstacles=obstacles)
        if marks is not None:
            marks.save()


def _nothing_there(found: Finding) -> tuple[Damage, ...]:
    """Return what to say of a session's directory without a log: a creation that was cut short leaves one, rarely."""
    gone = {"empty", "missing"} <= set(found.remarks) and found.newer is None
    return (Damage(OPEN_NAME, "unreadable", 0, 0),) if gone else ()


def _marks(home: Home) -> Marks | None:
    """Return the marks of a home; those of one that came with a project could say anything."""
    return Marks(home.root / MARKS_FILE) if home.trusted else None


def headline(found: Finding) -> str:
    """Return what is to be said of a session in one line, without its id: what, and what to do."""
    size = f"{plural(found.records, 'event')}, {found.bytes:,} bytes"
    if found.problem is not None:
        what = "is no session" if found.problem_errno == errno.ENOTDIR else "cannot be read"
        return f"{what}: {found.problem}; {remedy(found)}"
    if found.newer is not None:
        return f"written by a newer agentsh ({found.newer[:40]}): update agentsh to continue it"
    nothing = found.records == 0 and not found.ok  # then what the next opening would begin is no news
    remarks = [_REMARKS[name] for name in found.remarks if not (nothing and name in ("missing", "empty"))]
    if found.torn_bytes:
        remarks = [f"{found.torn_bytes:,} bytes of {r}" if r == _REMARKS["torn"] else r for r in remarks]
    if found.checkpoints:
        remarks.append(plural(found.checkpoints, "checkpoint"))
    if found.useless:
        remarks.append(f"passed over by opening, and free to go: {', '.join(found.useless)}")
    remarks += found.obstacles
    if found.holder is not None:
        remarks.append(f"in use by {found.holder}")
    if found.ok:
        if "empty" in found.remarks and found.holder is None:
            remarks.append(f"`agentsh repair {found.session}` begins it anew")
        return "; ".join([f"ok  {size}", *remarks])
    what = plural(len(found.damages), "place")
    return "; ".join([f"damaged  {size}, {what} ({_cost(found)})", *remarks, remedy(found)])


def _cost(found: Finding) -> str:
    """Return what the damages of a session took from it."""
    free = ("session", "dur", "chain", "lock", "header")
    lost, all_of_them = sum(not d.harmless and d.kind not in free for d in found.damages), len(found.damages)
    if not lost:
        return "every event reads all the same"
    if lost < all_of_them:
        return f"something is lost in {lost:,} of them"
    return "something is lost there" if lost == 1 else "something is lost in each"


def remedy(found: Finding) -> str:
    """Return what to do about the damages of a session."""
    if found.problem is not None and found.problem_errno == errno.ENOTDIR:
        return DIRECTORY_HINT
    if found.problem is not None and found.problem_errno in _NO_FILE:
        return f"move it away, or put the file back, then `agentsh repair {found.session}`"
    if found.problem is not None:
        return "`agentsh doctor` looks at the permissions"
    kinds = {d.kind for d in found.damages}
    todo = []
    if "lock" in kinds:
        todo.append(f"remove sessions/{found.session}/lock")
    if "blob" in kinds:
        todo.append("put the blobs back from a copy; the session works without them")
    if "newer" in kinds:
        todo.append("update agentsh")
    elif "archive" in kinds:
        todo.append("put the archive back from a copy (`agentsh pull`, where one was uploaded)")
        todo.append(f"or `agentsh repair {found.session}` for what is left of it")
    elif kinds - {"lock", "blob"}:
        todo.append(f"`agentsh repair {found.session}`")
    return ", ".join(todo)


def place_line(damage: Damage) -> str:
    """Return one damage in plain words."""
    what = _WORDS.get(damage.kind, damage.kind)
    if damage.kind == "blob":
        return f"{what}: {damage.where}, named by event {damage.after_seq}"
    where = f"at {damage.where}" + (f", {plural(damage.bytes, 'byte')}" if damage.bytes else "")
    behind = f", after event {damage.after_seq}" if damage.after_seq else ""
    rot = ""
    if not damage.harmless and damage.kind in ("crc", "half", "nul", "garbage", "glued", "gap", "json", "sealed"):
        rot = "; it had been saved, so the disk or another program changed it" if damage.rot else (
            "; it had not been saved for good yet, so a power cut may have taken it"
        )  # fmt: skip
    return f"{what} ({damage.kind} {where}{behind}{rot})"
