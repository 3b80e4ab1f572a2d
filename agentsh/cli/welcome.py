"""The first run on a terminal: one question where no model is configured, a few lines about what will happen."""

import os
import signal
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentsh.app import first_run, sandboxes
from agentsh.app.choosing import NoModel, Pick, for_new
from agentsh.app.paths import find_homes, here
from agentsh.app.settings import Settings, load_settings
from agentsh.base.errors import UsageProblem

if TYPE_CHECKING:
    from agentsh.app.settings import Choice
    from agentsh.workspace.provision import Provisioned

AGAIN = "the demo model, as you chose: it is a script; `--model NAME` or OPENAI_API_KEY says otherwise"
TRIES = 3
WIDEST, NARROW = 100, 60
"""Columns."""


async def without_a_model(settings: Settings, env: Mapping[str, str]) -> tuple[Settings, Pick]:
    """Ask once what to do where nothing is configured; return the settings then, and the model.

    Raises:
        NoModel: the user wants to see to it first.
    """
    memory = first_run.recall(env)
    if memory.without_a_model == "demo":
        return settings, (await for_new(settings, env, "demo"))._replace(note=AGAIN)
    if memory.without_a_model == "none":
        raise NoModel
    keys = first_run.found_keys(env, [*settings.models])
    ways = [f"{key.name}: {key.variable} is set; {key.base_url}" for key in keys]
    ways += ["demo: offline and scripted, to look around without a key", "none: I see to it first"]
    _say("", "No model is configured, and no local server was found. You can use:")
    for number, way in enumerate(ways, 1):
        _say(f"  {number}  ", way)
    chosen = _number(len(ways))
    if chosen < len(keys):
        return await _configured(keys[chosen], env)
    first_run.remember(env, memory._replace(without_a_model="demo" if chosen == len(keys) else "none"))
    if chosen > len(keys):
        raise NoModel
    return settings, await for_new(settings, env, "demo")


async def _configured(provider: first_run.Provider, env: Mapping[str, str]) -> tuple[Settings, Pick]:
    for _ in range(TRIES):
        model = _line(f"Which model of {provider.name}? ")
        try:
            file = first_run.add_profile(env, provider, model)
        except UsageProblem as problem:
            print(f"  {problem}")
            continue
        print(f"  noted in {file}")
        settings = load_settings(find_homes(here(), env), env)
        return settings, await for_new(settings, env, None)
    raise NoModel


def introduce(choice: "Choice", made: "Provisioned", mode: str, settings: Settings) -> None:
    """Say what a new user has to know, in a few lines, once."""
    kind = sandboxes.choice(settings)[0]
    for name, text in first_run.explained(choice, made, mode, kind, network=settings.sandbox.network):
        _say(f"  {name:<11}" if _columns() >= NARROW else f"  {name}: ", text)
    print()
    first_run.remember(os.environ, first_run.recall(os.environ)._replace(introduced=True))


def _columns() -> int:
    return min(os.get_terminal_size(sys.stdout.fileno()).columns or WIDEST, WIDEST)


def _say(lead: str, text: str) -> None:
    """Print a text behind a lead, wrapped."""
    after = " " * (len(lead) if _columns() >= NARROW else min(len(lead), 4))
    print(textwrap.fill(text, max(_columns() - 1, 20), initial_indent=lead, subsequent_indent=after))


def _number(most: int) -> int:
    for _ in range(TRIES):
        text = _line("Which? [1] ") or "1"
        if text.isascii() and text.isdigit() and 1 <= int(text[:3]) <= most:
            return int(text[:3]) - 1
        print(f"  a number from 1 to {most}")
    return most - 1


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end a wait for a line at once; the event loop's handler would wait for its turn."""
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _line(prompt: str) -> str:
    """Return a line that was typed.

    Raises:
        NoModel: there are no more.
    """
    sys.stdout.write(prompt)
    sys.stdout.flush()
    with _interruptible():
        line = sys.stdin.readline()
    if not line:
        print()
        raise NoModel
    return line.strip()
