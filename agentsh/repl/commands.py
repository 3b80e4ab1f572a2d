"""The table of slash commands, and finding one in what was typed."""

import asyncio
import contextlib
import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import NamedTuple, cast

from agentsh.base.errors import UsageProblem
from agentsh.engine.session import Session
from agentsh.repl.backend import Backend
from agentsh.repl.rows import Row
from agentsh.repl.terminal import Onward, ReplIO


class Command(NamedTuple):
    """target: `module:function`, loaded when it is used. usage: its arguments. summary: one line for /help.

    works: it may take its time, as a turn does: what is typed meanwhile waits, and Esc interrupts. alone: it does not
    go beside a turn.
    """

    target: str
    usage: str
    summary: str
    works: bool = False
    alone: bool = False


COMMANDS = {
    "help": Command("agentsh.repl.slash.help:run", "[keys]", "what can be typed here"),
    "status": Command("agentsh.repl.slash.status:run", "", "session, model, mode, workspace, tokens and cost"),
    "context": Command("agentsh.repl.slash.context:run", "", "what the model was sent: how full, and what of it"),
    "model": Command("agentsh.repl.slash.model:run", "[NAME]", "show or change the model"),
    "mode": Command("agentsh.repl.slash.mode:run", "[NAME]", "show or change when you are asked"),
    "cost": Command("agentsh.repl.slash.cost:run", "", "tokens and cost so far"),
    "tools": Command("agentsh.repl.slash.tools:run", "", "what the model is offered"),
    "rename": Command("agentsh.repl.slash.rename:run", "[TITLE]", "show the title, or give another"),
    "tag": Command("agentsh.repl.slash.tag:run", "[NAME] [-NAME]", "show, add or take away tags"),
    "compact": Command(
        "agentsh.repl.slash.compact:run",
        "[WISHES | undo]",
        "replace older turns by a summary in the context",
        works=True,
        alone=True,
    ),
    "rewind": Command(
        "agentsh.repl.slash.rewind:run", "[N [files|talk]]", "choose a turn; go back to before it, files too"
    ),
    "redo": Command("agentsh.repl.slash.redo:run", "", "undo the last rewind"),
    "fork": Command("agentsh.repl.slash.fork:run", "[EVENT]", "a new session from here, or from an event"),
    "sessions": Command("agentsh.repl.slash.sessions:run", "", "choose another session, and go on with it"),
    "resume": Command("agentsh.repl.slash.resume:run", "[ID]", "go on with another session"),
    "clear": Command("agentsh.repl.slash.clear:run", "", "a new session; this one is kept"),
    "diff": Command("agentsh.repl.slash.diff:run", "", "what the session has changed"),
    "apply": Command("agentsh.repl.slash.apply:run", "[check]", "bring the changes back to where they came from"),
    "export": Command("agentsh.repl.slash.export:run", "[md|html|jsonl] [FILE]", "write the session to a file"),
    "replay": Command("agentsh.repl.slash.replay:run", "", "the newest turns again"),
    "copy": Command("agentsh.repl.slash.copy:run", "[code [N]]", "the last answer, or its code, to the clipboard"),
    "reasoning": Command("agentsh.repl.slash.reasoning:run", "", "what the model thought before it answered last"),
    "output": Command("agentsh.repl.slash.output:run", "[N]", "all that the newest call or command printed"),
    "btw": Command("agentsh.repl.slash.btw:run", "QUESTION", "ask aside: it stays out of the context", True),
    "permissions": Command("agentsh.repl.slash.permissions:run", "", "the rules in force, and what you allowed"),
    "config": Command("agentsh.repl.slash.config:run", "[WORDS]", "the settings in force, and where they are from"),
    "theme": Command("agentsh.repl.slash.theme:run", "[NAME]", "the colours: auto, light, dark or plain"),
    "todo": Command("agentsh.repl.slash.todo:run", "", "the todo list as it stands"),
    "jobs": Command("agentsh.repl.slash.jobs:run", "[kill ID]", "what runs in the background; end one"),
    "doctor": Command("agentsh.repl.slash.doctor:run", "", "look for what is wrong around agentsh"),
    "feedback-bundle": Command(
        "agentsh.repl.slash.feedback_bundle:run", "[FILE]", "a file for a bug report, without what was said"
    ),
    "private": Command("agentsh.repl.slash.private:run", "[on|off]", "keep what you type out of the history"),
    "exit": Command("agentsh.repl.slash.exit:run", "", "leave; the session is kept"),
}


TIDYING_S = 2.0
"""How long a command waits for what follows the end of a turn: a snapshot, a checkpoint."""


def turn_runs(session: Session) -> bool:
    """Whether a turn or a command of the user's runs; a session that is busy without tidies up behind one."""
    return session.state.turn is not None or session.state.command is not None


@dataclass(frozen=True, slots=True)
class SlashContext:
    """What a command works on."""

    session: Session
    io: ReplIO

    @property
    def backend(self) -> Backend:
        """What the application offers.

        Raises:
            UsageProblem: nothing, where the loop runs by itself.
        """
        if self.io.backend is None:
            hint = f"`agentsh resume {self.session.state.id}` has it"
            raise UsageProblem("this needs the application around the loop, which is not there", hint=hint)
        return self.io.backend

    async def at_rest(self, what: str) -> None:
        """Refuse what must not happen beside a turn; one that has just ended may still be tidying up.

        Raises:
            UsageProblem: one is running.
        """
        if self.session.busy and not turn_runs(self.session):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.session.idle(), TIDYING_S)
        if self.session.busy:
            raise UsageProblem(f"a turn is running, and {what} waits for its end", hint="Esc interrupts it")


@dataclass(frozen=True, slots=True)
class SlashOutcome:
    """What a command came to. rows: shown above the next prompt, and gone after it. leave: end the loop.

    interrupted: the user stopped it. draft: put into the input, to be edited and sent again. page: rows that are laid
    out already, shown below `rows`. send: a message, sent as if it had been typed. onward: the session to go on with;
    this one is closed first.
    """

    rows: list[str] = field(default_factory=list)
    leave: bool = False
    interrupted: bool = False
    draft: str = ""
    page: Sequence[Row] = ()
    send: str = ""
    onward: Onward | None = None


Slash = Callable[[SlashContext, str], Awaitable[SlashOutcome]]


def find(text: str) -> tuple[str, str] | None:
    """Return name and argument where a text is a command. A path such as `/etc/hosts` is none."""
    text = text.strip()
    if not text.startswith("/") or "\n" in text:
        return None
    name, _, argument = text[1:].partition(" ")
    return None if "/" in name else (name.lower(), argument.strip())


class OwnCommand(NamedTuple):
    """A command of the user's for the workspace. joins: the model is told of it."""

    command: str
    joins: bool


def own_command(text: str) -> OwnCommand | None:
    """Return what `!command` or `!!command` asks for; a text with a space before the mark is a message.

    Only for what somebody has typed: a text from elsewhere is no command, whatever it begins with.
    """
    if not text.startswith("!"):
        return None
    joins = not text.startswith("!!")
    command = text[1 if joins else 2 :].strip()
    return OwnCommand(command, joins) if command else None


def as_message(text: str) -> str:
    """Return a message as it can be typed, so that it is no command."""
    return text if own_command(text) is None else " " + text


def filled_in(text: str, argument: str) -> str:
    """Return the text of a custom command with its arguments: `$ARGUMENTS` all, `$1` to `$9` one each.

    Where it names none of them, they go behind it. One pass: arguments are never looked into.
    """
    words = argument.split()

    def value(match: re.Match[str]) -> str:
        if match[1] == "ARGUMENTS":
            return argument
        n = int(match[1]) - 1
        return words[n] if n < len(words) else ""

    filled, named = _ARGUMENT.subn(value, text)
    return filled.strip() if named or not argument else f"{filled.strip()}\n\n{argument}"


_ELSEWHERE = {
    "undo": "rewind", "quit": "exit", "q": "exit", "new": "clear", "reset": "clear", "ls": "sessions",
    "history": "sessions", "continue": "resume", "branch": "fork", "save": "export", "settings": "config",
    "usage": "cost", "commands": "help", "keys": "help", "bug": "feedback-bundle",
}  # fmt: skip
"""What other programs call what is here: letters alone would lead astray (`undo` to `todo`)."""
_ARGUMENT = re.compile(r"\$(ARGUMENTS|[1-9](?![0-9]))")


def works(name: str) -> bool:
    """Tell whether a command may take its time."""
    return name in COMMANDS and COMMANDS[name].works


def alone(name: str) -> bool:
    """Tell whether a command does not go beside a turn."""
    return name in COMMANDS and COMMANDS[name].alone


async def run(name: str, argument: str, context: SlashContext) -> SlashOutcome:
    """Run a command; an unknown name gives the nearest one.

    Raises:
        UsageProblem: its argument is none that it takes, or it cannot be done now.
    """
    command = COMMANDS.get(name)
    if command is None:
        own = (await asyncio.to_thread(context.io.custom)).get(name)
        if own is not None:
            return SlashOutcome(send=filled_in(own.text, argument))
        if name == "steer":
            return SlashOutcome(["there is no /steer here: Ctrl-S sends what is typed into the running turn"])
        near = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, COMMANDS, 1, 0.6)
        return SlashOutcome([f"there is no /{name}; " + (f"did you mean /{near[0]}?" if near else "see /help")])
    if argument and not command.usage:
        raise UsageProblem(f"/{name} takes no argument", hint=f"/{name} alone")
    module, _, function = command.target.partition(":")
    slash = cast("Slash", getattr(import_module(module), function))
    return await slash(context, argument)
