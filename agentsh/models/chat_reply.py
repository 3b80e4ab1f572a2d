"""Chunks of a Chat Completions stream into previews and one Reply, as servers really send them. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from agentsh.base.light import dataclass, field
from agentsh.base.pattern import later
from agentsh.events.base import Usage
from agentsh.events.signals import ReasoningDelta, TextDelta
from agentsh.ports.model import Call, Reply

Finish = Literal["stop", "tool_calls", "length", "content_filter"]

FINISHES: Mapping[str, Finish] = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "sensitive": "content_filter",
}
"""What servers call the end of an answer; anything else (`stop`, `eos`, `end_turn`, …) is an ordinary end."""
BROKEN = frozenset({"error", "network_error", "abort", "aborted", "cancelled", "insufficient_system_resource"})
"""Finish reasons that say that the answer is not whole (OpenRouter, GLM, vLLM, DeepSeek)."""

_HIGH = later("[\ud800-\udbff]\\Z")
_SURROGATES = later("[\ud800-\udfff]")


class ErrorInReply(Exception):
    """The server answered 200 and told an error in the body. body: what it said."""

    def __init__(self, body: object) -> None:
        super().__init__("an error inside a reply")
        self.body = body


@dataclass(slots=True)
class _Text:
    """Text in pieces. A character that was cut into its two surrogates, one in each piece, is put together."""

    pieces: list[str] = field(default_factory=list)
    half: str = ""

    def add(self, piece: str, *, last: bool = False) -> str:
        piece, self.half = self.half + piece, ""
        if not last and _HIGH.search(piece):
            piece, self.half = piece[:-1], piece[-1]
        if _SURROGATES.search(piece):
            piece = piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if piece:
            self.pieces.append(piece)
        return piece

    def whole(self) -> str:
        return "".join(self.pieces)


@dataclass(slots=True)
class _Call:
    id: str
    index: int | None
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def complete(self) -> bool:
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


class Assembly:
    """One reply in the making.

    finish: the server's word for the end, None as long as it has not come. model: as the server names it, or "".
    """

    def __init__(self) -> None:
        self.finish: str | None = None
        self._text = _Text()
        self._reasoning = _Text()
        self._calls: list[_Call] = []
        self._usage: Usage | None = None
        self.model = ""

    def take(self, chunk: object) -> Iterator[TextDelta | ReasoningDelta]:
        """Add one chunk, or a whole completion; yield what is new to show.

        Raises:
            ErrorInReply: the server tells an error.
            ValueError: this is no chunk.
        """
        if not isinstance(chunk, dict):
            raise ValueError(f"a chunk that is no object: {json.dumps(chunk)[:80]}")
        choices = chunk.get("choices")
        if chunk.get("error") or chunk.get("object") == "error":
            raise ErrorInReply(chunk.get("error") or chunk)
        if not isinstance(choices, list) and not isinstance(chunk.get("usage"), dict):
            raise ValueError(f"a chunk without choices: {json.dumps(chunk)[:80]}")
        if isinstance(chunk.get("model"), str) and chunk["model"]:
            self.model = chunk["model"]
        choice = next((c for c in choices or [] if isinstance(c, dict) and c.get("index") in (0, None)), {})
        self._usage = usage(chunk, choice) or self._usage
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            yield from self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason not in ("", "null"):  # how some servers spell null
            self._finish(reason, choice)

    def rest(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield what was held back; call once, at the end."""
        if piece := self._reasoning.add("", last=True):
            yield ReasoningDelta(piece)
        if piece := self._text.add("", last=True):
            yield TextDelta(piece)

    def reply(self, *, model: str) -> Reply:
        """Return the whole, as an answer of `model`."""
        calls = tuple(Call(c.id, c.name, "".join(c.arguments).strip() or "{}") for c in self._calls)
        finish = FINISHES.get((self.finish or "").lower(), "stop")
        if finish in ("stop", "tool_calls"):
            # Calls count, whatever the word: many servers say `stop` after calls.
            finish = "tool_calls" if calls else "stop"
        reasoning = self._reasoning.whole() or None
        return Reply(self._text.whole(), reasoning, calls, finish, self._usage, model)

    def _finish(self, reason: str, choice: Mapping[str, Any]) -> None:
        if reason.lower() in BROKEN:
            raise ErrorInReply(choice.get("error") or {"message": f"the model stopped: {reason}"})
        self.finish = reason

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        text, thoughts = _content(delta.get("content"))
        # Never both: servers that are changing from one name to the other send the same text under each.
        thoughts += _string(delta.get("reasoning_content")) or _string(delta.get("reasoning"))
        if thoughts and (piece := self._reasoning.add(thoughts)):
            yield ReasoningDelta(piece)
        text += _string(delta.get("refusal"))
        if text and (piece := self._text.add(text)):
            yield TextDelta(piece)
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else []:
            if isinstance(fragment, dict):
                self._fragment(fragment)
        if isinstance(delta.get("function_call"), dict):
            self._fragment({"index": 0, "function": delta["function_call"]})

    def _fragment(self, fragment: Mapping[str, Any]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        id_, name = _string(fragment.get("id")), _string(function.get("name"))
        index = fragment.get("index") if isinstance(fragment.get("index"), int) else None
        call = self._slot(index, id_, name)
        if call is None:
            call = _Call(id_, index)
            self._calls.append(call)
        call.id = call.id or id_
        if name and not (
            call.arguments or name == call.name
        ):  # a name that is repeated in each fragment adds nothing
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str) and arguments:
            call.arguments.append(arguments)

    def _slot(self, index: int | None, id_: str, name: str) -> _Call | None:
        """Return the call that a fragment continues, or None where it starts one.

        The index tells, unless it is missing or the same for every call (Ollama): then a new id that comes
        with a name starts a call, and so does a name without id once the arguments before it are whole.
        A new id alone does not: some servers make one up for each fragment.
        """
        if index is not None:
            last = next((c for c in reversed(self._calls) if c.index == index), None)
        else:
            last = next((c for c in self._calls if id_ and c.id == id_), None)
            if last is None and self._calls and not (id_ and name):
                last = self._calls[-1]
        if last is None or not name:
            return last
        if id_ and last.id and id_ != last.id:
            return None
        return None if not id_ and last.complete() else last


def usage(chunk: Mapping[str, Any], choice: Mapping[str, Any]) -> Usage | None:
    """Return the token counts of a chunk, or None.

    Places: `usage`; `choices[0].usage` (Moonshot); `x_groq.usage`. Names: of Chat Completions; of Responses
    (`input_tokens`); cached tokens at the top level (DeepSeek `prompt_cache_hit_tokens`, Moonshot `cached_tokens`).
    """
    groq = chunk.get("x_groq")
    places = (chunk.get("usage"), choice.get("usage"), groq.get("usage") if isinstance(groq, dict) else None)
    found = next((place for place in places if isinstance(place, dict) and place), None)
    if found is None:
        return None
    prompt = _first(found, "prompt_tokens", "input_tokens")
    completion = _first(found, "completion_tokens", "output_tokens")
    if not prompt and not completion:
        return None
    cached = _detail(found, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    cached = cached or _first(found, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
    reasoning = _detail(found, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    reasoning = reasoning or _first(found, "reasoning_tokens")
    if reasoning and _first(found, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning  # xAI and Gemini count them apart; ours are a part of the completion
    return Usage(
        prompt=prompt, cached=min(cached, prompt), completion=completion, reasoning=min(reasoning, completion)
    )


def _content(content: object) -> tuple[str, str]:
    """Return text and reasoning of a `content` member: a string, or parts (Mistral)."""
    if not isinstance(content, list):
        return _string(content), ""
    text, thoughts = "", ""
    for part in content:
        if isinstance(part, dict) and part.get("type") == "thinking":
            inner = part.get("thinking")
            thoughts += _content(inner)[0]
        elif isinstance(part, dict):
            text += _string(part.get("text"))
    return text, thoughts


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _first(counts: Mapping[str, Any], *names: str) -> int:
    return next((n for n in (_number(counts.get(name)) for name in names) if n), 0)


def _detail(counts: Mapping[str, Any], members: tuple[str, ...], name: str) -> int:
    found = (_number(counts[m].get(name)) for m in members if isinstance(counts.get(m), dict))
    return next((n for n in found if n), 0)


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15 else 0
