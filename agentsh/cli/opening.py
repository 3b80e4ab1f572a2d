"""Opening a session again, on whatever surrounds it. Imports little at the top."""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentsh.app.catalog import Place
from agentsh.cli.options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agentsh.app.build import Running
    from agentsh.app.plan import Plan
    from agentsh.app.settings import Settings
    from agentsh.cli.stage import Stage
    from agentsh.context.state import SessionState


def opening_of(
    place: Place, settings: "Settings", run_options: RunOptions, directory: Path | None = None
) -> "Callable[[Stage], Awaitable[Running]]":
    """Return what opens a session on a stage, as it was left but for what the options say."""
    from agentsh.app.build import resume_session
    from agentsh.app.choosing import for_resume
    from agentsh.app.plan import Plan
    from agentsh.app.sandboxes import choice, unsandboxed
    from agentsh.cli.copying import CopyProgress

    async def opening(stage: "Stage") -> "Running":
        async def plan_for(state: "SessionState") -> "Plan":
            pick = await for_resume(settings, os.environ, state, run_options.model)
            if pick.note:
                print(f"agentsh: {pick.note}", file=sys.stderr)
            mode = run_options.mode or state.mode
            in_place = state.workspace is not None and state.workspace.kind == "in-place"
            if said := unsandboxed(mode, *choice(settings), in_place=in_place):
                print(f"agentsh: {said}", file=sys.stderr)
            return Plan(place.home, settings, pick.choice, stage.screens, stage.limits, run_options.budget_tokens)

        try:
            with CopyProgress(sys.stderr, "restoring the workspace") as progress:
                return await resume_session(
                    place.home, place.id, settings, plan_for=plan_for, show=stage.show_past, directory=directory,
                    progress=progress.show,
                )  # fmt: skip
        finally:
            gc.freeze()
            gc.enable()

    return opening
