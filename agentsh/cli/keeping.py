"""The part of the typer command line that keeps, moves and removes sessions: signatures and help only."""

from pathlib import Path
from typing import Annotated

import typer

from agentsh.cli.completion import ids
from agentsh.cli.guard import guarded

Id = Annotated[str, typer.Argument(metavar="ID", autocompletion=ids, help="An id, a part of one, or a title.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID", autocompletion=ids, help="Ids, parts of ids, or titles.")]


def push(
    sessions: Annotated[
        list[str] | None, typer.Argument(metavar="ID", autocompletion=ids, help="Ids, or parts of ids.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every session.")] = False,
    to: Annotated[str | None, typer.Option("--to", help="Where, instead of [checkpoint] upload.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Also where the copy there is another one.")] = False,
    outbox: Annotated[bool, typer.Option("--outbox", hidden=True)] = False,
) -> None:
    """Bring sessions to object storage, and wait for it. What is there already is not sent again."""
    from agentsh.cli import push as command

    if outbox and sessions:
        raise typer.Exit(guarded(lambda: command.outbox(sessions[0], to)))
    raise typer.Exit(guarded(lambda: command.run(sessions or [], everything=all_, to=to, replace=replace)))


def pull(
    session: Annotated[str | None, typer.Argument(metavar="ID", help="An id, or a part of one.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="Where, instead of [checkpoint] upload.")] = None,
    home: Annotated[Path | None, typer.Option("--home", help="The home to restore to.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Say what is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --list: one JSON object per line.")] = False,
) -> None:
    """Restore a session from object storage. Every hash is checked before anything is put in place."""
    from agentsh.cli import pull as command

    raise typer.Exit(
        guarded(lambda: command.run(session, source=source, directory=home, listing=list_, as_json=json))
    )


def archive(sessions: Ids) -> None:
    """Pack the logs of sessions. Everything still reads them, and `resume` unpacks."""
    from agentsh.cli import archive as command

    raise typer.Exit(guarded(lambda: command.archive(sessions)))


def unarchive(sessions: Ids) -> None:
    """Unpack archived sessions."""
    from agentsh.cli import archive as command

    raise typer.Exit(guarded(lambda: command.unarchive(sessions)))


def pin(
    session: Id,
    list_: Annotated[bool, typer.Option("--list", help="Say which pins there are.")] = False,
    remove: Annotated[int | None, typer.Option("--remove", min=1, help="Let go the pin of this event (seq).")] = None,
    json: Annotated[bool, typer.Option("--json", help="With --list: one JSON object per line.")] = False,
) -> None:
    """Keep the log as it is now, whatever becomes of it. By hard link, at no cost."""
    from agentsh.cli import pin as command

    raise typer.Exit(guarded(lambda: command.run(session, listing=list_, remove=remove, as_json=json)))


def rm(
    sessions: Ids,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    now: Annotated[bool, typer.Option("--now", help="For good, not to the trash: it takes no room.")] = False,
) -> None:
    """Move sessions to the trash, with their workspaces. Asks where a workspace holds something new."""
    from agentsh.cli import rm as command

    raise typer.Exit(guarded(lambda: command.rm(sessions, yes=yes, now=now)))


def restore(session: Annotated[str, typer.Argument(metavar="ID", help="An id, or a part of one.")]) -> None:
    """Take a session back from the trash."""
    from agentsh.cli import rm as command

    raise typer.Exit(guarded(lambda: command.restore(session)))


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    older_than: Annotated[int, typer.Option("--older-than", min=0, help="Days that the trash keeps.")] = 30,
) -> None:
    """Empty the trash of what is old, and remove unused long texts. Those that no session refers to."""
    from agentsh.cli import gc as command

    raise typer.Exit(guarded(lambda: command.run(dry_run=dry_run, older_than_days=older_than)))


def tag(
    session: Id,
    tags: Annotated[list[str] | None, typer.Argument(metavar="+TAG|-TAG", help="Put on, take off.")] = None,
) -> None:
    """Put tags on a session, take them off, or show them."""
    from agentsh.cli import tag as command

    raise typer.Exit(guarded(lambda: command.run(session, tags or [])))


def rename(session: Id, title: Annotated[list[str], typer.Argument(metavar="TITLE", help="Its new name.")]) -> None:
    """Give a session a title."""
    from agentsh.cli import rename as command

    raise typer.Exit(guarded(lambda: command.run(session, title)))


def register(app: typer.Typer) -> None:
    """Put the commands on the command line."""
    for function in (push, pull, pin, archive, unarchive, rm, restore, gc, rename):
        app.command()(function)
    app.command(context_settings={"ignore_unknown_options": True})(tag)  # so that -wip is a tag to take off
