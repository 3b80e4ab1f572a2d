"""`agentsh diff`: what a session has changed, as a patch, as figures, or as JSON."""

import os
import sys

from agentsh.app.catalog import check_plain, find
from agentsh.app.diffing import SessionDiff, session_diff
from agentsh.app.paths import find_homes, here
from agentsh.app.screens import colours
from agentsh.base.text import clean, plural
from agentsh.cli.guard import print_json
from agentsh.workspace.patch import patch_of
from agentsh.workspace.snapshot_diff import counted

_COLOURS = ((b"+++", "1"), (b"---", "1"), (b"diff ", "1"), (b"@@", "36"), (b"+", "32"), (b"-", "31"))


def run(session: str | None, *, at: int | None, stat: bool, as_json: bool) -> int:
    """Print it; return 0."""
    place = find(find_homes(here(), os.environ), session)
    check_plain(place)
    found = session_diff(place.home, place.id, at)
    if as_json:
        for change in found.changes:
            added, removed = counted(found.blobs, [change])
            print_json({"path": change.path, "status": change.status, "added": added, "removed": removed})
    elif stat:
        _stat(found)
    else:
        _patch(found)
    if found.unfinished:
        print(
            "agentsh: a command was at work behind the last snapshot; it may have changed more",
            file=sys.stderr,
        )
    return 0


def _stat(found: SessionDiff) -> None:
    total = [0, 0]
    width = max((len(clean(change.path)) for change in found.changes), default=0)
    for change in found.changes:
        added, removed = counted(found.blobs, [change])
        total = [total[0] + added, total[1] + removed]
        print(f"{change.status} {clean(change.path):<{width}}  +{added:,} -{removed:,}")
    print(f"{plural(len(found.changes), 'file')} changed, +{total[0]:,} -{total[1]:,}")


def _patch(found: SessionDiff) -> None:
    """Write the exact bytes where nobody looks at them, and what is harmless to look at on a terminal."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        for change in found.changes:
            sys.stdout.buffer.writelines(patch_of(found.blobs, change))
        return
    colour = colours(sys.stdout)
    for change in found.changes:
        for line in patch_of(found.blobs, change):
            text = clean(line.decode("utf-8", "replace").rstrip("\n"))
            code = next((c for mark, c in _COLOURS if line.startswith(mark)), None) if colour else None
            print(f"\x1b[{code}m{text}\x1b[0m" if code else text)
