"""Signatures of the commands that look at, take back, branch and take over what a session did."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agentsh.base.errors import UsageProblem
from agentsh.cli.completion import ids
from agentsh.cli.guard import guarded


class RewindWhat(StrEnum):
    """What a rewind takes back."""

    both = "both"
    files = "files"
    conversation = "conversation"


Id = Annotated[str | None, typer.Argument(metavar="ID", autocompletion=ids, help="An id, a part of one, or a title.")]
Last = Annotated[bool, typer.Option("--last", help="The newest session.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (diff, apply, rewind, fork):
        app.command()(command)


def _named(session: str | None, last: bool, command: str) -> str | None:
    """Return the session as it was named, None for the newest."""
    if session is None and not last:
        raise UsageProblem(
            "which session?", hint=f"`agentsh {command} ID`; `agentsh ls` lists them, --last is the newest"
        )
    if session is not None and last:
        raise UsageProblem("--last and an ID do not go together", hint="leave one of the two out")
    return session


def rewind(
    session: Id = None,
    last: Last = False,
    to: Annotated[int | None, typer.Option("--to", min=1, help="Back to right after this event (seq).")] = None,
    what: Annotated[RewindWhat, typer.Option("--what", help="What is taken back.")] = RewindWhat.both,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last rewind.")] = False,
    json: Json = False,
) -> None:
    """Take a session and its files back to an earlier event. Without --to, list the turns. Can be undone."""
    from agentsh.cli import rewind as command

    def body() -> int:
        return command.run(command.RewindOptions(_named(session, last, "rewind"), to, what.value, undo, json))

    raise typer.Exit(guarded(body))


def fork(
    session: Id = None,
    last: Last = False,
    at: Annotated[int | None, typer.Option("--at", min=1, help="Right after this event (seq); else now.")] = None,
    json: Json = False,
) -> None:
    """Make a new session from a moment of another. It has the files of that moment."""
    from agentsh.cli import fork as command

    raise typer.Exit(guarded(lambda: command.run(_named(session, last, "fork"), at=at, as_json=json)))


def diff(
    session: Id = None,
    last: Last = False,
    at: Annotated[int | None, typer.Option("--at", min=1, help="Up to this event (seq); else up to now.")] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Figures instead of lines.")] = False,
    json: Json = False,
) -> None:
    """Show what a session has changed. As a patch that git and patch(1) take."""
    from agentsh.cli import diff as command

    raise typer.Exit(guarded(lambda: command.run(_named(session, last, "diff"), at=at, stat=stat, as_json=json)))


def apply(
    session: Id = None,
    last: Last = False,
    to: Annotated[Path | None, typer.Option("--to", help="Where; else where the workspace came from.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only tell what would happen.")] = False,
    branch: Annotated[bool, typer.Option("--branch", help="As a branch agentsh/ID of the repository there.")] = False,
    json: Json = False,
) -> None:
    """Bring back what a session has changed. Nothing is overwritten that was changed there meanwhile. Exit 1 then."""
    from agentsh.cli import apply as command

    def body() -> int:
        return command.run(command.ApplyOptions(_named(session, last, "apply"), to, check, branch, json))

    raise typer.Exit(guarded(body))
