"""Where `agentsh` starts: the hot commands are answered here, before any framework is imported (ADR 0002)."""

import gc
import os
import signal
import sys

COMMANDS = frozenset((
    "new", "resume", "replay", "show", "search", "context", "verify", "repair", "doctor",
    "init", "trust", "diff", "apply", "rewind", "fork", "push", "pull", "pin", "archive",
    "unarchive", "rm", "restore", "gc", "rename", "tag", "ls", "completion",
))  # fmt: skip
"""All there are, known without the framework."""


def main() -> None:
    """Run the command line and exit with its code."""
    # Until `guarded` takes over, Ctrl-C ends the process as it ends any other: without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _fill_closed_streams()
    if "_AGENTSH_COMPLETE" in os.environ:
        from agentsh.cli import completion
        from agentsh.cli.main import app

        sys.exit(completion.answer(app))
    argv = sys.argv[1:]
    if argv in (["--version"], ["version"]):
        from agentsh import __version__

        print(f"agentsh {__version__}")
        return
    argv = _meant(argv)
    code = _held(argv[1:]) if argv[:1] == ["resume"] else None
    if code is None:
        code = _hot(argv)
    if code is None:
        from agentsh.cli.main import run

        code = run(argv)
    gc.freeze()  # else the interpreter looks through all of it for garbage at its end: a twentieth of a turn
    sys.exit(code)


def _meant(argv: list[str]) -> list[str]:
    """Return the words with their command in front: bare options are those of `new`, and `help X` is `X --help`."""
    if argv[:1] == ["help"]:
        return [*argv[1:2], "--help"]
    if not argv or not argv[0].startswith("-") or argv[0] in ("-h", "--help", "--version"):
        return argv
    from agentsh.cli import hot, sessions

    values = hot.parse(sessions.NEW, argv)
    if values["prompt"] in COMMANDS if values else not COMMANDS.isdisjoint(argv):
        return argv  # `agentsh --model demo ls`: not a prompt that says ls; the parser complains
    return ["new", *argv]


def _hot(argv: list[str]) -> int | None:
    """Return the exit code of a hot command, or None where typer has to deal with the words."""
    from agentsh.cli import hot

    name, words = (argv[0], argv[1:]) if argv else ("new", [])
    if name == "ls":
        from agentsh.cli import ls
        from agentsh.cli.guard import guarded

        values = hot.parse(ls.COMMAND, words)
        return None if values is None else guarded(lambda: ls.run(values))
    if name not in ("new", "resume"):
        return None
    from agentsh.cli import sessions

    command, run = (sessions.NEW, sessions.new) if name == "new" else (sessions.RESUME, sessions.resume)
    parsed = hot.parse(command, words)
    return None if parsed is None else run(parsed)


def _held(argv: list[str]) -> int | None:
    """Return the exit code where another process has the session to resume, else None."""
    from agentsh.base.errors import SessionHeld
    from agentsh.cli.guard import complain
    from agentsh.cli.held import refuse_at_once

    try:
        refuse_at_once(argv)
    except SessionHeld as held:
        complain(held)
        return held.exit_code
    return None


def _fill_closed_streams() -> None:
    """Put /dev/null where a caller closed a standard stream: else the next file, a log, would get its number."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            setattr(sys, name, os.fdopen(fd, "w" if fd else "r", encoding="utf-8", closefd=False))
