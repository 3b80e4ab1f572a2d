"""The tables and the ports they fill: what the type checker cannot see through a string is held here."""

from pathlib import Path
from typing import Any

import pytest

from agentsh.app.build import tools
from agentsh.app.paths import Home
from agentsh.app.settings import Settings
from agentsh.app.stores import STORE, blob_store, event_store
from agentsh.app.wiring import BLOBS, RENDERERS, STORES, TOOLS, load
from agentsh.ports.renderer import LiveRenderer, Renderer
from agentsh.render.final import FinalRenderer
from agentsh.render.jsonl import JsonRenderer
from agentsh.render.screen import ScreenRenderer

STORE_METHODS = ("create", "open", "read", "damages", "sessions", "holder")


@pytest.mark.parametrize("name", STORES)
def test_each_store_is_made_from_a_directory_and_its_blobs(tmp_path: Path, name: str) -> None:
    store = load(STORES[name])(tmp_path / "sessions", load(BLOBS["files"])(tmp_path / "blobs"), durability="none")
    assert all(callable(getattr(store, method)) for method in STORE_METHODS)
    assert store.sessions() == []


def test_a_home_has_one_store_and_one_place_for_blobs(tmp_path: Path) -> None:
    home = Home(tmp_path, trusted=True)
    assert type(event_store(home)) is load(STORES[STORE])
    assert blob_store(home).put(b"x").startswith("sha256:")


def test_no_target_has_two_names() -> None:
    for table in (STORES, BLOBS, RENDERERS):
        assert len(set(table.values())) == len(table)


def _live(screen: ScreenRenderer) -> LiveRenderer:
    return screen  # the type checker holds the port


def _plain(final: FinalRenderer, lines: JsonRenderer) -> tuple[Renderer, Renderer]:
    return final, lines


def test_the_screen_is_a_live_renderer() -> None:
    members: set[Any] = {name for name in vars(LiveRenderer) if not name.startswith("_")}
    assert members == {"remark", "suspend", "resume", "tick"}
    assert all(callable(getattr(ScreenRenderer, name)) for name in members)


def test_the_tools_are_offered_in_the_order_of_their_table() -> None:
    found = tools(Settings())
    assert [tool.spec.name for tool in found.values()] == list(found) == [n for n in TOOLS if n != "web_fetch"]
    for given in ({"tools": {"web": True}}, {"permissions": {"allow": ["web_fetch(*.python.org)"]}}):
        assert list(tools(Settings.model_validate(given))) == list(TOOLS)
