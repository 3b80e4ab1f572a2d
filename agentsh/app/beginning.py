"""The first event of a session whose log has lost it, put together from whatever else knows of the session.

Without it a session has no title, no model and no directory. Asked are, in this order: the newest checkpoint that
this version can read, what is left of the log, the list's row about the log as it was, and the workspace.
Loads pydantic, so only where it is needed.
"""

import json
import os
from pathlib import Path
from typing import Any

from agentsh.app.paths import Home
from agentsh.app.stores import event_store
from agentsh.context.state import SessionState
from agentsh.context.state_codec import decode_state, reducer
from agentsh.events.codec import encode
from agentsh.events.session import SessionInit, WorkspaceOrigin
from agentsh.events.summary import summarise
from agentsh.events.upcast import upcast
from agentsh.log.checkpoint import checkpoint_seqs, read_checkpoint
from agentsh.log.files import RealFiles
from agentsh.log.record import Draft
from agentsh.stores.index import SummaryIndex

_MODES = ("ask", "auto", "plan", "yolo")
_KINDS = ("git", "copy", "empty", "in-place")


def beginning(home: Home, session: str, ts: str) -> Draft:
    """Return the draft of a `session_init`. ts: its time."""
    state = _saved(str(home.sessions / session), session)
    init = _from_state(session, state) if state is not None else _from_summary(home, session)
    return encode(init, ts=ts)


def _saved(directory: str, session: str) -> SessionState | None:
    """Return the state of the newest checkpoint that was made by this version."""
    files = RealFiles()
    for seq in checkpoint_seqs(files, directory):
        found = read_checkpoint(files, directory, seq)
        if found is not None and (found.session, found.reducer) == (session, reducer()):
            try:
                state = decode_state(found.state)
            except ValueError:
                continue
            if state.id == session and state.workspace is not None:
                return state
    return None


def _from_state(session: str, state: SessionState) -> SessionInit:
    assert state.workspace is not None
    workspace = state.workspace
    if state.workspace_path is not None and state.workspace_path != workspace.path:
        workspace = workspace.model_copy(update={"path": state.workspace_path})
    return SessionInit(
        id=session, title=state.title, cwd=state.cwd, project=state.project, model=state.model, mode=state.mode,
        workspace=workspace,
    )  # fmt: skip


def _from_summary(home: Home, session: str) -> SessionInit:
    left, known = summarise(event_store(home).read(session)), _remembered(home, session)

    def text(name: str) -> str | None:
        found = left.get(name) if left.get(name) is not None else known.get(name)
        return found if isinstance(found, str) else None

    own, kind, mode, title = home.workspaces / session, text("workspace"), text("mode"), known.get("title")
    origin, path = text("origin"), text("workspace_path")
    workspace = WorkspaceOrigin.model_validate(
        {"kind": kind if kind in _KINDS else _kind(own), "origin": origin, "base": None}
        | ({} if path is None else {"path": path})
    )
    return SessionInit.model_validate({
        "id": session, "title": title if isinstance(title, str) else None, "cwd": text("cwd") or origin or str(own),
        "project": text("project"), "model": text("model") or _replied(home, session),
        "mode": mode if mode in _MODES else "ask", "workspace": workspace,
    })  # fmt: skip


def _replied(home: Home, session: str) -> str:
    """Return the model of the newest reply, empty where none is left."""
    for record in event_store(home).newest(session):
        if record.type == "agent_message":
            model = upcast(record.type, record.payload).get("model")
            if isinstance(model, str) and model:
                return model
    return ""


def _remembered(home: Home, session: str) -> dict[str, Any]:
    """Return the row of the list, which may have been made when the log was whole."""
    _, text = SummaryIndex(home.index_file).get_many([session]).get(session, ("", ""))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _kind(workspace: Path) -> str:
    """Return what a workspace looks like that nothing tells of."""
    if os.path.lexists(workspace / ".git"):
        return "git"
    return "copy" if workspace.is_dir() and any(workspace.iterdir()) else "empty"
