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
