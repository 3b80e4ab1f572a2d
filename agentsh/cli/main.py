"""The typer command line: signatures and help only; the bodies import lazily."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from agentsh.cli import branching, hot, keeping, ls, sessions, usage
from agentsh.cli.completion import ids
from agentsh.cli.guard import INTERRUPTED, guarded

app = typer.Typer(
    name="agentsh",
    help="The terminal coding-agent shell that never forgets. Without a command: `agentsh new`.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": usage.MAX_COLUMNS},
)


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
    md = "md"
    html = "html"


class Shell(StrEnum):
    """What `completion` knows."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


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
        _exit(sessions.new(hot.defaults(sessions.NEW)))


def _exit(code: int) -> None:
    raise typer.Exit(code)


def _add(command: hot.Command, run: Callable[[dict[str, Any]], int]) -> None:
    app.command(command.name)(hot.typer_function(command, lambda values: _exit(run(values))))


_add(sessions.NEW, sessions.new)
_add(sessions.RESUME, sessions.resume)
_add(ls.COMMAND, lambda values: guarded(lambda: ls.run(values)))


@app.command()
def replay(
    session: Annotated[
        str | None, typer.Argument(metavar="ID", autocompletion=ids, help="An id, a part of one, or a title.")
    ] = None,
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
    full: Annotated[bool, typer.Option("--full", help="All that tools and commands printed.")] = False,
    format_: Annotated[ReplayFormat, typer.Option("--format", help="How.")] = ReplayFormat.screen,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a new file.")] = None,
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
        full=full,
        format="json" if json else format_.value,
        output=output,
    )
    raise typer.Exit(guarded(lambda: command.run(options)))


@app.command()
def show(
    session: Annotated[
        str | None, typer.Argument(metavar="ID", autocompletion=ids, help="An id, a part of one, or a title.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest session.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Tell all that is known of a session."""
    from agentsh.cli import show as command

    raise typer.Exit(guarded(lambda: command.run(session, last=last, as_json=json)))


@app.command()
def search(
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="Words, as they stand there; case is all one.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Find sessions by what was said in them, newest first. Exit 1 where there is none."""
    from agentsh.cli import search as command

    raise typer.Exit(guarded(lambda: command.run(text, as_json=json)))


@app.command()
def context(
    session: Annotated[
        str | None, typer.Argument(metavar="ID", autocompletion=ids, help="An id, a part of one, or a title.")
    ] = None,
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
    """Show what the model was sent, rebuilt from the log. What was kept, pruned, summarised, and why."""
    from agentsh.cli import context as command

    raise typer.Exit(
        guarded(lambda: command.run(session, last=last, at=at, format=format_.value, diff=diff, as_json=json))
    )


@app.command()
def verify(
    sessions: Annotated[
        list[str] | None, typer.Argument(metavar="ID", autocompletion=ids, help="Ids, or parts of ids.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every session.")] = False,
    incremental: Annotated[bool, typer.Option("--incremental", help="Only what no earlier pass covered.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, max=256, help="Processes; by default one per core.")
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
    session: Annotated[
        str, typer.Argument(metavar="ID", autocompletion=ids, help="An id, a part of one, or a title.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Write a damaged log anew from what reads. The original is kept in its quarantine/."""
    from agentsh.cli import repair as command

    raise typer.Exit(guarded(lambda: command.run(session, yes=yes)))


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="One JSON object per finding.")] = False,
) -> None:
    """Say what is wrong here, and what to do. Looks at the machine, the homes, every session and the models."""
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
    """Trust a home that came with a project. Its configuration is obeyed, and new sessions go there."""
    from agentsh.cli import homes as command

    raise typer.Exit(guarded(lambda: command.trust(directory)))


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]) -> None:
    """Print what makes Tab complete commands, options and ids. For bash: eval "$(agentsh completion bash)"."""
    from agentsh.cli import completion as command

    raise typer.Exit(guarded(lambda: command.run(shell.value)))


branching.register(app)
keeping.register(app)

for command in app.registered_commands:
    command.cls = usage.Command


def run(argv: list[str]) -> int:
    """Parse and run; return the exit code."""
    wrong: Any = typer.BadParameter.__mro__[1]  # what all usage errors are; typer does not name it
    try:
        code = app(argv, prog_name="agentsh", standalone_mode=False)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0 if done.code is None else 1
    except typer.Abort:
        return INTERRUPTED
    except wrong as error:
        from agentsh.cli import misuse

        return misuse.tell(error, argv)
    return code if isinstance(code, int) else 0
