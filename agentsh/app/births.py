"""The first facts of a session: where it was born, and what its requests start with."""

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentsh.app.paths import project_name
from agentsh.app.settings import Choice
from agentsh.base.clock import SystemClock
from agentsh.context.system_prompt import system_prompt
from agentsh.events.base import BlobRef
from agentsh.events.session import EnvironmentChanged, Mode, SessionInit, WorkspaceOrigin
from agentsh.log.spill import reference
from agentsh.log.store import BlobStore
from agentsh.ports.tool import Tool

if TYPE_CHECKING:
    from agentsh.workspace.provision import Provisioned


def birth(session: str, choice: Choice, provisioned: "Provisioned", cwd: Path, mode: Mode) -> SessionInit:
    """Return the first event of a session."""
    return SessionInit(
        id=session,
        title=None,
        cwd=str(cwd),
        project=project_name(cwd),
        model=choice.model,
        mode=mode,
        workspace=origin_of(provisioned),
    )


def origin_of(provisioned: "Provisioned") -> WorkspaceOrigin:
    """Return what the log says of where a workspace came from."""
    origin = WorkspaceOrigin(kind=provisioned.kind, origin=provisioned.origin, base=provisioned.base)
    more = {} if provisioned.start is None else {"start": provisioned.start}
    if provisioned.kind == "in-place":
        more["path"] = str(provisioned.path)
    return origin.model_copy(update=more) if more else origin


def environment(
    blobs: BlobStore, offered: Mapping[str, Tool], choice: Choice, root: Path, origin: WorkspaceOrigin | None
) -> EnvironmentChanged:
    """Return what requests start with, as of today. origin: None where the log has lost it."""
    made_of = ""
    if origin is not None:
        made_of = {
            "copy": f" (a copy of {origin.origin})",
            "git": f" (a clone of {origin.origin}, on a branch of its own)",
        }.get(origin.kind, f" ({origin.kind})")
        if origin.start is not None:
            made_of += f"; commands start in {origin.start}, paths of files count from the top"
    prompt = system_prompt(
        workspace=str(root) + made_of,
        system=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        date=f"{SystemClock().now():%Y-%m-%d}",
    )
    return EnvironmentChanged(
        system_prompt=_as_blob(blobs, prompt),
        tools=_as_blob(blobs, tool_schemas(offered)),
        instructions=(),
        request=choice.request(),
    )


def tool_schemas(offered: Mapping[str, Tool]) -> str:
    """Return the neutral JSON list that environment_changed records."""
    specs = [tool.spec for tool in offered.values()]
    schemas = [{"name": s.name, "description": s.description, "parameters": s.parameters} for s in specs]
    return json.dumps(schemas, ensure_ascii=False, separators=(",", ":"))


def _as_blob(blobs: BlobStore, text: str) -> BlobRef:
    data = text.encode("utf-8", "surrogatepass")
    members: dict[str, Any] = reference(blobs.put(data), text, len(data))
    return BlobRef.model_validate(members)
