"""Records to what `ls` shows of a session. Loads no pydantic: it works on the raw payloads of a few types."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentsh.base.text import one_line
from agentsh.events.upcast import upcast
from agentsh.log.record import Record

VERSION = 5
"""Of the shape of a summary; a cached one of another version is made anew."""
TITLE_CHARS = 120
TYPES = frozenset(
    {
        "session_init",
        "user_message",
        "agent_message",
        "summary_tried",
        "compaction",
        "side_answer",
        "turn_finished",
        "renamed",
        "tagged",
        "mode_changed",
        "model_changed",
        "workspace_moved",
    }
)
"""The types that a summary depends on; records of others need not be decoded."""


def summarise(records: Iterable[Record]) -> dict[str, Any]:
    """Return the summary of a log as plain JSON values; a test holds it against the fold.

    turns, prompt_tokens, completion_tokens: sums. cost_usd: None where no reply had a price.
    newest_prompt, newest_cached: tokens of the newest request that the provider reported on.
    open_turn: the last turn has no end. first_prompt: its first words. title: the given one, else the same.
    """
    s: dict[str, Any] = {
        "version": VERSION, "title": None, "first_prompt": None, "created": None, "updated": None, "cwd": None,
        "project": None,
        "model": None, "mode": None, "workspace": None, "workspace_path": None, "origin": None, "tags": [],
        "turns": 0, "prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0, "cost_usd": None,
        "newest_prompt": None, "newest_cached": None,
        "open_turn": False, "last_seq": 0,
    }  # fmt: skip
    for record in records:
        s["last_seq"], s["updated"] = record.seq, record.ts
        take = _TAKERS.get(record.type)
        if take is not None:
            take(s, record, upcast(record.type, record.payload))
    return s


def _init(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    s["created"] = record.ts
    for name in ("cwd", "project", "model", "mode"):
        s[name] = _text(payload.get(name))
    s["title"] = _title(payload.get("title"))
    workspace = payload.get("workspace")
    if isinstance(workspace, dict):
        s["workspace"] = _text(workspace.get("kind"))
        s["workspace_path"] = _text(workspace.get("path"))
        s["origin"] = _text(workspace.get("origin"))


def _user(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    if not s["open_turn"]:
        s["turns"] += 1
    s["open_turn"] = True
    if s["first_prompt"] is None:
        s["first_prompt"] = _title(payload.get("text"))
    if s["title"] is None:
        s["title"] = s["first_prompt"]


def _spent(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    usage = payload.get("usage")
    if isinstance(usage, dict):
        prompt, cached = usage.get("prompt"), usage.get("cached")
        if isinstance(prompt, int) and isinstance(cached, int) and prompt > 0:
            s["newest_prompt"], s["newest_cached"] = prompt, cached
        for name, key in (
            ("prompt_tokens", "prompt"),
            ("cached_tokens", "cached"),
            ("completion_tokens", "completion"),
        ):
            value = usage.get(key)
            s[name] += value if isinstance(value, int) else 0
    cost = payload.get("cost_usd")
    if isinstance(cost, int | float):
        s["cost_usd"] = cost + (s["cost_usd"] or 0)


def _replied(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    _spent(s, record, payload)
    s["model"] = s["model"] or _text(payload.get("model"))  # the beginning, which names it, does not read


def _aside(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    newest = s["newest_prompt"], s["newest_cached"]
    _spent(s, record, payload)
    s["newest_prompt"], s["newest_cached"] = newest  # it was no request of the conversation


def _finished(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    s["open_turn"] = False


def _renamed(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    s["title"] = _title(payload.get("title")) or s["title"]


def _tagged(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    tags = payload.get("tags")
    s["tags"] = [t for t in tags if isinstance(t, str)] if isinstance(tags, list) else s["tags"]


def _mode(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    s["mode"] = _text(payload.get("mode")) or s["mode"]


def _model(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    s["model"] = _text(payload.get("model")) or s["model"]


def _moved(s: dict[str, Any], record: Record, payload: Mapping[str, Any]) -> None:
    s["workspace_path"] = _text(payload.get("path")) or s["workspace_path"]


_TAKERS = {
    "session_init": _init,
    "user_message": _user,
    "agent_message": _replied,
    "summary_tried": _spent,
    "compaction": _spent,
    "side_answer": _aside,
    "turn_finished": _finished,
    "renamed": _renamed,
    "tagged": _tagged,
    "mode_changed": _mode,
    "model_changed": _model,
    "workspace_moved": _moved,
}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _title(value: Any) -> str | None:
    if isinstance(value, dict):  # moved to a blob: its head is enough
        value = value.get("head")
    return one_line(value, TITLE_CHARS) or None if isinstance(value, str) else None
