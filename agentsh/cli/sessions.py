"""The tables of `new` and `resume`, and what runs them: a session need not wait for a framework (ADR 0002)."""

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsh.cli.guard import guarded
from agentsh.cli.hot import Argument, Command, Option

if TYPE_CHECKING:
    from agentsh.cli.options import RunOptions

_MODEL = Option("model", ("--model", "-m"), "text", "A profile of agentsh.toml, a model's name, or demo.")
_MODE = Option(
    "mode",
    ("--mode",),
    "choice",
    "ask: before effects; auto: edits run, commands ask; plan: read-only; yolo: nothing asks.",
    choices=("ask", "auto", "plan", "yolo"),
)
_PRINT = Option("print_only", ("-p", "--print"), "flag", "No terminal: print the final answer only.", False)
_JSON = Option("json", ("--json",), "flag", "Print each event as its line in the log; implies -p.", False)
_STEPS = Option("max_steps", ("--max-steps", "--max-turns"), "count", "Model calls at most for one prompt.", least=1)
_COST = Option("max_cost", ("--max-cost",), "amount", "US dollars at most for one prompt.")
_PLAIN = Option(
    "plain",
    ("--plain",),
    "flag",
    "Line by line, nothing is drawn over: for screen readers, dumb terminals and pipes.",
    False,
)
_BUDGET = Option("budget", ("--budget",), "count", "Tokens at most for a request.", least=2000)
_IMAGE = Option("image", ("--image",), "text", "An image for the first message; may be repeated.", many=True)

NEW = Command(
    name="new",
    help="Start a session in a workspace of its own.",
    arguments=(Argument("prompt", "What to do; `-` or a pipe reads it from stdin.", "PROMPT"),),
    options=(
        Option("source", ("--from",), "path", "Copy the workspace from here."),
        Option("empty", ("--empty",), "flag", "Start in an empty workspace.", False),
        Option("in_place", ("--in-place",), "flag", "Work in the current directory itself.", False),
        Option("name", ("--name",), "text", "A title for the session."),
        Option("tag", ("--tag",), "text", "A tag; may be repeated.", many=True),
        _MODEL,
        _MODE,
        _PRINT,
        _JSON,
        _STEPS,
        _COST,
        _BUDGET,
        _IMAGE,
        _PLAIN,
    ),
)
RESUME = Command(
    name="resume",
    help="Go on with a session.",
    arguments=(
        Argument("session", "An id, a part of one, or a title.", "ID"),
        Argument("prompt", "What to do next.", "PROMPT"),
    ),
    options=(
        Option("last", ("--last",), "flag", "The newest session; then the first word is the prompt.", False),
        _MODEL,
        _MODE,
        Option("directory", ("--dir",), "path", "Where the workspace is now."),
        Option("read_only", ("--read-only",), "flag", "Show it, change nothing.", False),
        _BUDGET,
        _PRINT,
        _JSON,
        _STEPS,
        _COST,
        _IMAGE,
        _PLAIN,
    ),
)


def new(values: Mapping[str, Any]) -> int:
    """Run `agentsh new`; return the exit code. values: by the names of the table."""

    def run() -> int:
        from agentsh.cli import new as command

        v = values
        return command.run(
            command.NewOptions(_shared(v), v["source"], v["empty"], v["in_place"], v["name"], tuple(v["tag"]))
        )

    return _quickly(run)


def resume(values: Mapping[str, Any]) -> int:
    """Run `agentsh resume`; return the exit code. values: by the names of the table."""

    def run() -> int:
        from agentsh.cli import resume as command

        v = values
        return command.run(command.ResumeOptions(_shared(v), v["session"], v["last"], v["directory"], v["read_only"]))

    return _quickly(run)


def _shared(v: Mapping[str, Any]) -> "RunOptions":
    from agentsh.cli.options import RunOptions

    prompt, model, mode, images = v["prompt"], v["model"], v["mode"], tuple(map(Path, v["image"]))
    limits = v["max_steps"], v["max_cost"], v["budget"]
    return RunOptions(prompt, model, mode, v["print_only"], v["json"], *limits, images, v["plain"])


def _quickly(run: Callable[[], int]) -> int:
    """Run a session. Until it is open nothing is collected: none of what is loaded by then is garbage.

    Whoever opens it has to enable the collector again.
    """
    gc.disable()
    try:
        return guarded(run)
    finally:
        gc.enable()
