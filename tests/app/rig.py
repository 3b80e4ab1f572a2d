"""Homes and sessions made by hand, as they would lie on disk."""

import os
from pathlib import Path

from agentsh.app.paths import Home
from agentsh.base.ids import CROCKFORD
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.record import Draft

TS = "2026-11-29T16:20:{:02}.123456Z"
USAGE = {"prompt": 100, "cached": 0, "completion": 5, "reasoning": 0}


def a_home(root: Path, config: str = "", *, trusted: bool = True) -> Home:
    """Make a directory with the three marks of a home."""
    for name in ("sessions", "workspaces"):
        (root / name).mkdir(parents=True)
    (root / "agentsh.toml").write_text(config)
    return Home(root, trusted)


def an_id(n: int, day: str = "20261129") -> str:
    return f"{day}-" + "".join(CROCKFORD[n >> bits & 31] for bits in (25, 20, 15, 10, 5, 0))


def a_session(
    home: Home,
    session: str,
    *,
    prompt: str | None = "hello",
    second: int = 1,
    cost: float | None = None,
    tags: list[str] | None = None,
    title: str | None = None,
    ended: bool = True,
    filler: int = 0,
) -> Path:
    """Write the log of a session, and return its path. second: of its creation, and of the last write."""
    place = home.sessions / session
    place.mkdir(parents=True)
    ts = TS.format(second)
    header = encode_header(session, ordinal=0, first_seq=1, nonce=f"{second:016x}", created=ts, by="test")
    init = {
        "id": session, "title": None, "cwd": "/home/ana/shop", "project": "shop", "model": "m", "mode": "ask",
        "workspace": {"kind": "empty", "origin": None, "base": None},
    }  # fmt: skip
    drafts = [Draft("session_init", ts, init)]
    if tags:
        drafts.append(Draft("tagged", ts, {"tags": tags}))
    if title:
        drafts.append(Draft("renamed", ts, {"title": title, "by": "user"}))
    if prompt is not None:
        drafts.append(Draft("user_message", ts, {"text": prompt + "x" * filler, "attachments": []}))
        answer = {"text": "a", "reasoning": None, "model": "m", "finish": "stop", "usage": USAGE, "cost_usd": cost}
        drafts.append(Draft("agent_message", ts, answer))
    if ended and prompt is not None:
        end = {"reason": "done", "steps": 1, "usage": USAGE, "cost_usd": cost, "duration_ms": 1}
        drafts.append(Draft("turn_finished", ts, end))
    lines = [encode_event(d, seq=n, dur=0, salt=header.salt) for n, d in enumerate(drafts, 1)]
    log = place / "events.jsonl"
    log.write_bytes(header.raw + b"".join(lines))
    os.utime(log, ns=(second * 10**9, second * 10**9))
    return log
