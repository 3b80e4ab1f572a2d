"""`agentsh rewind`: list the turns of a session, go back to before one of them, or undo that."""

import asyncio
import os
from dataclasses import dataclass

from agentsh.app.catalog import Place, check_plain, find, refuse_held
from agentsh.app.paths import find_homes, here
from agentsh.app.rewinding import moments_of, opened
from agentsh.app.stores import blob_store
from agentsh.app.texts import BlobTexts
from agentsh.base.errors import NotTrusted, UsageProblem
from agentsh.base.text import one_line, plural, short_path
from agentsh.cli.guard import print_json
from agentsh.engine.rewinding import Outcome, What

PROMPT_CHARS = 70


@dataclass(frozen=True, slots=True)
class RewindOptions:
    """The options of the command, as given."""

    session: str | None
    to_seq: int | None
    what: What
    undo: bool
    json: bool


def run(options: RewindOptions) -> int:
    """Do it; return 0, or 1 where something was left alone."""
    if options.undo and options.to_seq is not None:
        raise UsageProblem("--to and --undo do not go together")
    place = find(find_homes(here(), os.environ), options.session)
    if not place.home.trusted:
        raise NotTrusted(f"{place.home.root} is not trusted, so its sessions are read-only", hint="`agentsh trust`")
    check_plain(place)

    async def go() -> int:
        async with opened(place.home, place.id) as (rewinder, _):
            if options.undo:
                return _tell(place.id, await rewinder.undo(), options)
            return _tell(place.id, await rewinder.rewind(options.to_seq or 0, options.what), options)

    if options.to_seq is None and not options.undo:
        return _list(place, options)
    refuse_held(place)
    return asyncio.run(go())


def _list(place: Place, options: RewindOptions) -> int:
    texts, session = BlobTexts(blob_store(place.home)), place.id
    moments = asyncio.run(moments_of(place.home, session))
    if options.json:
        for moment in moments:
            prompt = texts.text(moment.prompt)
            print_json({"to": moment.to_seq, "prompt": prompt, **moment.changed._asdict()})
        return 0
    for moment in moments:
        prompt = one_line(texts.text(moment.prompt), PROMPT_CHARS)
        print(f"--to {moment.to_seq:<6} before: {prompt} ({moment.changed})")
    if not moments:
        print("there is no turn to go back to")
    else:
        print(f"go back with `agentsh rewind {session} --to N`")
    return 0


def _tell(session: str, outcome: Outcome, options: RewindOptions) -> int:
    winding = outcome.winding
    conflicts, lost = (winding.conflicts, winding.lost) if winding is not None else ((), ())
    left_out = winding.left_out if winding is not None else ()
    if options.json:
        paths = list(winding.paths) if winding is not None else []
        print_json({
            "session": session, "seq": outcome.seq, "to": outcome.to_seq, "paths": paths,
            "conflicts": list(conflicts), "lost": list(lost), "left_out": list(left_out),
        })  # fmt: skip
        return int(bool(conflicts or lost))
    count = len(winding.paths) if winding is not None else 0
    done = "the rewind is undone" if options.undo else f"back at event {outcome.to_seq}"
    print(f"{session}: {done}, {plural(count, 'path')} taken back")
    for path in conflicts:
        print(f"left alone, changed by somebody else too: {short_path(path)}")
    for path in lost:
        print(f"left alone, its old content was too large to keep: {short_path(path)}")
    for path in left_out:
        print(f"not looked into: {short_path(path)}")
    if not options.undo:
        print(f"undo with `agentsh rewind {session} --undo`")
    return int(bool(conflicts or lost))
