"""From the terminal and the environment to a renderer, and what some facts leave on it."""

import io
import json
from typing import Any

import pytest

from agentsh.app.screens import columns, screen_renderer
from agentsh.app.width import columns_from
from agentsh.app.wiring import TOOLS, load
from agentsh.events import session
from agentsh.events.base import Fact
from agentsh.events.event import Event
from agentsh.ports.texts import InlineTexts
from agentsh.render.calls import subject_of


def shown(fact: Fact) -> str:
    out = io.StringIO()
    screen = screen_renderer(out, InlineTexts(), live=False)
    screen.on(Event(1, "2026-11-29T16:20:01.123456Z", None, fact, b"{}\n"))  # type: ignore[arg-type]
    screen.close()
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "width"),
    [("100", 100), ("20", 20), ("10000", 10_000), ("19", 80), ("0", 80), ("10001", 80), ("9" * 5_000, 80),
     ("abc", 80), ("", 80), ("-1", 80), ("1e2", 80), ("٣٣", 80), (" 90", 80)],
)  # fmt: skip
def test_columns_are_a_sensible_number_or_the_default(text: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert columns_from({"COLUMNS": text}, 80) == width
    monkeypatch.setenv("COLUMNS", text)
    assert columns(io.StringIO()) == width
    assert columns_from({}, 120) == 120


def test_all_damaged_places_are_counted_not_only_those_that_are_named() -> None:
    damages: tuple[Any, ...] = tuple({"where": f"000000:{n}"} for n in range(20))
    known: Any = {"cut_bytes": 0, "quarantined": (), "calls": 0, "turn": False}
    few = session.Recovered(damages=damages[:2], **known)
    many = session.Recovered(damages=damages, damages_total=1234, **known)
    assert "2 damaged places" in shown(few)
    assert "1,234 damaged places" in shown(many)
    assert "verify" not in shown(many), "there is no such command yet"


def test_a_change_of_model_says_where_it_is() -> None:
    changed = session.ModelChanged(model="m", request={"host": "http://127.0.0.1:9"})
    assert shown(changed) == "— model: m at http://127.0.0.1:9 —\n"
    assert shown(session.ModelChanged(model="m", request={"host": None})) == "— model: m —\n"
    assert shown(session.ModelChanged(model="m")) == "— model: m —\n"


@pytest.mark.parametrize("target", TOOLS.values())
def test_the_subject_of_a_call_is_the_one_that_its_tool_names(target: str) -> None:
    spec = load(target).spec
    arguments: dict[str, object] = {
        name: [] if schema.get("type") == "array" else f"the {name}"
        for name, schema in spec.parameters["properties"].items()
    }
    for order in (arguments, dict(reversed(arguments.items()))):
        assert subject_of(json.dumps(order)) == (f"the {spec.subject}" if spec.subject else "")


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ({"format": "json", "id": 12}, "format: json"),
        ({"content": "a long text\nin many lines", "id": 12}, ""),
        ({"content": "x" * 500, "language": "de"}, "language: de"),
        ({"items": ["a"], "done": True}, ""),
        ({"path": "", "glob": "*.py"}, "glob: *.py"),
        ({"patch": "*** Begin Patch\n *** Update File: a b \n*** Move to: c\n@@\n+*** Add File: d\n"}, "a b, c"),
        ({"patch": "no patch\nat all"}, "no patch at all"),
        ({}, ""),
        ([1], "[1]"),
    ],
)
def test_a_tool_that_nobody_knows_shows_no_nonsense(arguments: Any, subject: str) -> None:
    assert subject_of(json.dumps(arguments)) == subject
