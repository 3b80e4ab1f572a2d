"""Runs a session of this process: what `new` and `resume` have in common once they know which it is."""

import sys
from collections.abc import Awaitable, Callable

from agentsh.app.build import Running
from agentsh.app.hardening import harden
from agentsh.app.paths import Home
from agentsh.app.settings import Settings
from agentsh.base.clock import SystemClock, timestamp
from agentsh.base.text import clean
from agentsh.cli.options import RunOptions
from agentsh.cli.piped import need_prompt
from agentsh.cli.stage import Stage
from agentsh.engine.session import Session
from agentsh.engine.turn import Limits
from agentsh.events.turn import Attachment


async def run(
    options: RunOptions,
    home: Home,
    settings: Settings,
    prompt: str | None,
    *,
    opening: Callable[[Stage], Awaitable[Running]],
    first: Callable[[Session], Awaitable[None]],
    along: tuple[Attachment, ...] = (),
) -> int:
    """Open a session, run one prompt or talk until the user leaves, and close it; return the exit code.

    prompt: see `RunOptions.first_prompt`. first: what the options ask to record before the first turn. along: images
    for the first message.
    """
    harden()
    began = timestamp(SystemClock().now())
    limits = Limits(
        options.max_steps or settings.session.max_steps,
        settings.session.max_cost_usd if options.max_cost_usd is None else options.max_cost_usd,
    )
    if options.alone:
        from agentsh.cli import headless

        interruption = headless.Interruption()
        interruption.install()
        screens = headless.screens(home, interruption, json=options.json)
        running = await opening(Stage(screens, limits, lambda past: None))
        await _recorded(running, first)
        code = await headless.run_once(running, need_prompt(prompt), interruption, along)
        await _tell_of_upload(running, settings, began)
        return code
    from agentsh.cli.terminal import Terminal

    terminal = Terminal(home, settings, plain=options.plain)
    with terminal.starting():
        running = await opening(terminal.stage(limits))
        await _recorded(running, first)
    while True:
        code = await terminal.run(running, prompt, along)
        await _tell_of_upload(running, settings, began)
        if terminal.onward is None:
            return code
        from agentsh.cli.onward import follow

        terminal, running = await follow(terminal.onward, running, limits, plain=options.plain)
        settings, prompt, along = terminal.settings, None, ()


def images(options: RunOptions) -> tuple[Attachment, ...]:
    """Return the images that go along with the first message.

    Raises:
        UsageProblem: one cannot be read, or is none.
    """
    if not options.images:
        return ()
    from agentsh.cli import along

    return along.images(options.images)


async def _tell_of_upload(running: Running, settings: Settings, began: str) -> None:
    """Say at the end, in one line, that copies do not work; while a session runs nothing disturbs it."""
    if settings.checkpoint.upload is None:
        return
    from agentsh.app.uploading import trouble

    problem = await trouble(running.home, running.id, settings.checkpoint.upload, began)
    if problem is not None:
        hint = f"`agentsh push {running.id}` tries again, `agentsh doctor` tells more"
        print(clean(f"agentsh: the copy of this session is behind: {problem} ({hint})"), file=sys.stderr)


async def _recorded(running: Running, first: Callable[[Session], Awaitable[None]]) -> None:
    try:
        await first(running.session)
    except BaseException:
        await running.session.close()
        raise
