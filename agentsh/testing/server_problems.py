"""Why a server refuses a request: OpenAI's error object, and the checks of single values, in OpenAI's own words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAME_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME_MAX_CHARS = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a request: OpenAI's error object and the HTTP status that carries it."""

    message: str
    param: str | None = None
    code: str | None = None
    type: str = "invalid_request_error"
    status: int = 400

    def body(self) -> dict[str, object]:
        """The JSON body of the answer, `{"error": {...}}`."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}


UNPARSABLE = Problem(
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP "
    "library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
)


def key_problem(authorization: str | None, api_key: str) -> Problem | None:
    """What is wrong with an `Authorization` header where `api_key` is the only key that is accepted."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        message = (
            "You didn't provide an API key. You need to provide your API key in an Authorization header using "
            "Bearer auth (i.e. Authorization: Bearer YOUR_KEY). You can obtain an API key from "
            "https://platform.openai.com/account/api-keys."
        )
        return Problem(message, status=401)
    if key == api_key:
        return None
    message = (
        f"Incorrect API key provided: {_masked(key)}. "
        "You can find your API key at https://platform.openai.com/account/api-keys."
    )
    return Problem(message, code="invalid_api_key", status=401)


def model_problem(model: object, models: Sequence[str]) -> Problem | None:
    """What is wrong with the model of a request where only `models` exist."""
    if model in models:
        return None
    message = f"The model `{model}` does not exist or you do not have access to it."
    return Problem(message, code="model_not_found", status=404)


def context_problem(body: bytes, max_tokens: int) -> Problem | None:
    """What is wrong with the size of a request body, at four bytes a token, against `max_tokens`."""
    tokens = len(body) // 4
    if tokens <= max_tokens:
        return None
    message = (
        f"This model's maximum context length is {max_tokens} tokens. However, your messages resulted in "
        f"{tokens} tokens. Please reduce the length of the messages."
    )
    return Problem(message, param="messages", code="context_length_exceeded")


def missing(param: str) -> Problem:
    """A required parameter is not there."""
    return Problem(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")


def empty_array(param: str) -> Problem:
    """An array that needs an element has none."""
    message = (
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    )
    return Problem(message, param, "empty_array")


def wrong_type(param: str, expected: str, value: object) -> Problem:
    """A parameter has a JSON type other than the `expected` one (words, such as "a string")."""
    message = f"Invalid type for '{param}': expected {expected}, but got {_type_in_words(value)} instead."
    return Problem(message, param, "invalid_type")


def name_problems(param: str, name: object) -> Iterator[Problem]:
    """What is wrong with the name of a tool."""
    if not isinstance(name, str):
        yield wrong_type(param, "a string", name)
    elif len(name) > NAME_MAX_CHARS:
        message = (
            f"Invalid '{param}': string too long. Expected a string with maximum length {NAME_MAX_CHARS}, "
            f"but got a string with length {len(name)} instead."
        )
        yield Problem(message, param, "string_above_max_length")
    elif not NAME_PATTERN.fullmatch(name):
        message = (
            f"Invalid '{param}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )
        yield Problem(message, param, "invalid_value")


def schema_problems(param: str, name: object, schema: object) -> Iterator[Problem]:
    """What is wrong with the parameters of a tool: a JSON Schema of type object."""
    if not isinstance(schema, dict):
        yield wrong_type(param, "an object", schema)
    elif schema.get("type") != "object":
        kind = schema.get("type")
        got = f'"{kind}"' if isinstance(kind, str) else '"None"'
        message = (
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', "
            f"got 'type: {got}'."
        )
        yield Problem(message, param, "invalid_function_parameters")
    elif not isinstance(schema.get("properties", {}), dict):
        message = f"Invalid schema for function '{name}': 'properties' is not of type 'object'."
        yield Problem(message, param, "invalid_function_parameters")


def argument_problems(param: str, arguments: object) -> Iterator[Problem]:
    """What is wrong with the arguments of a call: a string that holds a JSON object."""
    if not isinstance(arguments, str):
        yield wrong_type(param, "a string", arguments)
        return
    try:
        value = json.loads(arguments, parse_constant=_refuse_constant)
    except ValueError:
        yield Problem(f"Invalid '{param}': the string is not valid JSON.", param, "invalid_value")
        return
    if not isinstance(value, dict):
        yield Problem(f"Invalid '{param}': the string does not hold a JSON object.", param, "invalid_value")


def encodes(body: Mapping[str, Any]) -> bool:
    """Whether a parsed body is JSON for every server, not only for Python's lenient reader."""
    # Half of a surrogate pair, NaN and Infinity pass Python's json and are refused elsewhere.
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _masked(key: str) -> str:
    kept = 4 if len(key) > 12 else 0
    return key[: 2 * kept] + "*" * (len(key) - 3 * kept) + (key[-kept:] if kept else "")


def _type_in_words(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _refuse_constant(name: str) -> object:
    raise ValueError(name)
