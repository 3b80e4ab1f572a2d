"""`agentsh completion SHELL`: what a shell needs to complete commands, options and ids; and the answers to it."""

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

VARIABLE = "_AGENTSH_COMPLETE"
"""Set by the script when a shell asks what a word could become; typer's protocol, and so are its scripts."""
MOST = 50
"""Ids that are offered at most, the newest."""
_MEANING = dict.fromkeys(map(ord, "\\$`\"'[]"), " ")
"""What no title is shown with. typer has zsh evaluate it, where a backslash undoes the one that typer puts before a
dollar; and it reads marks of rich in it, where a `[/x]` ends all completion."""


def run(shell: str) -> int:
    """Print the script of `bash`, `zsh` or `fish`; return 0."""
    print(_typers().get_completion_script(prog_name="agentsh", complete_var=VARIABLE, shell=shell))
    return 0


def answer(app: "typer.Typer") -> int:
    """Print what the words in the environment could go on with; return the exit code. app: the command line.

    A shell shows what we say on stderr in the middle of the line that is typed: so nothing is said.
    """
    _typers().completion_init()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stderr = nowhere
        try:
            app(prog_name="agentsh")
        except SystemExit as done:
            return done.code if isinstance(done.code, int) else 0
        except Exception:  # noqa: BLE001 - no completion is better than a traceback in somebody's prompt
            return 1
        finally:
            sys.stderr = sys.__stderr__
    return 0


def _typers() -> Any:
    import typer.completion

    return typer.completion  # exports nothing by its own account


def ids(incomplete: str) -> list[tuple[str, str]]:
    """Return (id, title) of sessions whose ids begin with what was typed, newest first.

    Others' words and names, so that nothing in them means anything to a shell.
    """
    from agentsh.app.catalog import places, with_summaries
    from agentsh.app.paths import find_homes, here
    from agentsh.base.ids import is_session_id
    from agentsh.base.text import one_line

    there = (place for place in places(find_homes(here(), os.environ).read) if place.id.startswith(incomplete))
    found = [place for place in there if is_session_id(place.id)][:MOST]
    titles = (one_line(str(about.get("title") or "").translate(_MEANING), 60) for _, about in with_summaries(found))
    return [(place.id, title) for place, title in zip(found, titles, strict=True)]
