"""The service behind the socket: judges each request, takes its reply from the script and plays it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from agentsh.testing import server_chat, server_responses, server_rules, server_rules_responses, server_sse
from agentsh.testing.server_files import write_request
from agentsh.testing.server_problems import UNPARSABLE, Problem, context_problem, key_problem, model_problem
from agentsh.testing.server_script import (
    Cut,
    CutHow,
    Gate,
    Hang,
    ModelReply,
    NoReply,
    Pause,
    PlainReply,
    Raw,
    Reply,
    Script,
    StreamError,
)
from agentsh.testing.server_sse import Frame, Send
from agentsh.testing.server_wire import (
    LAST_CHUNK,
    BadRequestError,
    Connection,
    Headers,
    Received,
    Request,
    chunk,
    head,
)

GATE_POLL_S = 0.005
SEGMENT_GAP_S = 0.0005

Framing = Literal["chunked", "length", "close"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path to post to: how replies are encoded there, and the rules for requests."""

    stream: Callable[[ModelReply, Request, str], Iterator[Frame]]
    completion: Callable[[ModelReply, Request, str], dict[str, Any]]
    problems: Callable[[object], list[Problem]]


ENDPOINTS = {
    "/v1/chat/completions": Endpoint(server_chat.stream, server_chat.completion, server_rules.problems),
    "/v1/responses": Endpoint(server_responses.stream, server_responses.completion, server_rules_responses.problems),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the server accepts, and its limits; `idle_s` in seconds."""

    strict: bool = True
    api_key: str | None = None
    models: tuple[str, ...] | None = None
    max_context_tokens: int | None = None
    model_card: Mapping[str, object] = field(default_factory=dict)
    max_connections: int = 64
    idle_s: float = 60.0
    record_dir: Path | None = None


class Service:
    """Serves connections in one event loop; its lists may be read from any thread."""

    def __init__(self, script: Script, settings: Settings) -> None:
        self.script = script
        self.settings = settings
        self.requests: list[Request] = []
        self.lists: list[Request] = []
        self.failures: list[str] = []
        self.abandoned: list[int] = []
        # Ids must differ between servers too: a session may outlive the server that it began with.
        self._token = os.urandom(3).hex()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until either side closes it."""
        connection = Connection(reader, writer, self.settings.idle_s)
        task = asyncio.current_task()
        if task is None or len(self._tasks) >= self.settings.max_connections:
            self.failures.append(f"more than {self.settings.max_connections} connections at once")
            connection.abort()
            return
        self._tasks.add(task)
        try:
            while await self._exchange(connection):
                pass
        except (ConnectionError, TimeoutError):
            pass  # the client left, or idled; `abandoned` has it where a reply was under way
        except asyncio.CancelledError:
            pass  # only `close` cancels; asyncio 3.11 reports a cancelled connection task as an error
        except Exception as error:  # noqa: BLE001  a fault of the server must fail the test that uses it
            self.failures.append(f"the server failed: {error!r}")
        finally:
            self._tasks.discard(task)
            connection.abort()

    async def close(self) -> None:
        """End all connections at once."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=0.5)
        # Aborted transports close their sockets in callbacks of the next iterations.
        for _ in range(3):
            await asyncio.sleep(0)

    async def _exchange(self, connection: Connection) -> bool:
        """One request and its answer; whether the connection stays open."""
        try:
            received = await connection.receive()
        except BadRequestError as error:
            self.failures.append(f"not a request: {error}")
            await self._plain(connection, _refusal(Problem(str(error), status=error.status)), "req_bad")
            await connection.close()
            return False
        if received is None:
            return False
        request = self._judged(received)
        (self.lists if _is_list(request) else self.requests).append(request)
        if self.settings.record_dir is not None:
            write_request(self.settings.record_dir, request)
        reply_id = f"{self._token}{request.number:04d}"
        try:
            stays = await self._answer(connection, self._reply(request), request, reply_id)
        except ConnectionError:
            self.abandoned.append(request.number)
            raise
        if not stays or received.headers.get("connection", "").lower() == "close":
            await connection.close()
            return False
        return True

    def _judged(self, received: Received) -> Request:
        parsed = _parsed(received.body)
        return Request(
            number=len(self.requests) + 1,
            method=received.method,
            path=received.path,
            headers=received.headers,
            body=received.body,
            json=parsed,
            received_at=received.received_at,
            monotonic_s=received.monotonic_s,
            problems=tuple(self._problems(received, parsed)),
        )

    def _problems(self, received: Received, parsed: Any) -> Iterator[Problem]:
        settings, path = self.settings, received.path.partition("?")[0]
        wanted = "GET" if path == "/v1/models" or path.startswith("/v1/models/") else "POST"
        if wanted == "POST" and path not in ENDPOINTS:
            yield Problem(f"Invalid URL ({received.method} {path})", status=404)
            return
        if received.method != wanted:
            hint = "(HINT: Perhaps you meant to use a different HTTP method?)"
            yield Problem(f"Not allowed to {received.method} on {path} {hint}", status=405)
            return
        if settings.api_key is not None:
            problem = key_problem(received.headers.get("authorization"), settings.api_key)
            if problem:
                yield problem
        if wanted == "GET":
            return
        if not isinstance(parsed, dict):
            yield UNPARSABLE
            return
        yield from self._body_problems(path, received.body, parsed)

    def _body_problems(self, path: str, body: bytes, parsed: dict[str, Any]) -> Iterator[Problem]:
        settings = self.settings
        if settings.models is not None and "model" in parsed:
            problem = model_problem(parsed["model"], settings.models)
            if problem:
                yield problem
        if settings.strict:
            yield from ENDPOINTS[path].problems(parsed)
        if settings.max_context_tokens is not None:
            problem = context_problem(body, settings.max_context_tokens)
            if problem:
                yield problem

    def _reply(self, request: Request) -> Reply:
        if request.problems:
            # Keys, models, paths and overflow are set up by a test on purpose; a malformed body never is.
            faults = [problem for problem in request.problems if _is_fault(problem)]
            self.failures.extend(f"request {request.number}: {problem.message}" for problem in faults)
            return _refusal(request.problems[0])
        if request.method == "GET":
            return self._models(request.path.partition("?")[0])
        try:
            reply = self.script.next(request)
        except Exception as error:  # noqa: BLE001  the test's own code: told at exit, whatever it raised
            self.failures.append(f"request {request.number}: the scripted reply raised {error!r}")
            return _refusal(Problem(f"the scripted reply raised {error!r}", type="server_error", status=500))
        if reply is None:
            message = f"script exhausted: no reply is left for request {request.number}"
            self.failures.append(message)
            return _refusal(Problem(message, type="server_error", code="script_exhausted", status=500))
        return reply

    def _models(self, path: str) -> Reply:
        names = self.settings.models or ("scripted",)
        cards = [
            {"id": name, "object": "model", "created": server_chat.CREATED, "owned_by": "scripted"}
            | dict(self.settings.model_card)
            for name in names
        ]
        if path == "/v1/models":
            return _json_reply({"object": "list", "data": cards})
        wanted = path.removeprefix("/v1/models/")
        problem = model_problem(wanted, names)
        return _refusal(problem) if problem else _json_reply(cards[names.index(wanted)])

    async def _answer(self, connection: Connection, reply: Reply, request: Request, reply_id: str) -> bool:
        """Send a reply; whether the connection stays open."""
        if isinstance(reply, NoReply):
            if reply.delay_s is None:
                await self._hang(connection)
            await asyncio.sleep(reply.delay_s)
            await connection.close(reply.ending)
            return False
        await asyncio.sleep(reply.delay_s)
        if isinstance(reply, PlainReply):
            await self._plain(connection, reply, f"req_{reply_id}")
            return True
        return await self._model_reply(connection, reply, request, reply_id)

    async def _plain(self, connection: Connection, reply: PlainReply, request_id: str) -> None:
        headers = [
            ("Content-Type", reply.content_type),
            ("Content-Length", str(len(reply.body))),
            ("x-request-id", request_id),
        ]
        await connection.send(head(reply.status, _merged(headers, reply.headers)) + reply.body)

    async def _model_reply(self, connection: Connection, reply: ModelReply, request: Request, reply_id: str) -> bool:
        endpoint = ENDPOINTS[request.path.partition("?")[0]]
        framing: Framing
        headers = [("x-request-id", f"req_{reply_id}")]
        frames: Iterable[Frame]
        if not request.streams if reply.as_json is None else reply.as_json:
            body = _json_body(endpoint.completion(reply, request, reply_id), reply)
            framing, frames = "length", _json_frames(body, reply)
            headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        else:
            framing = "chunked" if reply.layout.chunked else "close"
            frames = endpoint.stream(reply, request, reply_id)
            frames = server_sse.laid_out(frames, reply.layout, reply.gap_s)
            headers += [("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache")]
            chunked = framing == "chunked"
            headers.append(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close"))
        await connection.send(head(200, _merged(headers, reply.headers)))
        return await self._play(connection, frames, framing)

    async def _play(self, connection: Connection, frames: Iterable[Frame], framing: Framing) -> bool:
        for frame in frames:
            match frame:
                case Send(data, framed, apart):
                    await connection.send(chunk(data) if framing == "chunked" and framed else data)
                    if apart:
                        await asyncio.sleep(SEGMENT_GAP_S)
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Gate():
                    await self._stand_at(frame, connection)
                case Hang():
                    await self._hang(connection)
                case Cut(how):
                    return await self._cut(connection, how, framing)
        if framing == "chunked":
            await connection.send(LAST_CHUNK)
        return framing != "close"

    async def _cut(self, connection: Connection, how: CutHow, framing: Framing) -> bool:
        if how == "end" and framing == "chunked":
            await connection.send(LAST_CHUNK)
            return True
        if how == "mid_chunk" and framing == "chunked":
            await connection.send(chunk(b'data: {"id":"chatcmpl-' + b"." * 200)[:-100])
        await connection.close("rst" if how == "rst" else "fin")
        return False

    async def _stand_at(self, gate: Gate, connection: Connection) -> None:
        gate.reached.set()
        while not gate.opened.is_set():
            if connection.client_left():
                raise ConnectionResetError("the client left at a gate")
            await asyncio.sleep(GATE_POLL_S)

    async def _hang(self, connection: Connection) -> NoReturn:
        """Say nothing. Raises: TimeoutError at the idle limit, ConnectionResetError when the client leaves."""
        async with asyncio.timeout(self.settings.idle_s):
            await connection.wait_left()
        raise ConnectionResetError("the client left a reply that hangs")


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _is_list(request: Request) -> bool:
    """Whether it asks for the list of models: a client may do that at any moment, so it is counted apart."""
    return request.method == "GET" and request.path.partition("?")[0].startswith("/v1/models")


def _is_fault(problem: Problem) -> bool:
    return problem.status == 400 and problem.code != "context_length_exceeded"


def _merged(headers: list[tuple[str, str]], scripted: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Scripted headers replace those of the server."""
    names = Headers(scripted)
    return [pair for pair in headers if pair[0] not in names] + list(scripted)


def _json_reply(value: object, status: int = 200) -> PlainReply:
    return PlainReply(status=status, body=server_sse.dumps(value).encode())


def _refusal(problem: Problem) -> PlainReply:
    return _json_reply(problem.body(), problem.status)


def _json_body(value: object, reply: ModelReply) -> bytes:
    for step in reply.steps:
        if isinstance(step, StreamError):
            value = server_chat.error_json(step)
    garbage = b"".join(step.data for step in reply.steps if isinstance(step, Raw))
    return server_sse.dumps(value, escape=reply.layout.escape).encode() + garbage


def _json_frames(body: bytes, reply: ModelReply) -> Iterator[Frame]:
    """The pauses of the reply, then its body; half of it where the reply is cut."""
    for step in reply.steps:
        if isinstance(step, Pause | Gate):
            yield step
        elif isinstance(step, Cut | Hang):
            yield Send(body[: len(body) // 2])
            yield step
            return
    yield Send(body)
