"""Homes with sessions made by hand: whole turns, without a model and without a process."""

import os
from pathlib import Path
from typing import Any

from agentsh.log.frame import encode_event, encode_header
from agentsh.log.record import Draft

TS = "2026-11-29T16:20:01.118204Z"
USAGE = {"prompt": 1000, "cached": 900, "completion": 50, "reasoning": 0}


def sid(n: int) -> str:
    return f"20261129-{n:06}"


def events(session: str, workspace: Path, turns: int, *, words: str = "do") -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = [
        (
            "session_init",
            {
                "id": session, "title": None, "cwd": "/home/ana/shop", "project": "shop", "model": "scripted",
                "mode": "yolo", "workspace": {"kind": "empty", "origin": None, "base": None, "path": str(workspace)},
            },
        )
    ]  # fmt: skip
    for turn in range(turns):
        found += [
            ("user_message", {"text": f"{words} {turn} of {session}", "attachments": []}),
            (
                "agent_message",
                {
                    "text": f"Done {turn}.", "reasoning": None, "model": "scripted", "finish": "stop", "usage": USAGE,
                    "cost_usd": 0.001,
                },
            ),
            (
                "turn_finished",
                {"reason": "done", "steps": 1, "usage": USAGE, "cost_usd": 0.001, "duration_ms": 5},
            ),
        ]  # fmt: skip
    return found


def log_of(session: str, drafts: list[tuple[str, dict[str, Any]]], causes: dict[int, int] | None = None) -> bytes:
    """Return a log. causes: by seq, where events answer others."""
    head = encode_header(
        session, ordinal=0, first_seq=1, nonce=session[-6:].rjust(16, "0"), created=TS, by="agentsh 0.1.0"
    )
    lines = [
        encode_event(Draft(kind, TS, payload, (causes or {}).get(seq)), seq=seq, dur=seq - 1, salt=head.salt)
        for seq, (kind, payload) in enumerate(drafts, 1)
    ]
    return head.raw + b"".join(lines)


def add(home: Path, n: int, turns: int = 3, *, words: str = "do") -> Path:
    """Make a session with its workspace and return its log."""
    session = sid(n)
    for place in (home, home / "sessions", home / "workspaces", home / "blobs"):
        place.mkdir(mode=0o700, exist_ok=True)
    workspace = home / "workspaces" / session
    workspace.mkdir(mode=0o700)
    directory = home / "sessions" / session
    directory.mkdir(mode=0o700)
    log = directory / "events.jsonl"
    log.write_bytes(log_of(session, events(session, workspace, turns, words=words)))
    log.chmod(0o600)
    os.utime(log, (1_000_000_000 + n * 1000,) * 2)
    return log
