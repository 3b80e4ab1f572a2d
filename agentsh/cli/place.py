"""The id and the workspace of a session that is about to begin. Imports little at the top."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentsh.app.paths import Home, Homes

if TYPE_CHECKING:
    from agentsh.workspace.provision import Provisioned

Source: TypeAlias = Literal["auto", "from", "empty", "in-place"]
"""How a workspace is made; see `provision`."""


def workspace_of_new(home: Home, homes: Homes, choice: Source, source: Path) -> tuple[str, "Provisioned"]:
    """Find an id that is free, and make the workspace of a session that is about to begin.

    Raises:
        WorkspaceError: as `provision` says.
    """
    from agentsh.base.clock import SystemClock
    from agentsh.base.ids import new_session_id
    from agentsh.cli.copying import CopyProgress
    from agentsh.workspace.provision import provision

    while True:
        session = new_session_id(SystemClock().now())
        if not (home.sessions / session).exists() and not (home.workspaces / session).exists():
            break
    with CopyProgress(sys.stderr, "copying the workspace") as progress:
        return session, provision(
            home.workspaces / session,
            choice=choice,
            source=source,
            homes=[h.root for h in homes.read],
            progress=progress.show,
        )
