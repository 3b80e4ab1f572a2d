"""Going on with another session in the same terminal: what `/sessions`, `/resume` and `/clear` come to."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from agentsh.app.build import Running, new_session
from agentsh.app.catalog import find
from agentsh.app.choosing import for_new
from agentsh.app.paths import Home, Homes, find_homes, here
from agentsh.app.plan import Plan
from agentsh.app.settings import Settings, load_settings
from agentsh.base.errors import AgentshError, UsageProblem
from agentsh.base.text import clean
from agentsh.cli.opening import opening_of
from agentsh.cli.options import RunOptions
from agentsh.cli.place import Source, workspace_of_new
from agentsh.cli.stage import Stage
from agentsh.cli.terminal import Terminal
from agentsh.context.state import SessionState
from agentsh.engine.turn import Limits
from agentsh.repl.terminal import Onward

AS_IT_WAS = RunOptions(None, None, None, print_only=False, json=False, max_steps=None, max_cost_usd=None)
"""What was said on the command line was said of the first session."""


class _Next(NamedTuple):
    """A session that is about to be opened. remarks: for its first prompt."""

    home: Home
    settings: Settings
    opening: Callable[[Stage], Awaitable[Running]]
    remarks: tuple[str, ...] = ()


async def follow(onward: Onward, left: Running, limits: Limits, *, plain: bool) -> tuple[Terminal, Running]:
    """Open the session to go on with; where that fails, the one that was left again, and say why. left: it is closed.

    Raises:
        AgentshError: neither can be opened.
    """
    homes = find_homes(here(), os.environ)
    try:
        to = await _new(homes, left) if onward.session is None else _known(homes, onward.session)
        return await _opened(to, limits, plain=plain, trouble=False)
    except AgentshError as error:
        back = _known(homes, left.id)
        said = (f"✗ {clean(str(error))}",)
        return await _opened(back._replace(remarks=said), limits, plain=plain, trouble=True)


async def _opened(to: _Next, limits: Limits, *, plain: bool, trouble: bool) -> tuple[Terminal, Running]:
    terminal = Terminal(to.home, to.settings, remarks=to.remarks, trouble=trouble, plain=plain)
    print()  # the one that was left, and the next, stand apart
    with terminal.starting():
        running = await to.opening(terminal.stage(limits))
    return terminal, running


def _known(homes: Homes, session: str) -> _Next:
    place, settings = find(homes, session), load_settings(homes, os.environ)
    return _Next(place.home, settings, opening_of(place, settings, AS_IT_WAS))


async def _new(homes: Homes, left: Running) -> _Next:
    """Make the workspace as that of the session before was made; model and mode stay."""
    state, settings = left.session.state, load_settings(homes, os.environ)
    profile = (state.request or {}).get("profile")
    pick = await for_new(settings, os.environ, str(profile or state.model))
    session, provisioned = workspace_of_new(left.home, homes, *_source(state))
    for note in (pick.note, provisioned.note):
        if note:
            print(f"agentsh: {clean(note)}", file=sys.stderr)

    async def opening(stage: Stage) -> Running:
        plan = Plan(left.home, settings, pick.choice, stage.screens, stage.limits)
        return await new_session(plan, session, provisioned, cwd=Path(state.cwd), mode=state.mode)

    kept = "  the session before is kept, with what it changed in its workspace: /resume " + left.id
    return _Next(left.home, settings, opening, (kept,))


def _source(state: SessionState) -> tuple[Source, Path]:
    place = state.workspace
    if place is None:
        raise UsageProblem("where the workspace of this session came from is lost", hint="agentsh new")
    if place.kind == "in-place":
        return "in-place", Path(place.path or place.origin or state.cwd)
    if place.kind == "empty" or place.origin is None:
        return "empty", Path(state.cwd)
    return "from", Path(place.origin) / (place.start or ".")
