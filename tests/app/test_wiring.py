"""The tables and the ports they fill: what the type checker cannot see through a string is held here."""

from pathlib import Path
from typing import Any

import pytest

from agentsh.app.paths import Home
from agentsh.app.services import wants_web
from agentsh.app.settings import Settings, choose_model
from agentsh.app.stores import STORE, blob_store, event_store
from agentsh.app.toolset import WAYS_TO_EDIT, Editing, Tools, known, offered, preferred
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
    assert members == {"remark", "suspend", "resume", "tick", "use"}
    assert all(callable(getattr(ScreenRenderer, name)) for name in members)


def test_the_tools_are_offered_in_the_order_of_their_table() -> None:
    assert [tool.spec.name for tool in Tools().values()] == list(Tools()) == list(TOOLS)


def test_the_web_is_offered_where_the_settings_say_so() -> None:
    assert not wants_web(Settings())
    assert "web_fetch" not in offered("edit")
    assert "web_fetch" not in known(web=False)
    assert list(known(web=True)) == list(TOOLS)
    for given in ({"tools": {"web": True}}, {"permissions": {"allow": ["web_fetch(*.python.org)"]}}):
        assert wants_web(Settings.model_validate(given))


@pytest.mark.parametrize("way", WAYS_TO_EDIT)
def test_a_model_is_offered_one_way_to_edit(way: Editing) -> None:
    names = list(offered(way, web=True))
    assert [name for name in names if name in WAYS_TO_EDIT] == [way]
    assert [name for name in TOOLS if name not in WAYS_TO_EDIT or name == way] == names
    assert "nonsense" not in offered(way)
    with pytest.raises(KeyError):
        offered(way)[next(other for other in WAYS_TO_EDIT if other != way)]


@pytest.mark.parametrize(
    ("wire", "model", "way"),
    [
        ("chat", "gpt-5", "apply_patch"),
        ("chat", "somebody/unknown", "apply_patch"),
        ("chat", "anthropic/claude-sonnet-4-5", "edit"),
        ("demo", "demo", "edit"),
    ],
)
def test_which_way_suits_which_model(wire: str, model: str, way: str) -> None:
    assert preferred(wire, model) == way


def test_a_profile_decides_the_way_to_edit() -> None:
    profiles = {"mine": {"model": "claude-x", "edit": "apply_patch"}, "plain": {"model": "claude-x"}}
    settings = Settings.model_validate({"models": profiles})
    assert choose_model(settings, {}, "mine").editing == "apply_patch"
    assert choose_model(settings, {}, "plain").editing == "edit"
    assert choose_model(settings, {"OPENAI_API_KEY": "k"}, None).editing == "apply_patch"
