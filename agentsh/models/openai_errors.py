"""The one place where errors of the openai client, of HTTP and of servers become ModelErrors. Total."""

import json
import math
import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from agentsh.base.errors import (
    ContextOverflow,
    ModelError,
    ModelKeyRefused,
    ModelUnavailable,
    ModelUnknown,
    RequestRejected,
    StreamCut,
    StreamGarbled,
)
from agentsh.base.light import dataclass, field
from agentsh.base.text import one_line
from agentsh.models.chat_reply import ErrorInReply
from agentsh.models.overflow_words import OVERFLOW, told
from agentsh.ports.model import Endpoint

MAX_MESSAGE_CHARS = 300
CHECK_URL = "check OPENAI_BASE_URL: does it end in /v1?"
CHECK_KEY = "check OPENAI_API_KEY"
NO_CREDIT = "add credit at the provider, or use another key"
SHORTEN = "shorten the conversation or use a model with a larger context"
OTHER_MODEL = "choose another with --model or AGENTSH_MODEL"

OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})
QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})

# Patterns stay text until an error comes: compiling them takes longer than all else in this module's import.
_QUOTA = r"insufficient (?:balance|credit|funds)|(?:more|enough) credits"
_BAD_KEY = r"api key not valid|(?:invalid|incorrect) api key|no auth credentials"
_NO_MODEL = (
    r"model\b.{0,120}(?:not (?:be )?(?:found|exist|supported)|unknown|invalid|no longer)"
    r"|not a valid model|(?:unknown|invalid|no such) model|no endpoints found|deployment .{0,60}not exist"
)
_TITLE = r"<title[^>]*>(.*?)</title>"


def _in(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    """What a server said of an error. codes: its `code` and `type`, lower case. status: HTTP's, or in the body.

    body: the error object, as it came.
    """

    text: str
    codes: frozenset[str]
    status: int | None
    body: Mapping[str, Any] = field(default_factory=dict)

    def overflow(self) -> bool:
        """Whether the request was longer than the context."""
        return bool(self.codes & OVERFLOW_CODES or _in(OVERFLOW, self.text))

    def quota(self) -> bool:
        """Whether the account has nothing left, so that no retry helps."""
        return self.status == 402 or bool(self.codes & QUOTA_CODES or _in(_QUOTA, self.text))

    def bad_key(self) -> bool:
        """Whether the key was refused, whatever the status."""
        return self.status in (401, 403) or "invalid_api_key" in self.codes or bool(_in(_BAD_KEY, self.text))

    def no_model(self) -> bool:
        """Whether the model is not there."""
        return "model_not_found" in self.codes or bool(_in(_NO_MODEL, self.text))


def foreign() -> tuple[type[Exception], ...]:
    """Return the classes that `translate` is for.

    ValueError and RecursionError: JSON that is none, or is too deep. anyio's: not all of them reach httpx2's tree.
    """
    from agentsh.models.openai_loading import load_openai

    load_openai()
    import anyio
    import httpx2
    import openai

    http = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)
    streams = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
    return (openai.OpenAIError, *http, *streams, ErrorInReply, OSError, ValueError, RecursionError)


def translate(error: Exception, endpoint: Endpoint, *, began: bool = False, shown: bool = False) -> ModelError:
    """Return what `error` is in our tree. Never fails, never tells the key.

    began: the answer had begun (status 200). shown: text of it was shown, so that it may only count as cut.
    """
    found = _translated(error, endpoint, began=began)
    if shown and not isinstance(found, StreamCut):
        return _error(StreamCut, endpoint, f"the answer broke off: {found.message}", found.hint)
    return found


def _translated(error: Exception, endpoint: Endpoint, *, began: bool) -> ModelError:
    from agentsh.models.openai_loading import load_openai

    load_openai()
    import httpx2
    import openai

    url = shown_url(endpoint.base_url)
    match error:
        case ModelError():
            return error
        case ErrorInReply():
            return _said(_said_in(error.body, None), endpoint, {})
        case openai.APIStatusError():
            headers = error.response.headers
            return _said(_said_in(error.body, error.status_code), endpoint, headers)
        case openai.APITimeoutError() | httpx2.TimeoutException() | TimeoutError():
            return _timeout(endpoint, _cause(error), began=began)
        case openai.APIResponseValidationError() | httpx2.DecodingError() | ValueError() | RecursionError():
            return garbled(endpoint, str(error))
        case openai.APIConnectionError() | httpx2.RequestError() | httpx2.StreamError() | OSError():
            return _connection(_cause(error), endpoint, began=began)
        case httpx2.InvalidURL():
            return _error(ModelUnknown, endpoint, f"{url} is no URL that can be reached: {error}", CHECK_URL)
        case openai.APIError():
            return _said(_said_in(error.body or {"message": error.message}, None), endpoint, {})
        case _ if isinstance(error, foreign()) and not isinstance(error, openai.OpenAIError):  # anyio's
            return _connection(error, endpoint, began=began)
        case _:
            return _error(ModelError, endpoint, f"the client for {url} failed: {error or type(error).__name__}", None)


def garbled(endpoint: Endpoint, why: str) -> StreamGarbled:
    """Return the error for an answer that is not the protocol."""
    text = f"the server at {shown_url(endpoint.base_url)} did not answer in the Chat Completions protocol: {why}"
    return StreamGarbled(_clean(text, endpoint), hint=CHECK_URL)


def shown_url(url: str) -> str:
    """Return a URL fit for a message: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host:
        return one_line(url.partition("?")[0].rpartition("@")[2], 100) or "(no URL)"
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}".rstrip("/")


def check_url(endpoint: Endpoint) -> str:
    """Return the base URL to use.

    Raises:
        ModelUnknown: it has no http or https, no host, or a port that is none.
    """
    url = endpoint.base_url.strip()
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole:
        raise ModelUnknown(
            f"{shown_url(url)} is no URL of a server", hint="OPENAI_BASE_URL is like http://host:8080/v1"
        )
    return url


def described(body: str) -> str:
    """Return what a body that is no JSON says, in a few words: the title of a page, else its first words."""
    if body.lstrip().startswith("<"):
        title = _in(_TITLE, body)
        return f"an HTML page {one_line(title[1], 80)!r}" if title else "an HTML page"
    return one_line(body, 120) or "nothing"


def _said(said: Said, endpoint: Endpoint, headers: Mapping[str, str]) -> ModelError:
    """Map what a server said; by its meaning first, because statuses are used loosely."""
    url, text, status = shown_url(endpoint.base_url), said.text, said.status
    where = f"{url} (HTTP {status})" if status else url
    if said.quota():
        return _error(ModelKeyRefused, endpoint, f"no credit is left at {where}: {text}", NO_CREDIT)
    if said.overflow():
        message = _clean(f"the request is longer than the model's context: {text}", endpoint)
        limit, asked = told(text[:2_000], said.body)
        return ContextOverflow(message, hint=SHORTEN, limit_tokens=limit, request_tokens=asked)
    if said.bad_key():
        hint = CHECK_KEY if status != 403 else f"{CHECK_KEY} and what it may use"
        return _error(ModelKeyRefused, endpoint, f"the key was refused by {where}: {text}", hint)
    if status in (400, 404, 410, 422) and said.no_model():
        return _error(ModelUnknown, endpoint, f"no such model at {where}: {text}", OTHER_MODEL)
    if status in (404, 405, 410):
        return _error(ModelUnknown, endpoint, f"{url} has no Chat Completions (HTTP {status}): {text}", CHECK_URL)
    if status and 400 <= status < 500 and status not in (408, 409, 425, 429):
        return _error(RequestRejected, endpoint, f"the request was refused by {where}: {text}", None)
    message = _clean(f"the model is not available at {where}: {text}", endpoint)
    return ModelUnavailable(message, retry_after_s=retry_after_s(headers))


def _said_in(body: object, status: int | None) -> Said:
    if isinstance(body, str):
        return Said(described(body), frozenset(), status)
    if not isinstance(body, Mapping):
        return Said("no reason given" if body is None else described(json.dumps(body)), frozenset(), status)
    codes = frozenset(str(body[name]).lower() for name in ("code", "type") if body.get(name) is not None)
    text = next((body[n] for n in ("message", "detail", "error", "msg") if body.get(n)), None)
    text = text if isinstance(text, str) else json.dumps(text or dict(body), ensure_ascii=False, default=str)
    if isinstance(raw := _raw(body), str):
        text = f"{text}: {raw}"
    if status is None:  # inside a stream the body is all there is
        status = next((int(c) for c in codes if c.isdecimal() and 400 <= int(c) < 600), None)
    return Said(text, codes, status, body)


def _raw(body: Mapping[str, Any]) -> object:
    """Return what OpenRouter passes on of the provider behind it; its own message says little."""
    metadata = body.get("metadata")
    return metadata.get("raw") if isinstance(metadata, Mapping) else None


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a server asks to wait, or None. From `retry-after-ms`, or `retry-after`.

    The latter is in seconds or a date (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after).
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if not value:
            continue
        try:
            seconds = float(value) * unit_s
        except ValueError:
            from email.utils import parsedate_to_datetime

            try:
                from email.utils import parsedate_to_datetime

                moment = parsedate_to_datetime(value)
            except ValueError:
                continue
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            seconds = (moment - (now or datetime.now(UTC))).total_seconds()
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    return None


def _timeout(endpoint: Endpoint, cause: BaseException, *, began: bool) -> ModelError:
    url = shown_url(endpoint.base_url)
    if began:
        return _error(StreamCut, endpoint, f"the answer of {url} stopped: silent for {endpoint.timeout_s:g} s", None)
    what = "no connection to" if "Connect" in type(cause).__name__ else "no answer from"
    return ModelUnavailable(_clean(f"{what} {url} in time (limit {endpoint.timeout_s:g} s)", endpoint))


def _connection(cause: BaseException, endpoint: Endpoint, *, began: bool) -> ModelError:
    import httpx2

    url, why = shown_url(endpoint.base_url), _why(cause)
    if began:
        return _error(StreamCut, endpoint, f"the connection to {url} broke in the middle of the answer: {why}", None)
    kinds = (httpx2.UnsupportedProtocol, httpx2.TooManyRedirects)
    if any(isinstance(one, kinds) for one in _chain(cause)):
        return _error(ModelUnknown, endpoint, f"{url} is no URL that can be reached: {why}", CHECK_URL)
    if any(isinstance(one, httpx2.LocalProtocolError) for one in _chain(cause)):
        return _error(RequestRejected, endpoint, f"the request to {url} cannot be sent: {why}", None)
    hint = "is the server running?" if is_loopback(endpoint.base_url) else "check the network and OPENAI_BASE_URL"
    return ModelUnavailable(_clean(f"{url} cannot be reached: {why}", endpoint), hint=hint)


def _cause(error: BaseException) -> BaseException:
    """Return what the client wrapped."""
    return error.__cause__ or error


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        inner = found.exceptions[0] if isinstance(found, BaseExceptionGroup) else None
        found = inner or found.__cause__ or found.__context__


def _why(error: BaseException) -> str:
    """Return the reason in plain words: the innermost one that says what happened."""
    import socket

    for one in _chain(error):
        match one:
            case ConnectionRefusedError():
                return "connection refused"
            case socket.gaierror():
                return "no such host"
            case ssl.SSLError():
                return f"TLS: {getattr(one, 'verify_message', '') or getattr(one, 'reason', '') or one}"
            case ConnectionResetError():
                return "connection reset"
    return str(error) or type(error).__name__


def is_loopback(url: str) -> bool:
    """Tell whether a URL names this machine: `localhost`, 127.0.0.0/8 or ::1."""
    import ipaddress

    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _error(kind: type[ModelError], endpoint: Endpoint, message: str, hint: str | None) -> ModelError:
    return kind(_clean(message, endpoint), hint=hint)


MIN_SECRET_CHARS = 8
"""A shorter key is a stand-in for a local server, and a word that messages may hold."""


def _clean(message: str, endpoint: Endpoint) -> str:
    key = (endpoint.api_key or "").strip()
    if len(key) >= MIN_SECRET_CHARS:
        message = message.replace(key, "‹key›")
    return one_line(message, MAX_MESSAGE_CHARS)
