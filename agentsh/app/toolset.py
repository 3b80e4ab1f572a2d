"""Which tools there are, and which of them a model is offered."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from agentsh.app.wiring import TOOLS, load

if TYPE_CHECKING:
    from agentsh.ports.tool import Tool

Editing = Literal["apply_patch", "edit"]
WAYS_TO_EDIT: tuple[Editing, ...] = ("apply_patch", "edit")
"""Tools that do the same. A model is offered one of them; a call of the other one runs all the same, since a session
may have changed its model."""

WEB = "web_fetch"
"""Not there, unless the settings say so."""

_BY_REPLACEMENT = ("claude",)
"""Models whose makers document an edit tool that replaces one text by another: Anthropic's text editor tool."""


class Tools(Mapping[str, "Tool"]):
    """The tools of the table, each loaded when it is asked for: a session that goes on need not wait for them.

    left_out: names that are not among them.
    """

    def __init__(self, left_out: tuple[str, ...] = ()) -> None:
        self._names = tuple(name for name in TOOLS if name not in left_out)

    def __getitem__(self, name: str) -> "Tool":
        if name not in self._names:
            raise KeyError(name)
        tool: Tool = load(TOOLS[name])
        return tool

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def preferred(wire: str, model: str) -> Editing:
    """Return the way to edit that a model is offered where its profile says nothing: `apply_patch` if unknown."""
    name = model.rpartition("/")[2].lower()
    return "edit" if wire == "demo" or name.startswith(_BY_REPLACEMENT) else "apply_patch"


def known(*, web: bool) -> Mapping[str, "Tool"]:
    """Return the tools that may be called. web: whether pages of the web may be fetched at all."""
    return Tools(() if web else (WEB,))


def offered(editing: Editing, *, web: bool = False) -> Mapping[str, "Tool"]:
    """Return the tools that a model is offered, by name, in the order of the table. web: see `known`."""
    others = tuple(way for way in WAYS_TO_EDIT if way != editing)
    return Tools(others if web else (*others, WEB))


def tool_schemas(tools: Mapping[str, "Tool"]) -> str:
    """Return the neutral JSON list that environment_changed records."""
    specs = [tool.spec for tool in tools.values()]
    schemas = [{"name": s.name, "description": s.description, "parameters": s.parameters} for s in specs]
    return json.dumps(schemas, ensure_ascii=False, separators=(",", ":"))
