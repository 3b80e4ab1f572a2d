"""The wiring tables are strings, which no linter follows: every entry is resolved here and held against its port."""

import pytest

from agentsh.app.wiring import RENDERERS, TOOLS, WIRES, load
from agentsh.context.fold import HANDLERS
from agentsh.events.union import KINDS


@pytest.mark.parametrize(("name", "target"), TOOLS.items())
def test_each_tool_resolves_and_has_the_name_of_its_entry(name: str, target: str) -> None:
    tool = load(target)
    assert tool.spec.name == name
    assert callable(tool.parse)
    assert callable(tool.run)


@pytest.mark.parametrize("target", WIRES.values())
def test_each_wire_is_a_model(target: str) -> None:
    wire = load(target)
    assert all(callable(getattr(wire, method)) for method in ("encode", "stream", "close"))


@pytest.mark.parametrize("target", RENDERERS.values())
def test_each_renderer_is_one(target: str) -> None:
    renderer = load(target)
    assert all(callable(getattr(renderer, method)) for method in ("on", "signal", "close"))


def test_the_fold_has_one_handler_for_each_type() -> None:
    assert set(HANDLERS) == set(KINDS)
