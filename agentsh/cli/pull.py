"""`agentsh pull`: bring a session back from where its copy is kept, checked, and say plainly what came."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentsh.app.paths import Home, find_homes, here, prepare
from agentsh.app.settings import load_settings
from agentsh.app.uploading import open_bucket, pulled, puller
from agentsh.app.verifying import place_line
from agentsh.base.errors import (
    LogWriteFailed,
    NotTrusted,
    SessionAmbiguous,
    SessionMissing,
    StorageDamaged,
    UsageProblem,
)
from agentsh.base.ids import matching_ids
from agentsh.base.text import clean, one_line, plural
from agentsh.cli.guard import complain, print_json
from agentsh.cli.progress import Bar
from agentsh.cli.push import bucket_url

if TYPE_CHECKING:
    from agentsh.stores.manifest import Manifest
    from agentsh.stores.pull import Pulled, Puller

MAX_PLACES = 5


def run(session: str | None, *, source: str | None, directory: Path | None, listing: bool, as_json: bool) -> int:
    """Pull a session, or list what is there; return the exit code."""
    homes = find_homes(here(), os.environ)
    settings = load_settings(homes, os.environ)
    url = bucket_url(source, settings.checkpoint.upload, "--from")
    home = homes.write if directory is None else Home(directory.expanduser().absolute(), trusted=True)
    if listing == (session is not None):
        raise UsageProblem("pull what?", hint="`agentsh pull ID`, or --list for what there is")
    bar = Bar(f"pulling from {url}:")
    mover = puller(home, open_bucket(url, settings.checkpoint.upload_timeout_s, os.environ), bar)
    if listing:
        return _list(mover, url, as_json)
    if not home.trusted:
        raise NotTrusted(f"{home.root} is not trusted", hint="`agentsh trust`")
    wanted = _chosen(mover, session or "")
    try:
        bar.total = mover.manifest(wanted).bytes
        prepare(home)
        done = mover.pull(wanted)
    except StorageDamaged as error:
        error.hint = error.hint or f"`agentsh push {wanted} --replace` on the machine that has it makes it good"
        raise
    except LogWriteFailed as error:
        goes_on = f"what came is kept, and `agentsh pull {wanted}` goes on"
        error.hint = f"{error.hint}; {goes_on}" if error.hint else goes_on
        raise
    finally:
        bar.wipe()
    if done.how != "ahead" and settings.checkpoint.upload in (None, url):
        pulled(home, wanted, url, done.manifest.last_seq)
    for line in _told(done, home):
        print(clean(line))
    return 0


def _chosen(mover: "Puller", text: str) -> str:
    found = matching_ids(mover.listed(), text)
    if not found:
        raise SessionMissing(f"no session {text!r} is there", hint="`agentsh pull --list` lists them")
    if len(found) > 1:
        raise SessionAmbiguous(f"{text!r} fits {len(found)} sessions; give more of the id:", candidates=tuple(found))
    return found[0]


def _list(mover: "Puller", url: str, as_json: bool) -> int:
    code, found_any = 0, False
    for session in sorted(mover.listed(), reverse=True):
        try:
            found = mover.manifest(session)
        except SessionMissing:  # an upload that has not come as far as its manifest
            continue
        except StorageDamaged as error:
            complain(error)
            code, found_any = error.exit_code, True
            continue
        found_any = True
        if as_json:
            print_json(_as_json(found))
        else:
            title = one_line(str(found.about.get("title") or "(no prompt yet)"), 60)
            when = clean(found.updated)[:19].replace("T", " ")
            print(
                f"{found.session}  {when}  {plural(found.last_seq, 'event'):>14}  {found.bytes:>12,} bytes  {title}"
            )
    if not found_any and not as_json:
        print(f"No sessions at {clean(url)}.")
    return code


def _as_json(found: "Manifest") -> dict[str, object]:
    return {
        "id": found.session, "last_seq": found.last_seq, "updated": found.updated, "host": found.host,
        "by": found.by, "bytes": found.bytes, "lost_blobs": len(found.lost_blobs), **dict(found.about),
    }  # fmt: skip


def _told(done: "Pulled", home: Home) -> list[str]:
    found = done.manifest
    session = found.session
    if done.how in ("same", "ahead"):
        more = " and goes farther here" if done.how == "ahead" else ""
        blobs = f"; {plural(done.blobs, 'blob')} that was missing came" if done.blobs else ""
        return [f"{session} is here already{more}: nothing to restore{blobs}"]
    lines = [
        f"{session} is restored: {plural(found.last_seq, 'event')}, written at {found.host}, copied {found.updated}; "
        f"{plural(done.blobs, 'blob')}. Every hash and every crc fits."
    ]
    if done.kept is not None:
        lines.append(f"What was here, a part of it, is in {home.root / done.kept}")
    if done.finding is not None and done.finding.damages:
        lines.append(f"{plural(len(done.finding.damages), 'place')} had been damaged before it was copied:")
        lines += [f"  {place_line(damage)}" for damage in done.finding.damages[:MAX_PLACES]]
    if done.lost_blobs:
        lines.append(f"{plural(len(done.lost_blobs), 'long text')} was missing already where it was copied")
    if not (home.workspaces / session).is_dir():
        lines += [
            "Its workspace is not part of the copy: the conversation is here, the files are not.",
            f"`agentsh resume {session} --dir PATH` goes on in a directory of yours, which may be empty.",
        ]
    else:
        lines.append(f"Its workspace here is as it was: {home.workspaces / session}")
    return lines
