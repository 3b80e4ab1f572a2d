"""The settings in force, each with where it comes from: what `/config` shows."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentsh.app.paths import Homes
from agentsh.app.settings import layers, load_settings

WHOLE = frozenset({"options", "price"})
"""Tables that are one value."""
_USER = re.compile(r"//[^/@\s]+@")
_HIDDEN = re.compile(r"key|token|secret|passw|credential|authorization", re.IGNORECASE)
_OPEN = frozenset({"keys"})
"""Words for which the pattern is too wide: `ui.keys` says how to edit, not what to unlock."""
_NAMES_A_VARIABLE = "api_key_env"


class Explained(NamedTuple):
    """A setting in force. origin: a file, a variable, or `default`."""

    name: str
    value: str
    origin: str


def explained(homes: Homes, env: Mapping[str, str]) -> list[Explained]:
    """Return every setting, in the order of the sections.

    Raises:
        UsageProblem: a file does not read, or names something unknown.
    """
    origins: dict[str, str] = {}
    for origin, values in layers(homes, env):
        origins |= dict.fromkeys((name for name, _ in _flat(values)), origin)
    found = []
    for name, value in _flat(load_settings(homes, env).model_dump()):
        origin = origins.get(name) or next((o for n, o in origins.items() if n.startswith(f"{name}.")), "default")
        found.append(Explained(name, _shown(name, value), origin))
    return found


def _flat(values: Mapping[str, Any], lead: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value and key not in WHOLE:
            yield from _flat(value, f"{lead}{key}.")
        else:
            yield f"{lead}{key}", value


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(_without_secrets(value), ensure_ascii=False)
    last = name.rpartition(".")[2]
    if isinstance(value, str) and last not in {_NAMES_A_VARIABLE, *_OPEN} and _HIDDEN.search(last):
        return "(hidden)"
    return _USER.sub("//…@", text)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: "(hidden)" if isinstance(v, str) and _HIDDEN.search(k) else _without_secrets(v)
            for k, v in value.items()
        }
    return [_without_secrets(v) for v in value] if isinstance(value, list) else value
