"""`agentsh archive` and `agentsh unarchive`: a session's log as one small file, and back."""

from agentsh.app.lifecycle import archive as make_archive
from agentsh.app.lifecycle import unarchive as take_back
from agentsh.app.repairing import damage_told
from agentsh.cli.progress import Bar
from agentsh.cli.writable import find_writable


def archive(sessions: list[str]) -> int:
    """Archive sessions; return 0."""
    for text in sessions:
        place = find_writable(text)
        bar = Bar(f"archiving {place.id}")
        try:
            done = make_archive(place, bar)
        finally:
            bar.wipe()
        if done.before:
            print(f"{place.id} is archived already ({done.packed_bytes:,} bytes)")
            continue
        share = 1 - done.packed_bytes / max(done.raw_bytes, 1)
        saved = f", {share:.0%} saved" if share > 0 else ""  # parity makes a very short one longer
        kept = f"; an archive of before is no copy of it (kept: quarantine/{done.kept})" if done.kept else ""
        print(f"{place.id} is archived: {done.raw_bytes:,} bytes are {done.packed_bytes:,} now{saved}{kept}")
    return 0


def unarchive(sessions: list[str]) -> int:
    """Take sessions out of their archives, or what is left of them; return 1 where something is lost, else 0."""
    code = 0
    for text in sessions:
        place = find_writable(text)
        bar = Bar(f"unpacking {place.id}")
        try:
            taken = take_back(place, bar)
        finally:
            bar.wipe()
        if taken is None:
            print(f"{place.id} is not archived")
            continue
        hint = "" if taken.whole else f"; `agentsh repair {place.id}` tells what"
        what = "not archived any more" if taken.kept is None else "taken out of its archive"
        print(f"{place.id} is {what}{damage_told(taken)}{hint}")
        code = code if taken.whole else 1
    return code
