"""`agentsh gc`: empty the trash of what is old, and remove blobs that nothing refers to. Only ever when asked."""

import os
from datetime import timedelta

from agentsh.app.lifecycle import left_temporary
from agentsh.app.paths import Home
from agentsh.base.text import clean, plural
from agentsh.cli.progress import Bar
from agentsh.cli.writable import trusted_homes
from agentsh.log.depths import tree_bytes
from agentsh.stores.collect import Collector, Garbage
from agentsh.workspace.temporary import remove_tmp


def run(*, dry_run: bool, older_than_days: int) -> int:
    """Collect the garbage of every home that is trusted; return 0."""
    for home in trusted_homes():
        if not home.root.is_dir():
            continue
        if told := _temporary(home, dry_run):
            print(clean(f"{home.root}: {told}"))
        bar = Bar(f"reading the logs of {home.root}:")
        collector = Collector(str(home.root), older_than=timedelta(days=older_than_days), progress=bar)
        try:
            found = collector.collect(dry_run=dry_run)
        finally:
            bar.wipe()
        for line in _told(found, dry_run):
            print(clean(f"{home.root}: {line}"))
    return 0


def _temporary(home: Home, dry_run: bool) -> str | None:
    """Remove the temporary directories that killed sessions have left; return what to tell of it."""
    found = left_temporary(home)
    size = sum(map(tree_bytes, found))
    if not dry_run:
        for path in found:
            remove_tmp(path)
        if left := [path for path in found if os.path.lexists(path)]:
            return f"{left[0]} cannot be removed: look at who owns what is in it"
    done = "would be removed" if dry_run else "removed"
    return f"what killed sessions left in temporary directories ({size:,} bytes) {done}" if found else None


def _told(found: Garbage, dry_run: bool) -> list[str]:
    done = "would be removed" if dry_run else "removed"
    lines = [f"{t.session}, in the trash since {t.when:%Y-%m-%d}, {done}" for t in found.trash]
    freed = found.trash_bytes + found.blob_bytes + found.leftover_bytes
    parts = [
        f"{plural(len(found.trash), 'session')} in the trash ({found.trash_bytes:,} bytes)",
        f"{plural(found.blobs, 'blob')} that nothing refers to ({found.blob_bytes:,} bytes)",
    ]
    if found.leftovers:
        parts.append(f"{plural(found.leftovers, 'file')} of writes that were cut short")
    return [*lines, f"{', '.join(parts)} {done}: {freed:,} bytes; {plural(found.kept_blobs, 'blob')} kept"]
