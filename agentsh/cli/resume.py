"""`agentsh resume`: find the session, open it, close what a crash left open, go on.

Imports little at the top: that somebody else has the session is told before anything heavy is loaded.
"""

import gc
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agentsh.app.catalog import Place, check_plain, find, held_hint, refuse_held
from agentsh.app.paths import find_homes, here
from agentsh.base.errors import NotTrusted, SessionHeld, SessionReadOnly, UsageProblem
from agentsh.cli.options import RunOptions

if TYPE_CHECKING:
    from agentsh.app.paths import Homes
    from agentsh.engine.session import Session
    from agentsh.events.session import Mode


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """The options of the command, as given."""

    run: RunOptions
    session: str | None
    last: bool
    directory: Path | None
    read_only: bool


def run(options: ResumeOptions) -> int:
    """Go on with the session; return the exit code."""
    session, words = options.session, options.run.prompt
    if options.last:
        if words is not None:
            raise UsageProblem("with --last only a prompt is taken", hint="leave the id out")
        session, words = None, session
    elif session is None:
        raise UsageProblem("which session?", hint="`agentsh resume ID`, or --last for the newest")
    homes = find_homes(here(), os.environ)
    place = find(homes, session, last=options.last)
    if options.read_only and words:
        raise UsageProblem("--read-only takes no prompt", hint="leave one of the two out")
    if options.read_only:
        return _shown(place)
    if not place.home.trusted:
        raise NotTrusted(f"{place.home.root} is not trusted, so its sessions are read-only", hint="`agentsh trust`")
    refuse_held(place)
    check_plain(place)
    directory = options.directory.expanduser().absolute() if options.directory else None
    if directory is not None and not directory.is_dir():
        raise UsageProblem(f"--dir {directory}: there is no such directory", hint="where the workspace is now")
    try:
        return _go_on(options, homes, place, directory, words)
    except SessionHeld as held:
        held.hint = held_hint(place.id)
        raise
    except SessionReadOnly as closed:
        shows = f"`agentsh resume {place.id} --read-only` shows it"
        closed.hint = f"`{closed.hint}` mends it, {shows}" if closed.hint else shows
        raise


def _shown(place: Place) -> int:
    from agentsh.cli import replay

    gc.enable()
    return replay.run(replay.ReplayOptions(place.id, False, None, False, 1, None, (), False, "screen", None))


def _go_on(options: ResumeOptions, homes: "Homes", place: Place, directory: Path | None, words: str | None) -> int:
    from agentsh.app.sandboxes import choose_early
    from agentsh.app.settings import load_settings

    settings = load_settings(homes, os.environ)
    choose_early(settings)
    import asyncio

    from agentsh.cli import start
    from agentsh.cli.opening import opening_of

    words_given = replace(options.run, prompt=words)
    prompt = words_given.first_prompt()
    along = start.images(options.run)
    opening = opening_of(place, settings, options.run, directory)

    async def first(session: "Session") -> None:
        if options.run.mode:
            await session.set_mode(cast("Mode", options.run.mode))

    running = start.run(words_given, place.home, settings, prompt, opening=opening, first=first, along=along)
    return asyncio.run(running)
