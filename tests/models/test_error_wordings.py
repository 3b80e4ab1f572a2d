"""The words in which servers say that a model, a path or a key is wrong, or a request too long."""

from typing import Any

import httpx2
import openai
import pytest

from agentsh.base.errors import ContextOverflow, ModelKeyRefused, ModelUnknown, RequestRejected
from agentsh.models.chat_reply import ErrorInReply
from agentsh.models.openai_errors import translate
from agentsh.ports.model import Endpoint
from agentsh.testing.server import ScriptedServer, error, html_error
from tests.models.wire import KEY, fails

ENDPOINT = Endpoint("https://api.example.com/v1", KEY)


async def test_a_missing_model_is_told_from_a_missing_path() -> None:
    with ScriptedServer(models=["llama3"]) as server:
        model = (await fails(server.base_url)).error
        path = (await fails(server.base_url.removesuffix("/v1"))).error
        page = (await fails(server.base_url + "/oops")).error
    assert isinstance(model, ModelUnknown)
    assert "`gpt-5` does not exist" in model.message
    assert "--model" in (model.hint or "")
    for wrong in (path, page):
        assert isinstance(wrong, ModelUnknown)
        assert "OPENAI_BASE_URL" in (wrong.hint or "")
        assert "/v1" in (wrong.hint or "")


MODEL_MISSING = [
    (404, "model 'llama9' not found, try pulling it first"),  # Ollama
    (404, "The model `x` does not exist."),  # vLLM
    (400, "Model Not Exist"),  # DeepSeek
    (400, "x/y is not a valid model ID"),  # OpenRouter
    (404, "The API deployment for this resource does not exist."),  # Azure
    (404, "No endpoints found for x/y."),  # OpenRouter
]


@pytest.mark.parametrize(("status", "message"), MODEL_MISSING)
async def test_wordings_of_a_missing_model(status: int, message: str) -> None:
    with ScriptedServer([error(status, message)]) as server:
        found = (await fails(server.base_url)).error
    assert isinstance(found, ModelUnknown)
    assert "--model" in (found.hint or "")


PATH_MISSING = [
    "404 page not found",
    '{"detail":"Not Found"}',
    '{"error":"Unexpected endpoint or method. (POST /x)"}',
]


@pytest.mark.parametrize("body", PATH_MISSING)
async def test_wordings_of_a_missing_path(body: str) -> None:
    with ScriptedServer([html_error(404, body)]) as server:
        found = (await fails(server.base_url)).error
    assert isinstance(found, ModelUnknown)
    assert "/v1" in (found.hint or "")


OVERFLOWS: list[tuple[int, dict[str, Any]]] = [
    (400, {"message": "Too long.", "code": "context_length_exceeded"}),
    (
        400,
        {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000."},
    ),
    (400, {"message": "Your input exceeds the context window of this model."}),
    (
        400,
        {
            "code": 400,
            "message": "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_ctx": 4096,
        },
    ),
    (500, {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}),
    (400, {"message": "Requested tokens (2285) exceed context window of 2048"}),
    (400, {"message": "The decoder prompt (length 17772) is longer than the maximum model length of 16384."}),
    (400, {"message": "The prompt (total length 25938) is too long to fit into the model (context length 4096)."}),
    (400, {"message": "Trying to keep the first 111490 tokens when context the overflows. However, the model is"}),
    (400, {"message": "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}),
    (
        400,
        {"message": "This endpoint's maximum context length is 1048576 tokens. However, you requested about 1293741"},
    ),
    (400, {"message": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."}),
    (400, {"message": "the input length exceeds the context length"}),
    (400, {"message": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    (400, {"message": "Please reduce the length of the messages or completion."}),
    (400, {"message": "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"}),
    (400, {"message": "The input (9000 tokens) is longer than the model's context length (8192 tokens)."}),
    (413, {"message": "prompt is too long: 213462 tokens > 200000 maximum"}),
    (
        429,
        {
            "message": "Request too large for gpt-5 in organization x on tokens per min (TPM): Limit 30000",
            "type": "tokens",
        },
    ),
]


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
async def test_wordings_of_a_context_overflow(status: int, body: dict[str, Any]) -> None:
    found = translate(_status_error(status, {"error": body}), ENDPOINT)
    assert type(found) is ContextOverflow
    assert not found.retryable
    assert found.hint
    in_stream = translate(ErrorInReply(body), ENDPOINT, began=True)
    assert type(in_stream) is ContextOverflow


@pytest.mark.parametrize(
    ("message", "limit", "asked"),
    [
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.", 8192, 9000),
        ("maximum context length is 4097 tokens, however you requested 5000 tokens (4000 in your prompt", 4097, 5000),
        ("request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 4390),
        ("Requested tokens (2285) exceed context window of 2048", 2048, 2285),
        ("The decoder prompt (length 17772) is longer than the maximum model length of 16384.", 16384, 17772),
        ("The prompt (total length 25938) is too long to fit into the model (context length 4096).", 4096, 25938),
        ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424, 15028),
        ("maximum context length is 1048576 tokens. However, you requested about 1293741 tokens", 1048576, 1293741),
        ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1048575, 1196265),
        ("maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
        ("Your request exceeded model token limit: 262144 (requested: 291351)", 262144, 291351),
        ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192, 9000),
        ("prompt is too long: 213462 tokens > 200000 maximum", 200000, 213462),
        ("Request too large for x on tokens per min (TPM): Limit 30000, Requested 41234.", 30000, 41234),
        ("prompt token count of 130000 exceeds the limit of 128000", 128000, 130000),
        ("Range of input length should be [1, 129024]", 129024, None),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20", 4096, 5000),
        ("keep the first 111490 tokens when context the overflows: context length of only 4096 tokens", 4096, 111490),
        ("invalid params, context window exceeds limit (2013)", None, None),
        ("the input length exceeds the context length", None, None),
        ("Please reduce the length of the messages or completion.", None, None),
    ],
)
async def test_numbers_of_a_context_overflow(message: str, limit: int | None, asked: int | None) -> None:
    found = translate(
        _status_error(400, {"error": {"message": message, "code": "context_length_exceeded"}}), ENDPOINT
    )
    assert isinstance(found, ContextOverflow)
    assert (found.limit_tokens, found.request_tokens) == (limit, asked)


async def test_members_of_an_overflow_win_over_its_words() -> None:
    body = {
        "message": "too long: 999 tokens",
        "type": "exceed_context_size_error",
        "n_ctx": 512,
        "n_prompt_tokens": 700,
    }
    found = translate(_status_error(400, {"error": body}), ENDPOINT)
    assert isinstance(found, ContextOverflow)
    assert (found.limit_tokens, found.request_tokens) == (512, 700)


async def test_a_context_overflow_over_the_wire() -> None:
    with ScriptedServer(max_context_tokens=10) as server:
        assert type((await fails(server.base_url)).error) is ContextOverflow


NO_OVERFLOW = [
    "Request entity too large.",
    "Invalid request.",
    "max_tokens is too large: 99999.",
    "context is required",
]


@pytest.mark.parametrize("message", NO_OVERFLOW)
async def test_what_is_no_overflow(message: str) -> None:
    assert type(translate(_status_error(400, {"error": {"message": message}}), ENDPOINT)) is RequestRejected


async def test_a_bad_key_by_a_status_that_does_not_say_so() -> None:
    found = translate(_status_error(400, [{"error": {"message": "API key not valid."}}][0]), ENDPOINT)
    assert isinstance(found, ModelKeyRefused)
    assert "OPENAI_API_KEY" in (found.hint or "")


def _status_error(status: int, body: dict[str, Any]) -> openai.APIStatusError:
    response = httpx2.Response(status, request=httpx2.Request("POST", ENDPOINT.base_url), json=body)
    return openai.APIStatusError(f"Error code: {status}", response=response, body=body.get("error", body))
