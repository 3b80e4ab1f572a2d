"""The table of slash commands, and finding one in what was typed."""

import difflib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import NamedTuple, cast

from agentsh.engine.session import Session
from agentsh.repl.terminal import ReplIO


class Command(NamedTuple):
    """target: `module:function`, loaded when it is used. usage: its arguments. summary: one line for /help.

    works: it may take its time, as a turn does: what is typed meanwhile waits, and Esc interrupts.
    """

    target: str
    usage: str
    summary: str
    works: bool = False


COMMANDS = {
    "help": Command("agentsh.repl.slash.help:run", "", "what can be typed here"),
    "status": Command("agentsh.repl.slash.status:run", "", "session, model, mode, workspace, tokens and cost"),
    "context": Command("agentsh.repl.slash.context:run", "", "what the model was sent: how full, and what of it"),
    "model": Command("agentsh.repl.slash.model:run", "[NAME]", "show or change the model"),
    "mode": Command("agentsh.repl.slash.mode:run", "[NAME]", "show or change when you are asked"),
    "cost": Command("agentsh.repl.slash.cost:run", "", "tokens and cost so far"),
    "tools": Command("agentsh.repl.slash.tools:run", "", "what the model is offered"),
    "rename": Command("agentsh.repl.slash.rename:run", "[TITLE]", "show the title, or give another"),
    "tag": Command("agentsh.repl.slash.tag:run", "[NAME] [-NAME]", "show, add or take away tags"),
    "compact": Command(
        "agentsh.repl.slash.compact:run", "[WISHES | undo]", "replace older turns by a summary in the context", True
    ),
    "rewind": Command(
        "agentsh.repl.slash.rewind:run", "[N [files|talk]]", "the turns so far; go back to before turn N"
    ),
    "redo": Command("agentsh.repl.slash.redo:run", "", "undo the last rewind"),
    "fork": Command("agentsh.repl.slash.fork:run", "[EVENT]", "a new session from here, or from an event"),
    "exit": Command("agentsh.repl.slash.exit:run", "", "leave; the session is kept"),
}


@dataclass(frozen=True, slots=True)
class SlashContext:
    """What a command works on."""

    session: Session
    io: ReplIO


@dataclass(frozen=True, slots=True)
class SlashOutcome:
    """What a command came to. rows: shown above the next prompt, and gone after it. leave: end the loop.

    interrupted: the user stopped it. draft: put into the input, to be edited and sent again.
    """

    rows: list[str] = field(default_factory=list)
    leave: bool = False
    interrupted: bool = False
    draft: str = ""


Slash = Callable[[SlashContext, str], Awaitable[SlashOutcome]]


def find(text: str) -> tuple[str, str] | None:
    """Return name and argument where a text is a command. A path such as `/etc/hosts` is none."""
    text = text.strip()
    if not text.startswith("/") or "\n" in text:
        return None
    name, _, argument = text[1:].partition(" ")
    return None if "/" in name else (name.lower(), argument.strip())


def works(name: str) -> bool:
    """Tell whether a command may take its time."""
    return name in COMMANDS and COMMANDS[name].works


async def run(name: str, argument: str, context: SlashContext) -> SlashOutcome:
    """Run a command; an unknown name gives the nearest one."""
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, 1, 0.5)
        return SlashOutcome([f"there is no /{name}; " + (f"did you mean /{near[0]}?" if near else "see /help")])
    module, _, function = command.target.partition(":")
    slash = cast("Slash", getattr(import_module(module), function))
    return await slash(context, argument)
