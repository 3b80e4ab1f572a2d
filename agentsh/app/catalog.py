"""What sessions there are: the rows of `ls`, and the look-up of a session by what people call it.

The logs are the truth; the index only saves reading them again. Loads no pydantic and no framework.
"""

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from agentsh.app.obstacles import not_listed
from agentsh.app.paths import Home, Homes
from agentsh.app.stores import event_store
from agentsh.base.errors import AgentshError, SessionAmbiguous, SessionHeld, SessionMissing, SessionReadOnly
from agentsh.base.ids import is_session_id, matching_ids
from agentsh.base.text import age
from agentsh.events.summary import VERSION, summarise
from agentsh.log.files import RealFiles
from agentsh.log.lease import holder_of
from agentsh.log.plain import odd
from agentsh.log.store import HEADER_BYTES, Damage, Holder

LOG_NAME = "events.jsonl"
"""The segment that is written: `log.segment.OPEN_NAME`, whose module loads hashlib, which `ls` does without."""
ARCHIVE_NAME = "archive.jsonl.zst"
"""`log.packed.NAME`: the log of a session that has no open segment."""


_SEGMENT = re.compile(r"events\.jsonl|([0-9]{6,12})-[0-9]{12,18}\.jsonl(?:\.zst)?")
"""Names of a log's files, as `log.segment` has them."""


class Place(NamedTuple):
    """A session's directory. updated_ns: last write to its log; 0 where the log is missing.

    size: bytes of the newest segment of the log; of all segments where `sized` made it. stamp: tells one state of the
    log from another, for the index, by the newest segment, as only that grows; empty where the log is missing.
    """

    home: Home
    id: str
    updated_ns: int
    size: int
    stamp: str
    archived: bool = False


class Row(NamedTuple):
    """A session in a list. state: `running`, `idle`, `crashed`, `damaged`, `empty`, `archived`. holder: who runs it.

    summary: see `summarise`, and `damages`: places that do not read. Where the log does not open at all, `problem`
    says why.
    """

    place: Place
    summary: dict[str, Any]
    state: str
    holder: Holder | None

    def age(self, now_ns: int) -> str:
        """Return how long ago it was written; by its last event where its file is newer, as in a fresh checkout."""
        if not self.place.updated_ns:
            return "?"
        then_s = self.place.updated_ns / 1e9
        with suppress(KeyError, TypeError, ValueError):
            event = datetime.fromisoformat(self.summary["updated"])
            then_s = min(then_s, event.timestamp())
        return age(now_ns / 1e9 - then_s)


class Filter(NamedTuple):
    """Which sessions, in which order. limit: 0 for all. query: words that title, id or project must contain.

    archived: those too.
    """

    query: str | None = None
    tags: tuple[str, ...] = ()
    sort: str = "updated"
    limit: int = 50
    archived: bool = True


_Log = tuple[int, str, Home, int, int, bool]
"""A log as it lies there: updated_ns, id, home, size and inode of its newest file (0 where there is none), archived.

In the order of lists. A bare tuple, and not an object that is kept: `ls` makes one for each of ten thousand.
"""


def _place(log: _Log) -> Place:
    updated_ns, session, home, size, inode, archived = log
    return Place(home, session, updated_ns, size, f"{VERSION}:{size}:{updated_ns}:{inode}" if inode else "", archived)


def places(homes: Iterable[Home], *, newest: int = 0, archived: bool = True, named: str | None = None) -> list[Place]:
    """Return every session of the homes, newest first. A directory with a foreign name is none.

    newest: only so many; 0 for all. archived: those too. named: only those whose ids begin or end so. Of thousands of
    sessions no more is made than is asked for: what is left to do for each of the others is one lstat.

    Raises:
        LogError: a home's sessions cannot be listed.
    """
    logs = [log for home in homes for log in _logs(home, named)]
    if not archived:
        logs = [log for log in logs if not log[5]]
    if 0 < newest < len(logs):
        from heapq import nlargest

        first = nlargest(newest, logs)
        if all(is_session_id(log[1]) for log in first):
            return [_place(log) for log in first]
    return [_place(log) for log in sorted(logs, reverse=True) if is_session_id(log[1])][: newest or None]


def _logs(home: Home, named: str | None) -> list[_Log]:
    """Return what is in the directory of a home's sessions, foreign names too, as long as a log could be in there."""
    found: list[_Log] = []
    lstat, log = os.lstat, f"/{LOG_NAME}"
    try:
        root = os.open(home.sessions, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in os.listdir(root):
                if named is not None and not (name.startswith(named) or name.endswith(named)):
                    continue
                try:
                    is_now = lstat(name + log, dir_fd=root)  # a link is not followed by who reads it either
                except OSError:
                    if is_session_id(name):
                        found.append(_without_open_segment(home, name))
                    continue
                found.append((is_now.st_mtime_ns, name, home, is_now.st_size, is_now.st_ino, False))
        finally:
            os.close(root)
    except OSError as error:
        not_listed(home, error)
    return found


def _without_open_segment(home: Home, session: str) -> _Log:
    """Return what there is of a log without its open segment: an archive, or what closed segments are there."""
    directory, archived = f"{home.sessions}/{session}", True
    found: os.stat_result | None
    try:
        found = os.lstat(f"{directory}/{ARCHIVE_NAME}")
    except OSError:
        archived = False
        # a change of segments was interrupted: the last closed one
        found = next(reversed(_segments(directory)), None)
    if found is None:
        return 0, session, home, 0, 0, False
    return found.st_mtime_ns, session, home, found.st_size, found.st_ino, archived


def _segments(directory: str) -> list[os.stat_result]:
    """Return what lstat says of each file of a log, in order, the open one last."""
    found: list[tuple[int, str, os.stat_result]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if (m := _SEGMENT.fullmatch(entry.name)) is not None:
                    ordinal = int(m[1]) if m[1] else 1 << 62
                    found.append((ordinal, entry.name, entry.stat(follow_symlinks=False)))
    except OSError:
        return []
    return [stat for _, _, stat in sorted(found, key=lambda f: f[:2])]


def sized(place: Place) -> Place:
    """Return a place with the size of all its segments: one more listing, so only for what is shown or sorted."""
    if place.archived:
        return place
    return place._replace(size=sum(found.st_size for found in _segments(str(place.home.sessions / place.id))))


def rows(homes: Homes, wanted: Filter) -> list[Row]:
    """Return the rows of `ls`."""
    simple = not wanted.query and not wanted.tags
    newest = wanted.limit if simple and wanted.sort == "updated" else 0
    found = places(homes.read, newest=newest, archived=wanted.archived)
    if wanted.sort == "size":
        found = sorted(map(sized, found), key=lambda p: p.size, reverse=True)
        found = found[: wanted.limit] if simple and wanted.limit else found
    pairs = [(place, summary) for place, summary in with_summaries(found) if _fits(place, summary, wanted)]
    if wanted.sort == "created":
        pairs.sort(key=lambda pair: (pair[1].get("created") or "", pair[0].id), reverse=True)
    elif wanted.sort == "cost":
        pairs.sort(key=lambda pair: pair[1].get("cost_usd") or 0, reverse=True)
    pairs = pairs[: wanted.limit] if wanted.limit else pairs
    return [_row(place if wanted.sort == "size" else sized(place), summary) for place, summary in pairs]


def row_of(place: Place) -> Row:
    """Return the row of one session."""
    ((_, summary),) = with_summaries([place])
    return _row(sized(place), summary)


def _fits(place: Place, summary: dict[str, Any], wanted: Filter) -> bool:
    if not set(wanted.tags) <= set(summary.get("tags") or ()):
        return False
    tags = " ".join(summary.get("tags") or ())
    text = f"{place.id} {summary.get('title') or ''} {summary.get('project') or ''} {tags}".casefold()
    return all(word in text for word in (wanted.query or "").casefold().split())


def _row(place: Place, summary: dict[str, Any]) -> Row:
    holder = holder_of(RealFiles(), str(place.home.sessions / place.id))
    if holder is not None:
        return Row(place, summary, "running", holder)
    if summary.get("damages"):
        state = "damaged"
    elif not summary.get("last_seq"):
        state = "empty"
    elif place.archived:
        state = "archived"
    else:
        state = "crashed" if summary.get("open_turn") else "idle"
    return Row(place, summary, state, None)


def with_summaries(found: list[Place]) -> list[tuple[Place, dict[str, Any]]]:
    """Return each place with its summary: from the index where that is of this very log, else from the log."""
    known: dict[tuple[Home, str], dict[str, Any]] = {}
    for home in dict.fromkeys(place.home for place in found):
        known |= _of_home(home, [place for place in found if place.home == home])
    return [(place, known[place.home, place.id]) for place in found]


def _of_home(home: Home, found: list[Place]) -> dict[tuple[Home, str], dict[str, Any]]:
    from agentsh.stores.index import SummaryIndex

    index = SummaryIndex(home.index_file)
    # The index of a home that came with a project could say anything, and opening it could write to it.
    cached = index.get_many([place.id for place in found]) if home.trusted else {}
    summaries: dict[tuple[Home, str], dict[str, Any]] = {}
    fresh: list[tuple[str, str, str]] = []
    for place in found:
        stamp, text = cached.get(place.id, ("", ""))
        summary = _load(text) if _is_of(stamp, place) else None
        if summary is None:
            summary = read_summary(place)
            if "problem" not in summary:  # what does not open today may open tomorrow, with the same stamp
                fresh.append((place.id, place.stamp, json.dumps(summary)))
        summaries[home, place.id] = summary
    if fresh and home.trusted:
        index.put_many(fresh)
    return summaries


def _is_of(stamp: str, place: Place) -> bool:
    """Tell whether a row was made from the log as it is now."""
    return stamp == place.stamp and bool(stamp)


def _load(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("version") == VERSION else None


def read_summary(place: Place) -> dict[str, Any]:
    """Return the summary of a session from its log. One that does not open gives an empty one with a `problem`."""
    try:
        check_plain(place)
        if place.archived and (kept := _archived_summary(place)) is not None:
            return kept
        store = event_store(place.home)
        summary = summarise(store.read(place.id))
        # No damage: a torn tail, which the next opening or its writer puts right, and a cut change of segments.
        whole = bool(summary.get("last_seq"))
        summary["damages"] = sum(not (d.harmless or _is_fine(d, whole)) for d in store.damages(place.id))
    except (OSError, AgentshError) as error:
        summary = summarise(())
        summary["damages"] = 1
        summary["problem"] = error.message if isinstance(error, AgentshError) else error.strerror or str(error)
    return summary


def _is_fine(damage: Damage, whole: bool) -> bool:
    """Tell whether an opening puts it right. whole: something reads; else it was more than a torn beginning."""
    return damage.kind in ("torn", "missing") if whole else damage.kind == "torn" and damage.bytes <= HEADER_BYTES


def _archived_summary(place: Place) -> dict[str, Any] | None:
    """Return the summary that an archive carries, so that it need not be unpacked to be listed."""
    from agentsh.log.packed import TooNew, describe

    try:
        about = describe(RealFiles(), str(place.home.sessions / place.id / ARCHIVE_NAME))
    except TooNew:
        return None
    summary = about.facts.get("summary") if about is not None else None
    return {**summary, "damages": 0} if isinstance(summary, dict) and summary.get("version") == VERSION else None


def check_plain(place: Place) -> None:
    """Raise for a log that is no plain file: opening a named pipe would wait for ever.

    Raises:
        SessionReadOnly: it is a link, a directory, or stranger things.
    """
    directory = str(place.home.sessions / place.id)
    files = [os.lstat(f"{directory}/{ARCHIVE_NAME}")] if place.archived else _segments(directory)
    found = next((words for words in (odd(file.st_mode) for file in files) if words is not None), None)
    if found is not None:
        raise SessionReadOnly(
            f"the log of session {place.id} is {found}", hint=f"`agentsh verify {place.id}` tells more"
        )


def find(homes: Homes, text: str | None, *, last: bool = False) -> Place:
    """Return the session that `text` names: an id, a unique prefix or suffix of one, or a title.

    last: the newest instead, the same that `ls` shows first.

    Raises:
        SessionMissing: none fits, or its name is that of a link or a file: neither is a session.
        SessionAmbiguous: several do.
    """
    if last or text is None:
        found = places(homes.read, newest=1, archived=False)
        if not found:
            raise SessionMissing("there is no session yet", hint="start one with `agentsh new`")
        return found[0]
    matches = _by_id(homes, text) or _by_title(homes, text)
    if not matches:
        raise SessionMissing(f"no session {text!r}", hint=_where(homes, text))
    if len(matches) > 1:
        matches.sort(key=lambda p: p.updated_ns, reverse=True)
        raise SessionAmbiguous(
            f"{text!r} fits {len(matches)} sessions; give more of the id:", candidates=tuple(p.id for p in matches)
        )
    if (what := no_directory(matches[0])) is not None:
        raise SessionMissing(f"no session {matches[0].id}: sessions/{matches[0].id} is {what}", hint=DIRECTORY_HINT)
    return matches[0]


def _where(homes: Homes, text: str) -> str:
    """Return what to do about a session that is not there: it may be in the trash."""
    from agentsh.stores.trash import Trash

    ids = {t.session for home in homes.read for t in Trash(str(home.root)).listed() if t.whole}
    found = matching_ids(sorted(ids), text)
    if len(found) == 1:
        return f"it is in the trash: `agentsh restore {found[0]}` takes it back"
    return "`agentsh ls --all` lists them" + ("; several in the trash fit: give more of the id" if found else "")


DIRECTORY_HINT = "a session is a directory: put it there itself, or remove what is there"


def no_directory(place: Place) -> str | None:
    """Return what stands in the place of a session's directory, in words, or None where it is one.

    A link is not followed: what is moved, locked and synced by a session's name must be the session.
    """
    try:
        mode = os.lstat(place.home.sessions / place.id).st_mode
    except OSError:
        return None
    words = odd(mode)
    return None if words is not None and "directory" in words else words or "a plain file"


def find_by_id(homes: Homes, text: str) -> Place | None:
    """Return the one session whose id `text` names, or None: for who must be quick and opens no log."""
    matches = _by_id(homes, text)
    return matches[0] if len(matches) == 1 else None


def _by_id(homes: Homes, text: str) -> list[Place]:
    by_id = {place.id: place for place in reversed(places(homes.read, named=text))}
    return [by_id[i] for i in matching_ids(list(by_id), text)]


def _by_title(homes: Homes, text: str) -> list[Place]:
    return [place for place, summary in with_summaries(places(homes.read)) if summary.get("title") == text]


def refuse_held(place: Place) -> None:
    """Raise if another process has the session: quickly, before much is loaded. The lease decides later for good.

    Raises:
        SessionHeld: with who has it.
    """
    holder = holder_of(RealFiles(), str(place.home.sessions / place.id))
    if holder is not None:
        raise SessionHeld(f"session {place.id} is in use by {holder}", holder=str(holder), hint=held_hint(place.id))


def held_hint(session: str) -> str:
    """Return what to do about a session that another process has."""
    return f"`agentsh replay {session} --follow` watches it"
