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
_PLAIN = str.maketrans({"\\": "/", "$": "＄", "`": "‘", "'": "’", '"': "”"})
"""For what zsh would evaluate: its `_arguments` does that with what stands in quotes, and typer leaves a backslash as
it is, so that one before `$(…)` in a title, which may be somebody else's, had Tab run that."""


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
    """Return (id, title) of sessions whose ids begin with what was typed, newest first."""
    from agentsh.app.catalog import places, with_summaries
    from agentsh.app.paths import find_homes, here
    from agentsh.base.text import one_line

    found = [place for place in places(find_homes(here(), os.environ).read) if place.id.startswith(incomplete)]
    titles = ((place.id, str(about.get("title") or "")) for place, about in with_summaries(found[:MOST]))
    return [(session, one_line(title, 60).translate(_PLAIN)) for session, title in titles]
