"""The typer command line: signatures and help only; the bodies import lazily."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agentsh.cli import branching, hot, keeping, ls
from agentsh.cli.guard import guarded
from agentsh.cli.options import RunOptions

app = typer.Typer(
    name="agentsh",
    help="The terminal coding-agent shell that never forgets. Without a command: `agentsh new`.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ModeName(StrEnum):
    """Approval modes."""

    ask = "ask"
    auto = "auto"
    plan = "plan"
    yolo = "yolo"


class ContextFormat(StrEnum):
    """What `context` can write."""

    table = "table"
    json = "json"
    request = "request"


class ReplayFormat(StrEnum):
    """What `replay` can write."""

    screen = "screen"
    text = "text"
    json = "json"


Model = Annotated[
    str | None, typer.Option("--model", "-m", help="A profile of agentsh.toml, a model's name, or demo.")
]
Mode = Annotated[
    ModeName | None,
    typer.Option("--mode", help="ask: before effects; auto: edits run, commands ask; plan: read-only; yolo: never."),
]
Print = Annotated[bool, typer.Option("-p", "--print", help="No terminal: print the final answer only.")]
Json = Annotated[bool, typer.Option("--json", help="Print each event as its line in the log; implies -p.")]
MaxSteps = Annotated[
    int | None, typer.Option("--max-steps", "--max-turns", min=1, help="Model calls at most for one prompt.")
]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0.0, help="US dollars at most for one prompt.")]
Budget = Annotated[int | None, typer.Option("--budget", min=2000, help="Tokens at most for a request.")]


def _version(value: bool) -> None:
    if value:
        from agentsh import __version__

        typer.echo(f"agentsh {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _agentsh(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        new()


@app.command()
def new(
    prompt: Annotated[str | None, typer.Argument(help="What to do; `-` or a pipe reads it from stdin.")] = None,
    from_: Annotated[Path | None, typer.Option("--from", help="Copy the workspace from here.")] = None,
    empty: Annotated[bool, typer.Option("--empty", help="Start in an empty workspace.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Work in the current directory itself.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="A title for the session.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.")] = None,
    model: Model = None,
    mode: Mode = None,
    print_: Print = False,
    json: Json = False,
    max_steps: MaxSteps = None,
    max_cost: MaxCost = None,
    budget: Budget = None,
) -> None:
    """Start a session in a workspace of its own."""
    from agentsh.cli import new as command

    run = RunOptions(prompt, model, mode.value if mode else None, print_, json, max_steps, max_cost, budget)
    options = command.NewOptions(run, from_, empty, in_place, name, tuple(tag or ()))
    raise typer.Exit(guarded(lambda: command.run(options)))


@app.command()
def resume(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="An id, a part of one, or a title.")] = None,
    prompt: Annotated[str | None, typer.Argument(help="What to do next.")] = None,
    last: Annotated[
        bool, typer.Option("--last", help="The newest session; then the first word is the prompt.")
    ] = False,
    model: Model = None,
    mode: Mode = None,
    directory: Annotated[Path | None, typer.Option("--dir", help="Where the workspace is now.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show it, change nothing.")] = False,
    budget: Budget = None,
    print_: Print = False,
    json: Json = False,
    max_steps: MaxSteps = None,
    max_cost: MaxCost = None,
) -> None:
    """Go on with a session."""
    from agentsh.cli import resume as command

    run = RunOptions(prompt, model, mode.value if mode else None, print_, json, max_steps, max_cost, budget)
    options = command.ResumeOptions(run, session, last, directory, read_only)
    raise typer.Exit(guarded(lambda: command.run(options)))


@app.command()
def replay(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="An id, a part of one, or a title.")] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest session.")] = False,
    speed: Annotated[
        float | None, typer.Option("--speed", min=0.01, help="Play it, this many times as fast.")
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter before each event that shows.")] = False,
    from_: Annotated[int, typer.Option("--from", min=1, help="The first event (seq).")] = 1,
    to: Annotated[int | None, typer.Option("--to", min=1, help="The last event (seq).")] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Only events of this type; may be repeated.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Keep showing what is added.")] = False,
    format_: Annotated[ReplayFormat, typer.Option("--format", help="How.")] = ReplayFormat.screen,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a file.")] = None,
) -> None:
    """Show a session again, as it was seen."""
    from agentsh.cli import replay as command

    options = command.ReplayOptions(
        session=session,
        last=last,
        speed=speed,
        step=step,
        from_seq=from_,
        to_seq=to,
        types=tuple(type_ or ()),
        follow=follow,
        format="json" if json else format_.value,
        output=output,
    )
    raise typer.Exit(guarded(lambda: command.run(options)))


@app.command()
def show(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="An id, a part of one, or a title.")] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest session.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Tell all that is known of a session."""
    from agentsh.cli import show as command

    raise typer.Exit(guarded(lambda: command.run(session, last=last, as_json=json)))


@app.command()
def context(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="An id, a part of one, or a title.")] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest session.")] = False,
    at: Annotated[
        int | None, typer.Option("--at", min=1, help="The request that was sent at or before this event (seq).")
    ] = None,
    format_: Annotated[
        ContextFormat, typer.Option("--format", help="request: the exact bytes of the body.")
    ] = ContextFormat.table,
    diff: Annotated[int | None, typer.Option("--diff", min=1, help="What is not as in the request of then.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Show what the model was sent, rebuilt from the log: what was kept, pruned, summarised, and why."""
    from agentsh.cli import context as command

    raise typer.Exit(
        guarded(lambda: command.run(session, last=last, at=at, format=format_.value, diff=diff, as_json=json))
    )


@app.command()
def verify(
    sessions: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids, or parts of ids.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every session.")] = False,
    incremental: Annotated[bool, typer.Option("--incremental", help="Only what no earlier pass covered.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default one per core.")
    ] = None,
    no_blobs: Annotated[bool, typer.Option("--no-blobs", help="Leave out the long texts that events name.")] = False,
    contexts: Annotated[
        bool, typer.Option("--contexts", help="Also build every request again and compare its hash.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per session.")] = False,
) -> None:
    """Re-read sessions and say of each whether it is whole. Exit 1 where damage was found."""
    from agentsh.cli import verify as command

    raise typer.Exit(
        guarded(
            lambda: command.run(
                sessions or [],
                everything=all_,
                incremental=incremental,
                jobs=jobs,
                blobs=not no_blobs,
                contexts=contexts,
                as_json=json,
            )
        )
    )


@app.command()
def repair(
    session: Annotated[str, typer.Argument(metavar="ID", help="An id, a part of one, or a title.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Write a damaged log anew from what reads, and keep the original in its quarantine/."""
    from agentsh.cli import repair as command

    raise typer.Exit(guarded(lambda: command.run(session, yes=yes)))


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="One JSON object per finding.")] = False,
) -> None:
    """Look at the machine, the homes, every session and the models, and say what to do."""
    from agentsh.cli import doctor as command

    raise typer.Exit(guarded(lambda: command.run(as_json=json)))


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="Where.")] = Path("."),
) -> None:
    """Make a directory a home for sessions."""
    from agentsh.cli import homes as command

    raise typer.Exit(guarded(lambda: command.init(directory)))


@app.command()
def trust(
    directory: Annotated[
        Path | None, typer.Argument(help="A home; the one around this directory by default.")
    ] = None,
) -> None:
    """Trust a home that came with a project: its configuration, and writing sessions to it."""
    from agentsh.cli import homes as command

    raise typer.Exit(guarded(lambda: command.trust(directory)))


branching.register(app)
keeping.register(app)


def _exit(code: int) -> None:
    raise typer.Exit(code)


app.command(ls.COMMAND.name)(hot.typer_function(ls.COMMAND, lambda values: _exit(guarded(lambda: ls.run(values)))))


def run(argv: list[str]) -> int:
    """Parse and run; return the exit code."""
    try:
        app(argv, standalone_mode=True)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0 if done.code is None else 1
    return 0
