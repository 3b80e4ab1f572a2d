"""Signatures of the commands that look at, take back, branch and take over what a session did."""

from enum import StrEnum
from typing import Annotated

import typer

from agentsh.cli.guard import guarded


class RewindWhat(StrEnum):
    """What a rewind takes back."""

    both = "both"
    files = "files"
    conversation = "conversation"


Id = Annotated[str, typer.Argument(metavar="ID", help="An id, a part of one, or a title.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (rewind, fork):
        app.command()(command)


def rewind(
    session: Id,
    to: Annotated[int | None, typer.Option("--to", min=1, help="Back to right after this event (seq).")] = None,
    what: Annotated[RewindWhat, typer.Option("--what", help="What is taken back.")] = RewindWhat.both,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last rewind.")] = False,
    json: Json = False,
) -> None:
    """Take a session back to an earlier event, files included; without --to, list the turns. Can be undone."""
    from agentsh.cli import rewind as command

    options = command.RewindOptions(session, to, what.value, undo, json)
    raise typer.Exit(guarded(lambda: command.run(options)))


def fork(
    session: Id,
    at: Annotated[int | None, typer.Option("--at", min=1, help="Right after this event (seq); else now.")] = None,
    json: Json = False,
) -> None:
    """Make a new session that goes on from a moment of another, with the files of that moment."""
    from agentsh.cli import fork as command

    raise typer.Exit(guarded(lambda: command.run(session, at=at, as_json=json)))
