"""`agentsh new`: choose a model, make a workspace, create the session, run it."""

import asyncio
import os
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO, cast

from agentsh.app.build import Plan, Screens, new_session
from agentsh.app.paths import Homes, find_homes, prepare
from agentsh.app.settings import Choice, Settings, choose_model, load_settings
from agentsh.base.errors import ModelKeyMissing, UsageProblem
from agentsh.cli import headless
from agentsh.engine.turn import Limits
from agentsh.events.session import Mode
from agentsh.workspace.provision import Provisioned, provision

NO_MODEL = """\
no model is configured. One of these:
  export OPENAI_API_KEY=…     (and OPENAI_BASE_URL, AGENTSH_MODEL for another provider)
  start a local server        (Ollama, LM Studio, llama.cpp and vLLM are found on their usual ports)
  agentsh new --model demo    (offline and scripted: to look around without a key)"""


@dataclass(frozen=True, slots=True)
class NewOptions:
    """The options of the command, as given."""

    prompt: str | None
    source: Path | None
    empty: bool
    in_place: bool
    name: str | None
    tags: tuple[str, ...]
    model: str | None
    mode: str | None
    print_only: bool
    json: bool
    max_steps: int | None
    max_cost_usd: float | None


def run(options: NewOptions) -> int:
    """Start the session; return the exit code."""
    if sum((options.source is not None, options.empty, options.in_place)) > 1:
        raise UsageProblem("--from, --empty and --in-place do not go together")
    homes = find_homes(Path.cwd(), os.environ)
    settings = load_settings(homes, os.environ)
    alone = options.print_only or not (sys.stdin.isatty() and sys.stdout.isatty())
    prompt = headless.piped_prompt(options.prompt) if alone else options.prompt
    if alone:
        prompt = headless.need_prompt(prompt)
    choice = _choice(settings, options.model)
    if homes.note:
        print(f"agentsh: {homes.note}", file=sys.stderr)
    prepare(homes.write)
    session, provisioned = _workspace(options, homes)
    if provisioned.note:
        print(f"agentsh: {provisioned.note}", file=sys.stderr)
    return asyncio.run(_run(options, homes, settings, choice, session, provisioned, prompt, alone))


def _choice(settings: Settings, name: str | None) -> Choice:
    try:
        choice = choose_model(settings, os.environ, name)
    except UsageProblem:
        found = _local_choice(settings)
        if found is None:
            raise UsageProblem(NO_MODEL) from None
        return found
    if choice.wire == "chat" and choice.api_key is None and not is_loopback(choice.base_url):
        raise ModelKeyMissing(
            f"there is no key for {choice.model} at {choice.base_url}",
            hint="set OPENAI_API_KEY, or try `agentsh new --model demo`",
        )
    return choice


def is_loopback(url: str) -> bool:
    """Tell whether a URL stays on this machine."""
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _local_choice(settings: Settings) -> Choice | None:
    """Return the first model of the first local server that answers, said in one line."""
    from agentsh.models.local_servers import find_local_servers

    servers = [server for server in asyncio.run(find_local_servers()) if server.models]
    if not servers:
        return None
    server = servers[0]
    env = {"OPENAI_BASE_URL": server.base_url}
    print(f"agentsh: using {server.models[0]} of {server.name} at {server.base_url}", file=sys.stderr)
    return choose_model(settings, env, server.models[0])


def _workspace(options: NewOptions, homes: Homes) -> tuple[str, Provisioned]:
    from agentsh.base.clock import SystemClock
    from agentsh.base.ids import new_session_id

    home = homes.write
    while True:
        session = new_session_id(SystemClock().now())
        if not (home.sessions / session).exists() and not (home.workspaces / session).exists():
            break
    choice: Literal["auto", "from", "empty", "in-place"] = "auto"
    if options.in_place:
        choice = "in-place"
    elif options.empty:
        choice = "empty"
    elif options.source is not None:
        choice = "from"
    source = (options.source or Path.cwd()).expanduser().absolute()
    with CopyProgress(sys.stderr) as progress:
        return session, provision(
            home.workspaces / session,
            choice=choice,
            source=source,
            homes=[h.root for h in homes.read],
            progress=progress.show,
        )


class CopyProgress:
    """One line on stderr while a copy takes longer than a second; on a terminal only, and wiped at the end."""

    AFTER_S = 1.0
    EVERY_S = 0.1

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._next_s = time.monotonic() + self.AFTER_S if err.isatty() else float("inf")
        self._drawn = False

    def __enter__(self) -> "CopyProgress":
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._drawn:
            self._err.write("\r\x1b[2K")
            self._err.flush()

    def show(self, done: int, total: int, size: int) -> None:
        """Draw the state; called for each file."""
        now = time.monotonic()
        if now < self._next_s:
            return
        self._next_s, self._drawn = now + self.EVERY_S, True
        bar = "█" * (20 * done // max(total, 1))
        self._err.write(f"\rcopying the workspace  {bar:<20}  {done:,} of {total:,} files, {size / 1e6:.0f} MB")
        self._err.flush()


async def _run(
    options: NewOptions,
    homes: Homes,
    settings: Settings,
    choice: Choice,
    session: str,
    provisioned: Provisioned,
    prompt: str | None,
    alone: bool,
) -> int:
    limits = Limits(
        options.max_steps or settings.session.max_steps,
        options.max_cost_usd if options.max_cost_usd is not None else settings.session.max_cost_usd,
    )
    mode = cast(Mode, options.mode or settings.session.mode)
    interruption = headless.Interruption()
    if alone:
        interruption.install()
        screens = headless.screens(headless.Output(options.json), homes.write, interruption)
        terminal = None
    else:
        from agentsh.cli.terminal import Terminal

        terminal = Terminal(homes.write, settings)
        screens = Screens((terminal.renderer,), terminal.approver)
    plan = Plan(homes.write, settings, choice, screens, limits)
    with terminal.starting() if terminal else nullcontext():
        running = await new_session(plan, session, provisioned, cwd=Path.cwd(), mode=mode)
    if options.name:
        await running.session.rename(options.name)
    if options.tags:
        await running.session.tag(options.tags)
    if terminal is None:
        return await headless.run_once(running, headless.need_prompt(prompt), interruption)
    return await terminal.run(running, prompt)
