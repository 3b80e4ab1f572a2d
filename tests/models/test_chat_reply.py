"""Chunks as servers really send them: fragments of calls, places of usage, words for the end."""

from random import Random
from typing import Any

import pytest

from agentsh.events.base import Usage
from agentsh.events.signals import ReasoningDelta, TextDelta
from agentsh.models.chat_reply import Assembly, ErrorInReply
from agentsh.ports.model import Reply

A, B = ("a", '{"x":1}'), ("b", '{"y":2}')


def whole(*chunks: Any) -> Reply:
    assembly = Assembly()
    for chunk in chunks:
        list(assembly.take(chunk))
    list(assembly.rest())
    return assembly.reply(model="m")


def delta(finish: str | None = None, **members: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


def call(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found: dict[str, Any] = {"function": function}
    return found | {key: value for key, value in (("index", index), ("id", id)) if value is not None}


def calls(*fragments: Any) -> list[tuple[str, str, str]]:
    """Each fragment in a chunk of its own; a list of them in one."""
    chunks = [delta(tool_calls=f if isinstance(f, list) else [f]) for f in fragments]
    return [(c.id, c.name, c.arguments) for c in whole(*chunks).calls]


CALLS: list[tuple[str, tuple[Any, ...], list[tuple[str, str, str]]]] = [
    (
        "as OpenAI",
        (call(0, "1", "a", ""), call(0, None, None, '{"x"'), call(0, None, None, ":1}"), call(1, "2", *B)),
        [("1", *A), ("2", *B)],
    ),
    (
        "interleaved",
        (call(0, "1", "a", ""), call(1, "2", "b", ""), call(0, None, None, A[1]), call(1, None, None, B[1])),
        [("1", *A), ("2", *B)],
    ),
    ("id repeated", (call(0, "1", "a", '{"x"'), call(0, "1", None, ":1}")), [("1", *A)]),
    ("id and name repeated", (call(0, "1", "a", '{"x"'), call(0, "1", "a", ":1}")), [("1", *A)]),
    ("a new id for each fragment", (call(0, "1", "a", '{"x"'), call(0, "9", None, ":1}")), [("1", *A)]),
    ("id late", (call(0, None, "a", ""), call(0, "1", None, A[1])), [("1", *A)]),
    ("no ids", (call(0, None, *A), call(1, None, *B)), [("", *A), ("", *B)]),
    ("no ids, one index", (call(0, None, *A), call(0, None, *B)), [("", *A), ("", *B)]),
    (
        "one index, new ids (Ollama)",
        (call(0, "1", *A), call(0, "2", *B), call(0, "3", *A)),
        [("1", *A), ("2", *B), ("3", *A)],
    ),
    (
        "one index, in fragments",
        (call(0, "1", "a", ""), call(0, None, None, A[1]), call(0, "2", *B)),
        [("1", *A), ("2", *B)],
    ),
    ("no index, whole", (call(None, "1", *A), call(None, "2", *B)), [("1", *A), ("2", *B)]),
    ("no index, one chunk", ([call(None, "1", *A), call(None, "2", *B)],), [("1", *A), ("2", *B)]),
    ("no index, no id", (call(None, None, *A), call(None, None, *B)), [("", *A), ("", *B)]),
    (
        "no index in fragments",
        (call(None, "1", "a", ""), call(None, None, None, A[1]), call(None, "2", *B)),
        [("1", *A), ("2", *B)],
    ),
    (
        "no index, by id",
        (call(None, "1", "a", '{"x"'), call(None, "2", *B), call(None, "1", None, ":1}")),
        [("1", *A), ("2", *B)],
    ),
    ("one id for all", (call(0, "1", *A), call(1, "1", *B)), [("1", *A), ("1", *B)]),
    ("name in pieces", (call(0, "1", "re", ""), call(0, None, "ad", None)), [("1", "read", "{}")]),
    ("no arguments", (call(0, "1", "a"),), [("1", "a", "{}")]),
    ("arguments an object", (call(0, "1", "a", {"ü": 1}),), [("1", "a", '{"ü": 1}')]),
    ("arguments broken", (call(0, "1", "a", '{"x":'),), [("1", "a", '{"x":')]),
    ("no function", ({"index": 0, "id": "1"},), [("1", "", "{}")]),
    ("nonsense", ([None, 5, {"index": "x", "function": []}],), [("", "", "{}")]),
]


@pytest.mark.parametrize(("fragments", "expected"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_calls_from_fragments(fragments: tuple[Any, ...], expected: list[tuple[str, str, str]]) -> None:
    assert calls(*fragments) == expected


def test_the_legacy_function_call() -> None:
    chunks = [{"name": "read", "arguments": ""}, {"arguments": '{"x":'}, {"arguments": "1}"}]
    got = whole(*(delta(function_call=c) for c in chunks), delta("function_call"))
    assert [(c.name, c.arguments) for c in got.calls] == [("read", '{"x":1}')]
    assert got.finish == "tool_calls"


FINISHES = [
    ("stop", "stop"), ("eos", "stop"), ("end_turn", "stop"), ("STOP", "stop"), ("anything", "stop"),
    ("tool_calls", "stop"), ("length", "length"), ("MAX_TOKENS", "length"), ("content_filter", "content_filter"),
    ("SAFETY", "content_filter"),
]  # fmt: skip


@pytest.mark.parametrize(("word", "finish"), FINISHES)
def test_words_for_the_end(word: str, finish: str) -> None:
    assert whole(delta(word, content="x")).finish == finish


@pytest.mark.parametrize(("word", "finish"), [("stop", "tool_calls"), ("eos", "tool_calls"), ("length", "length")])
def test_calls_count_whatever_the_word(word: str, finish: str) -> None:
    assert whole(delta(tool_calls=[call(0, "1", *A)]), delta(word)).finish == finish


@pytest.mark.parametrize("word", ["error", "abort", "insufficient_system_resource"])
def test_an_end_that_says_it_is_none(word: str) -> None:
    with pytest.raises(ErrorInReply):
        whole(delta(word))


@pytest.mark.parametrize("word", [None, "", "null"])
def test_no_end_yet(word: str | None) -> None:
    assembly = Assembly()
    list(assembly.take(delta(word, content="x")))
    assert assembly.finish is None


P, C = {"prompt_tokens": 10, "completion_tokens": 4}, Usage(prompt=10, cached=0, completion=4, reasoning=0)
DETAILS = {"prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 3}}
USAGES: list[tuple[str, dict[str, Any], Usage | None]] = [
    ("plain", {"usage": P}, C),
    ("details", {"usage": P | DETAILS}, Usage(prompt=10, cached=8, completion=4, reasoning=3)),
    ("null details", {"usage": P | {"prompt_tokens_details": None, "completion_tokens_details": {}}}, C),
    ("DeepSeek", {"usage": P | {"prompt_cache_hit_tokens": 6}}, C.model_copy(update={"cached": 6})),
    ("Moonshot", {"choices": [{"delta": {}, "usage": P | {"cached_tokens": 5}}]}, C.model_copy(update={"cached": 5})),
    ("Groq", {"x_groq": {"usage": P}}, C),
    ("Responses", {"usage": {"input_tokens": 10, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 2}}},
     C.model_copy(update={"cached": 2})),
    ("xAI", {"usage": P | {"total_tokens": 17, "completion_tokens_details": {"reasoning_tokens": 3}}},
     Usage(prompt=10, cached=0, completion=7, reasoning=3)),
    ("floats", {"usage": {"prompt_tokens": 10.0, "completion_tokens": 4.0}}, C),
    ("more cached than sent", {"usage": P | {"cached_tokens": 99}}, C.model_copy(update={"cached": 10})),
    ("zeros", {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, None),
    ("nonsense", {"usage": {"prompt_tokens": "many", "completion_tokens": -1}}, None),
    ("null", {"usage": None}, None),
]  # fmt: skip


@pytest.mark.parametrize(("chunk", "usage"), [u[1:] for u in USAGES], ids=[u[0] for u in USAGES])
def test_usage_in_every_known_shape(chunk: dict[str, Any], usage: Usage | None) -> None:
    assert whole({"choices": []} | chunk).usage == usage


def test_the_last_usage_counts_and_a_null_after_it_does_not() -> None:
    early = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}
    assert whole(early, {"choices": [], "usage": P}, {"choices": [], "usage": None}).usage == C


def test_reasoning_under_both_names_counts_once() -> None:
    assert whole(delta(reasoning="hm", reasoning_content="hm")).reasoning == "hm"


def test_content_in_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    got = whole(delta(content=[thinking, {"type": "text", "text": "hi"}]))
    assert (got.text, got.reasoning) == ("hi", "hm")


def test_a_refusal_is_text() -> None:
    assert whole(delta(content=None, refusal="I will not."), delta("stop")).text == "I will not."


def test_a_character_cut_in_two_is_put_together() -> None:
    assembly, shown = Assembly(), list[Any]()
    for piece in ("a\ud83d", "\ude42b", "\ude42", "c\ud83d"):
        shown += assembly.take(delta(content=piece))
    shown += assembly.take(delta(reasoning="x\ud83d"))
    shown += assembly.rest()
    texts = [d.text for d in shown if isinstance(d, TextDelta)]
    assert texts == ["a", "🙂b", "\ufffd", "c", "\ufffd"]
    assert [d.text for d in shown if isinstance(d, ReasoningDelta)] == ["x", "\ufffd"]
    got = assembly.reply(model="m")
    assert (got.text, got.reasoning) == ("".join(texts), "x\ufffd")


@pytest.mark.parametrize("chunk", [None, 5, "x", [], {}, {"choices": "x"}, {"status": "ok"}])
def test_what_is_no_chunk(chunk: Any) -> None:
    with pytest.raises(ValueError, match="chunk"):
        whole(chunk)


@pytest.mark.parametrize(
    "chunk", [{"error": "no"}, {"error": {"message": "no"}}, {"object": "error", "message": "no"}]
)
def test_an_error_in_a_chunk(chunk: Any) -> None:
    with pytest.raises(ErrorInReply):
        whole(chunk)


NAMES = [
    "choices", "delta", "message", "content", "refusal", "reasoning", "reasoning_content", "tool_calls",
    "function", "name", "arguments", "id", "index", "function_call", "finish_reason", "usage",
    "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens",
    "completion_tokens_details", "total_tokens", "x_groq", "error", "object", "model", "type", "thinking",
    "text",
]  # fmt: skip
LEAVES = [None, True, 0, -1, 1e300, "", "stop", "error", "x\ud83d", *NAMES]


def some_json(random: Random, depth: int = 0) -> Any:
    """Any JSON, of the names that mean something in chunks."""
    kind = random.random() if depth < 6 else 1.0
    if kind < 0.25:
        return [some_json(random, depth + 1) for _ in range(random.randrange(3))]
    if kind < 0.75:
        return {random.choice(NAMES): some_json(random, depth + 1) for _ in range(random.randrange(6))}
    return random.choice(LEAVES)


def test_whatever_comes_it_is_taken_or_refused_in_one_of_two_ways() -> None:
    random, taken = Random(7), 0
    for _ in range(1000):
        shown: list[Any] = []
        assembly = Assembly()
        for _ in range(4):
            chunk = some_json(random)
            if random.random() < 0.8:
                chunk = {"choices": [{"delta": {random.choice(NAMES): chunk for _ in range(3)}}]}
            try:
                shown += assembly.take(chunk)
                taken += 1
            except (ValueError, ErrorInReply):
                continue
        shown += assembly.rest()
        got = assembly.reply(model="m")
        assert got.text == "".join(d.text for d in shown if isinstance(d, TextDelta))
        (got.text + (got.reasoning or "")).encode()
    assert taken > 1000
