"""`agentsh resume`: find the session, open it, close what a crash left open, go on."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agentsh.app.build import Plan, Screens, resume_session
from agentsh.app.catalog import Place, find
from agentsh.app.paths import find_homes
from agentsh.app.settings import Settings, choose_model, load_settings
from agentsh.base.errors import NotTrusted, SessionHeld, UsageProblem, WorkspaceError
from agentsh.cli import headless
from agentsh.cli.replay import ReplayOptions
from agentsh.cli.replay import run as replay
from agentsh.context.state import SessionState
from agentsh.engine.turn import Limits
from agentsh.events.event import Event
from agentsh.events.session import Mode


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """The options of the command, as given."""

    session: str | None
    prompt: str | None
    last: bool
    model: str | None
    mode: str | None
    directory: Path | None
    read_only: bool
    budget_tokens: int | None
    print_only: bool
    json: bool
    max_steps: int | None
    max_cost_usd: float | None


def run(options: ResumeOptions) -> int:
    """Go on with the session; return the exit code."""
    session, words = options.session, options.prompt
    if options.last:
        if words is not None:
            raise UsageProblem("with --last only a prompt is taken", hint="leave the id out")
        session, words = None, session
    elif session is None:
        raise UsageProblem("which session?", hint="`agentsh resume ID`, or --last for the newest")
    homes = find_homes(Path.cwd(), os.environ)
    place = find(homes, session, last=options.last)
    if options.read_only:
        return replay(ReplayOptions(place.id, False, None, False, 1, None, (), False, "screen", None))
    if not place.home.trusted:
        raise NotTrusted(f"{place.home.root} is not trusted, so its sessions are read-only", hint="`agentsh trust`")
    settings = load_settings(homes, os.environ)
    directory = options.directory.expanduser().absolute() if options.directory else None
    if directory is not None and not directory.is_dir():
        raise WorkspaceError(f"{directory} is no directory", hint="--dir names where the workspace is now")
    alone = options.print_only or not (sys.stdin.isatty() and sys.stdout.isatty())
    prompt = headless.need_prompt(headless.piped_prompt(words)) if alone else words
    try:
        return asyncio.run(_run(options, place, settings, directory, prompt, alone))
    except SessionHeld as held:
        held.hint = held.hint or f"`agentsh replay {place.id} --follow` watches it"
        raise


async def _run(
    options: ResumeOptions, place: Place, settings: Settings, directory: Path | None, prompt: str | None, alone: bool
) -> int:
    terminal = None
    interruption = headless.Interruption()
    if alone:
        interruption.install()
        screens = headless.screens(headless.Output(options.json), place.home, interruption)
    else:
        from agentsh.cli.terminal import Terminal

        terminal = Terminal(place.home, settings)
        screens = Screens((terminal.renderer,), terminal.approver)

    def plan_for(state: SessionState) -> Plan:
        recorded = (state.environment.request if state.environment else None) or {}
        name = options.model or cast(str | None, recorded.get("profile")) or state.model
        limits = Limits(
            options.max_steps or settings.session.max_steps,
            options.max_cost_usd if options.max_cost_usd is not None else settings.session.max_cost_usd,
        )
        choice = choose_model(settings, os.environ, name)
        return Plan(place.home, settings, choice, screens, limits, options.budget_tokens)

    def show(past: Sequence[Event]) -> None:
        if terminal is not None:
            terminal.show_past(past)

    with terminal.starting() if terminal else nullcontext():
        running = await resume_session(
            place.home, place.id, settings, plan_for=plan_for, show=show, directory=directory
        )
    if options.mode:
        await running.session.set_mode(cast(Mode, options.mode))
    if terminal is None:
        return await headless.run_once(running, headless.need_prompt(prompt), interruption)
    return await terminal.run(running, prompt)
