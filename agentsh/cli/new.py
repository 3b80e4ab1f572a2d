"""`agentsh new`: choose a model, make a workspace, create the session, run it.

Imports little at the top: what sandboxes there are is found out while the rest is loaded.
"""

import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentsh.app.paths import Homes, find_homes, here, prepare
from agentsh.app.sandboxes import choose_early, first_mode
from agentsh.app.settings import Settings, load_settings
from agentsh.base.errors import UsageProblem
from agentsh.cli.options import RunOptions
from agentsh.cli.place import Source, workspace_of_new

if TYPE_CHECKING:
    from agentsh.app.build import Running
    from agentsh.app.choosing import Pick
    from agentsh.cli.stage import Stage
    from agentsh.engine.session import Session


@dataclass(frozen=True, slots=True)
class NewOptions:
    """The options of the command, as given."""

    run: RunOptions
    source: Path | None
    empty: bool
    in_place: bool
    name: str | None
    tags: tuple[str, ...]


def run(options: NewOptions) -> int:
    """Start the session; return the exit code."""
    if sum((options.source is not None, options.empty, options.in_place)) > 1:
        raise UsageProblem("--from, --empty and --in-place do not go together")
    cwd = here()
    if cwd is None and options.source is None and not options.empty:
        raise UsageProblem("the current directory is gone", hint="change to another, or use --from PATH or --empty")
    if options.source is not None and not options.source.expanduser().is_dir():
        raise UsageProblem(f"--from {options.source}: there is no such directory")
    homes = find_homes(cwd, os.environ)
    cwd = cwd or homes.write.root
    settings = load_settings(homes, os.environ)
    choose_early(settings)
    return _start(options, homes, settings, cwd)


def _start(options: NewOptions, homes: Homes, settings: Settings, cwd: Path) -> int:
    import asyncio

    from agentsh.app.build import new_session
    from agentsh.app.first_run import recall
    from agentsh.app.plan import Plan
    from agentsh.app.rooms import room_of
    from agentsh.cli import start

    prompt = options.run.first_prompt()
    along = start.images(options.run)
    _tell(homes.note)
    settings, pick = asyncio.run(_picked(options, settings))
    _tell(pick.note)
    room_of(settings, pick.choice, options.run.budget_tokens)  # what cannot be is told before anything is made
    prepare(homes.write)
    session, provisioned = workspace_of_new(homes.write, homes, *_source(options, cwd))
    _tell(provisioned.note)
    mode, said = first_mode(settings, options.run.mode, in_place=options.in_place)
    _tell(said)
    if options.run.seen and not recall(os.environ).introduced:
        from agentsh.cli import welcome

        welcome.introduce(pick.choice, provisioned, mode, settings)

    async def opening(stage: "Stage") -> "Running":
        plan = Plan(homes.write, settings, pick.choice, stage.screens, stage.limits, options.run.budget_tokens)
        try:
            return await new_session(plan, session, provisioned, cwd=cwd, mode=mode)
        finally:
            gc.freeze()
            gc.enable()

    async def first(made: "Session") -> None:
        if options.name:
            await made.rename(options.name)
        if options.tags:
            await made.tag(options.tags)

    return asyncio.run(
        start.run(options.run, homes.write, settings, prompt, opening=opening, first=first, along=along)
    )


async def _picked(options: NewOptions, settings: Settings) -> "tuple[Settings, Pick]":
    """Return the model to talk to; where nothing is configured, a new user on a terminal is asked, once."""
    from agentsh.app.choosing import NoModel, for_new

    try:
        return settings, await for_new(settings, os.environ, options.run.model)
    except NoModel:
        if not options.run.seen:
            raise
        from agentsh.cli import welcome

        return await welcome.without_a_model(settings, os.environ)


def _tell(note: str | None) -> None:
    if note:
        print(f"agentsh: {note}", file=sys.stderr)


def _source(options: NewOptions, cwd: Path) -> tuple[Source, Path]:
    choice: Source = "auto"
    if options.in_place:
        choice = "in-place"
    elif options.empty:
        choice = "empty"
    elif options.source is not None:
        choice = "from"
    return choice, cwd / (options.source or cwd).expanduser()
