"""Where `agentsh` starts: the hot commands are answered here, before any framework is imported (ADR 0002)."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    argv = sys.argv[1:]
    if argv == ["--version"]:
        from agentsh import __version__

        print(f"agentsh {__version__}")
        return
    code = _ls(argv[1:]) if argv[:1] == ["ls"] else None
    if code is None:
        from agentsh.cli.main import run

        code = run(argv)
    sys.exit(code)


def _ls(argv: list[str]) -> int | None:
    """Return the exit code of `ls`, or None where typer has to deal with the words."""
    from agentsh.cli import hot, ls
    from agentsh.cli.guard import guarded

    values = hot.parse(ls.COMMAND, argv)
    return None if values is None else guarded(lambda: ls.run(values))
