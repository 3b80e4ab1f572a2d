"""What a stand-alone server reads and writes on disk: its script as JSON, and the requests that came."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from agentsh.testing import server_replies as replies
from agentsh.testing.server_script import (
    CallDelta,
    Comment,
    Cut,
    CutHow,
    EmptyChoices,
    Event,
    Finish,
    Forever,
    Hang,
    Layout,
    Pause,
    Raw,
    Reasoning,
    Reply,
    ScriptItem,
    Step,
    StreamError,
    Text,
    Together,
    Usage,
)
from agentsh.testing.server_wire import Ending, Request

SETTINGS = ("strict", "api_key", "models", "max_context_tokens", "idle_s")


T = TypeVar("T")


class ScriptFileError(ValueError):
    """A script file that says something this server does not know; the message says where."""


def read_script(path: Path) -> tuple[list[ScriptItem], dict[str, Any]]:
    """The replies of a script file and the settings in it.

    A file is a list of replies, or an object with `replies` and any of SETTINGS. A reply is an object: the
    arguments of `reply` (`{"text": "hi", "chunk": 2, "calls": [{"name": ..., "arguments": {...}}], "then":
    [{"cut": "rst"}]}`), or an object with one member that is `error`, `html_error`, `json`, `closed`, `hang`
    or `forever`.

    Raises: ScriptFileError, OSError.
    """
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ScriptFileError(f"{path} is not JSON: {error}") from error
    settings: dict[str, Any] = {}
    if isinstance(content, dict):
        items = content.pop("replies", [])
        settings = content
        _known(settings, SETTINGS, "the script")
    else:
        items = content
    return [_item(value, f"reply {number}") for number, value in enumerate(items, 1)], settings


def write_request(folder: Path, request: Request) -> None:
    """Keep one request: its exact bytes as `000001.body`, all else as `000001.json`, which comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "number": request.number,
        "method": request.method,
        "path": request.path,
        "headers": [list(pair) for pair in request.headers.raw],
        "received_at": request.received_at,
        "monotonic_s": request.monotonic_s,
        "problems": [problem.body()["error"] for problem in request.problems],
    }
    for suffix, data in (("body", request.body), ("json", json.dumps(about, indent=1).encode())):
        # A rename, so that whoever watches the folder never sees half a file.
        temporary = folder / f".{request.number:06d}.{suffix}"
        temporary.write_bytes(data)
        os.replace(temporary, folder / f"{request.number:06d}.{suffix}")


def _item(value: Any, where: str) -> ScriptItem:
    if isinstance(value, Mapping) and set(value) == {"forever"}:
        return Forever(_reply(value["forever"], where))
    return _reply(value, where)


def _reply(value: Any, where: str) -> Reply:
    if not isinstance(value, Mapping):
        raise ScriptFileError(f"{where}: expected an object, got {value!r}")
    if len(value) == 1:
        kind, argument = next(iter(value.items()))
        if kind in _KINDS:
            return _built(where, lambda: _KINDS[kind](argument))
    members = dict(value)
    if "calls" in members:
        members["calls"] = _built(where, lambda: [replies.call(**given) for given in value["calls"]])
    if "then" in members:
        members["then"] = [_step(step, where) for step in members["then"]]
    if isinstance(members.get("usage"), Mapping):
        members["usage"] = _built(where, lambda: Usage(**value["usage"]))
    if "layout" in members:
        members["layout"] = _built(where, lambda: Layout(**value["layout"]))
    if "pause_at" in members:
        members["pause_at"] = {int(place): seconds for place, seconds in members["pause_at"].items()}
    return _built(where, lambda: replies.reply(**members))


def _step(value: Any, where: str) -> Step:
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ScriptFileError(f"{where}: a step is an object with one member, got {value!r}")
    kind, argument = next(iter(value.items()))
    if kind == "together":
        parts = [_step(part, where) for part in argument]
        return Together(tuple(parts))  # type: ignore[arg-type]  # a wrong part shows in the stream
    if kind not in _STEPS:
        raise ScriptFileError(f"{where}: no step {kind!r}; there are {', '.join(sorted([*_STEPS, 'together']))}")
    return _built(where, lambda: _STEPS[kind](argument))


_KINDS: dict[str, Callable[[Any], Reply]] = {
    "error": lambda given: replies.error(**given) if isinstance(given, Mapping) else replies.error(given),
    "html_error": replies.html_error,
    "json": replies.json_reply,
    "closed": lambda given: replies.closed(_one_of(get_args(Ending), given)),
    "hang": lambda given: replies.hang(given if isinstance(given, str) else ""),
}

_STEPS: dict[str, Callable[[Any], Step]] = {
    "text": Text,
    "reasoning": lambda given: Reasoning(**given) if isinstance(given, Mapping) else Reasoning(given),
    "call": lambda given: CallDelta(**given),
    "finish": Finish,
    "event": Event,
    "empty_choices": lambda _: EmptyChoices(),
    "error": lambda given: StreamError(**given) if isinstance(given, Mapping) else StreamError(given),
    "comment": Comment,
    "raw": lambda given: Raw(given.encode()),
    "raw_base64": lambda given: Raw(base64.b64decode(given, validate=True)),
    "pause": Pause,
    "hang": lambda _: Hang(),
    "cut": lambda how: Cut(_one_of(get_args(CutHow), how)),
}


def _built(where: str, build: Callable[[], T]) -> T:
    try:
        return build()
    except (TypeError, ValueError, AttributeError) as error:
        raise ScriptFileError(f"{where}: {error}") from error


def _one_of(known: tuple[Any, ...], value: Any) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(known)}")
    return value


def _known(members: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(members) - set(names))
    if unknown:
        raise ScriptFileError(f"{where}: unknown {', '.join(unknown)}; there are {', '.join(names)}")
