"""What servers say of a request that is longer than the context: whether they say so, and which numbers they give."""

import re
from collections.abc import Mapping
from typing import Any

# Facts behind each line: what these servers answer when a request is longer than the context.
# Patterns stay text until an error comes: compiling them takes longer than all else in this module's import.
OVERFLOW = "|".join(
    (
        r"maximum (?:context|prompt|model) length",  # OpenAI, vLLM, DeepSeek, OpenRouter, xAI
        r"exceeds? (?:the |this model's )?(?:\w+ )?context (?:size|window|length)",  # OpenAI, llama.cpp
        r"context (?:size|window|length)(?: has been| limit)? exceed",  # llama.cpp, LM Studio
        r"context window exceeds",  # MiniMax
        r"context (?:the )?overflows|n_keep.{0,40}n_ctx",  # LM Studio
        r"(?:longer|greater|larger) than the (?:model's )?context length",  # SGLang, LM Studio
        r"(?:prompt|input)(?: \([^)]*\))? is too long",  # Anthropic, Bedrock, vLLM
        r"input (?:token count|length).{0,40}exceed",  # Google, Ollama, SGLang
        r"token count.{0,40}exceeds the limit|exceeded model token limit",  # Copilot, Moonshot
        r"reduce the length of (?:the|your) (?:messages|prompt|input)",  # Groq
        r"range of input length should be",  # DashScope
        r"tokens.{0,40}max_new_tokens.{0,20}must be <=",  # TGI
        r"request too large for",  # OpenAI: more tokens than the limit of a minute; waiting does not help
    )
)

_N = r"(\d[\d,]{2,10})"
_LIMITS = (
    rf"(?:context|prompt|model) (?:length|size)(?: \(| is | of | of only |: | ){_N}",  # OpenAI, vLLM, xAI, LM Studio
    rf"context (?:size|window|length)(?: of | \(){_N}",  # llama.cpp, llama-cpp-python, SGLang
    rf"n_ctx[: =(]{{1,4}}{_N}",  # LM Studio
    rf"{_N} maximum",  # Anthropic
    rf"maximum number of tokens allowed \(\D{{0,4}}{_N}",  # Google
    rf"(?:token limit|the limit of|(?:TPM\): )?limit):? {_N}",  # Moonshot, Copilot, OpenAI's limit of a minute
    rf"input length should be \[\d+, ?{_N}\]",  # DashScope
    rf"must be <= ?{_N}",  # TGI
)
_ASKED = (
    rf"(?:resulted in|requested:?|contains|your request has)(?: about)? {_N}",  # OpenAI, vLLM, OpenRouter, xAI
    rf"request \({_N} tokens\)",  # llama.cpp
    rf"too long: {_N} tokens",  # Anthropic
    rf"(?:token count|tokens|length)(?: of)? \(?{_N}",  # Google, Copilot, llama-cpp-python, vLLM
    rf"input \({_N} tokens\)",  # SGLang
    rf"n_keep[: =(]{{1,4}}{_N}",  # LM Studio
    rf"total length {_N}",  # vLLM
    rf"given: {_N}",  # TGI
    rf"keep the first {_N}",  # LM Studio
)
_LIMIT_MEMBERS = ("n_ctx",)
_ASKED_MEMBERS = ("n_prompt_tokens",)
"""Members of llama.cpp's error."""


def told(text: str, body: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return what a refusal says: the tokens that the model takes, and those that the request had."""
    limit = _member(body, _LIMIT_MEMBERS) or _number(text, _LIMITS)
    asked = _member(body, _ASKED_MEMBERS) or _number(text, _ASKED, other_than=limit)
    if limit is not None and asked is not None and asked <= limit:
        asked = None  # of the prompt alone, or another number altogether
    return limit, asked


def _member(body: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _number(text: str, patterns: tuple[str, ...], other_than: int | None = None) -> int | None:
    for pattern in patterns:
        for found in re.finditer(pattern, text, re.IGNORECASE):
            number = int(found[1].replace(",", ""))
            if number != other_than and number >= 100:
                return number
    return None
