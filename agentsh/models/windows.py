"""The context windows of models: from what a server's list of models says, and from the data that ships with us."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from agentsh.base.pattern import later
from agentsh.ports.window import Window

DATA = Path(__file__).parent / "data" / "windows.json"
SMALLEST = 256
"""What is below it is no window: servers write 0 or -1 where they do not know."""
FROM_LIST = "model list"

_WINDOW = (
    "max_model_len",  # vLLM, SGLang
    "loaded_context_length",  # LM Studio, of its own list (/api/v0/models): what it has loaded
    "context_length",  # OpenRouter, Together, Fireworks; Ollama, of what it has loaded (/api/ps)
    "context_window",  # Groq, LiteLLM
    "max_context_length",  # Mistral; LM Studio, of a model that is not loaded
    "max_context_window_tokens",  # GitHub Copilot, in capabilities.limits
    "n_ctx",  # llama.cpp, in meta: of one slot
    "max_input_tokens",  # Anthropic, LiteLLM
)
"""Where lists of models say it, most binding first: read in the sources and documents of these servers."""
_REPLY = ("max_completion_tokens", "max_output_tokens")
_REQUEST = ("max_prompt_tokens", "max_input_tokens")
_NESTED = (("top_provider",), ("meta",), ("capabilities", "limits"))
"""OpenRouter: the provider behind a route may give less than the model could. llama.cpp. GitHub Copilot."""

_DATED = later(r"(?:[-@](?:20\d\d-?\d\d-?\d\d|\d{4}|latest|preview))+$")


def of_card(card: Mapping[str, Any]) -> Window | None:
    """Return what one entry of a list of models says, or None.

    llama.cpp's `n_ctx_train` is what the model was trained for, not what the server was started with: not used.
    """
    places = [card, *(found for path in _NESTED if (found := _inside(card, path)) is not None)]
    tokens = [n for place in places if (n := _first(place, _WINDOW)) is not None]
    if not tokens:
        return None
    reply = [n for place in places if (n := _first(place, _REPLY)) is not None]
    request = [n for place in places if (n := _first(place, _REQUEST)) is not None]
    return Window(min(tokens), FROM_LIST, min(reply, default=None), min(request, default=None))


def in_list(answer: Any, model: str) -> Window | None:
    """Return what the answer of `/models`, `/api/v0/models` or `/api/ps` says of `model`, or None."""
    if not isinstance(answer, dict):
        return None
    cards: list[Any] = next((answer[key] for key in ("data", "models") if isinstance(answer.get(key), list)), [])
    for card in cards:
        if isinstance(card, dict) and model in (card.get("id"), card.get("name"), card.get("model")):
            found = of_card(card)
            if found is not None:
                return found
    return None


def shipped(model: str) -> Window | None:
    """Return what the data that ships with us says of `model`, or None.

    A vendor's name in front, a tag behind (`:free`) and a date or `latest` at the end are looked past.
    """
    made, models, _ = _data()
    for known in _names(model):
        if known in models:
            tokens, reply, request = (*models[known], 0, 0)[:3]
            return Window(tokens, f"data of {made}", reply or None, request or None)
    return None


def takes_images(model: str) -> bool:
    """Tell whether the data that ships with us says that `model` is shown images; False where it knows nothing."""
    seeing = _data()[2]
    return any(name in seeing for name in _names(model))


def _names(model: str) -> tuple[str, str]:
    name = model.lower().rpartition("/")[2].partition(":")[0]
    return name, _DATED.sub("", name)


@cache
def _data() -> tuple[str, dict[str, list[int]], frozenset[str]]:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    return data["made"], data["models"], frozenset(data["images"])


def _inside(card: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any] | None:
    place: Any = card
    for name in path:
        place = place.get(name) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else None


def _first(place: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = place.get(name)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= SMALLEST:
            return value
    return None
