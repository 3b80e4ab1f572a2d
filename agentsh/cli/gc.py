"""`agentsh gc`: empty the trash of what is old, and remove blobs that nothing refers to. Only ever when asked."""

from datetime import timedelta

from agentsh.base.text import clean, plural
from agentsh.cli.progress import Bar
from agentsh.cli.writable import trusted_homes
from agentsh.stores.collect import Collector, Garbage


def run(*, dry_run: bool, older_than_days: int) -> int:
    """Collect the garbage of every home that is trusted; return 0."""
    for home in trusted_homes():
        if not home.root.is_dir():
            continue
        bar = Bar(f"reading the logs of {home.root}:")
        collector = Collector(str(home.root), older_than=timedelta(days=older_than_days), progress=bar)
        try:
            found = collector.collect(dry_run=dry_run)
        finally:
            bar.wipe()
        for line in _told(found, dry_run):
            print(clean(f"{home.root}: {line}"))
    return 0


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
