"""A scripted OpenAI-compatible HTTP server for tests, in a thread of the test or as a process of its own.

    with ScriptedServer([reply(calls=[call("shell", {"command": "ls"})]), reply("Done.")]) as server:
        run_agent(base_url=server.base_url)
        assert server.requests[1].messages[-1]["role"] == "tool"

It speaks `POST /v1/chat/completions`, `POST /v1/responses` and `GET /v1/models`, on the loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from agentsh.testing.server_files import ScriptFileError, read_script
from agentsh.testing.server_http import Service, Settings
from agentsh.testing.server_problems import Problem
from agentsh.testing.server_replies import (
    call,
    closed,
    cut_stream,
    error,
    forever,
    hang,
    html_error,
    json_reply,
    malformed,
    quota_exceeded,
    reply,
    stream_error,
)
from agentsh.testing.server_script import (
    AUTO,
    FRESH,
    CallDelta,
    Comment,
    Cut,
    EmptyChoices,
    Event,
    Finish,
    Gate,
    Hang,
    Layout,
    ModelReply,
    NoReply,
    Pause,
    PlainReply,
    Raw,
    Reasoning,
    Reply,
    Script,
    ScriptItem,
    StreamError,
    Text,
    Together,
    Usage,
)
from agentsh.testing.server_wire import MAX_HEAD_BYTES, Headers, Request

__all__ = [
    "AUTO",
    "FRESH",
    "CallDelta",
    "Comment",
    "Cut",
    "EmptyChoices",
    "Event",
    "Finish",
    "Gate",
    "Hang",
    "Headers",
    "Layout",
    "ModelReply",
    "NoReply",
    "Pause",
    "PlainReply",
    "Problem",
    "Raw",
    "Reasoning",
    "Reply",
    "Request",
    "ScriptError",
    "ScriptFileError",
    "ScriptedServer",
    "StreamError",
    "Text",
    "Together",
    "Usage",
    "call",
    "closed",
    "cut_stream",
    "error",
    "forever",
    "hang",
    "html_error",
    "json_reply",
    "malformed",
    "quota_exceeded",
    "refusing",
    "reply",
    "stream_error",
]

HOST = "127.0.0.1"


class ScriptError(AssertionError):
    """The client did what the script does not allow: more requests than replies, or a malformed request."""


class ScriptedServer:
    """Answers each request with the next reply of its script; runs in a thread of its own.

    Requests that are refused (unknown path, wrong key, broken rules) and `GET /v1/models` take no reply.

    `strict`: refuse chat and responses requests that OpenAI would refuse. `api_key`: the only key accepted
    (None: any, or none). `models`: the only models (None: any). `max_context_tokens`: refuse larger bodies, at
    four bytes a token. `model_card`: members of each entry of `GET /v1/models`, such as a window.
    `record_dir`: also write each request there. `raise_failures`: leaving the context
    raises ScriptError when the script ran out, a scripted function raised, or a request broke the rules.
    Limits: `max_connections` at once, `idle_s` seconds without a request or in a hanging reply.
    """

    def __init__(
        self,
        script: Iterable[ScriptItem] = (),
        *,
        strict: bool = True,
        api_key: str | None = None,
        models: Sequence[str] | None = None,
        max_context_tokens: int | None = None,
        model_card: Mapping[str, object] | None = None,
        port: int = 0,
        record_dir: Path | None = None,
        raise_failures: bool = True,
        max_connections: int = 64,
        idle_s: float = 60.0,
    ) -> None:
        settings = Settings(
            strict=strict,
            api_key=api_key,
            models=None if models is None else tuple(models),
            max_context_tokens=max_context_tokens,
            model_card=model_card or {},
            max_connections=max_connections,
            idle_s=idle_s,
            record_dir=record_dir,
        )
        self._script = Script(script)
        self._service = Service(self._script, settings)
        self._raise_failures = raise_failures
        self._port = port
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._start_error: OSError | None = None

    @property
    def port(self) -> int:
        """The port that it listens on; the one asked for before it starts."""
        return self._port

    @property
    def base_url(self) -> str:
        """What goes into `OPENAI_BASE_URL`, `/v1` included."""
        return f"http://{HOST}:{self._port}/v1"

    @property
    def requests(self) -> list[Request]:
        """Every request so far but for `lists`, refused ones too, in order of arrival."""
        return self._service.requests

    @property
    def lists(self) -> list[Request]:
        """Every `GET /v1/models` so far, apart from `requests`: a client may ask at any moment, in the background."""
        return self._service.lists

    @property
    def problems(self) -> list[Problem]:
        """Why requests were refused, over all of them."""
        return [problem for request in self.requests for problem in request.problems]

    @property
    def failures(self) -> list[str]:
        """What leaving the context will raise."""
        return self._service.failures

    @property
    def abandoned(self) -> list[int]:
        """Numbers of the requests whose client left before it had the whole reply, as far as was noticed."""
        return self._service.abandoned

    @property
    def remaining(self) -> int:
        """How many items of the script no request has reached."""
        return self._script.remaining

    def extend(self, *items: ScriptItem) -> None:
        """Add replies at the end of the script, while it runs too."""
        self._script.extend(items)

    def wait_for_requests(self, count: int, timeout_s: float = 10.0) -> list[Request]:
        """Block until `count` requests have come; returns them all. Raises: TimeoutError."""
        self._wait(lambda: len(self.requests) >= count, timeout_s, f"{count} requests", self.requests)
        return self.requests

    def wait_for_abandoned(self, count: int = 1, timeout_s: float = 10.0) -> list[int]:
        """Block until `count` replies have been abandoned by their clients. Raises: TimeoutError."""
        self._wait(lambda: len(self.abandoned) >= count, timeout_s, f"{count} abandoned", self.abandoned)
        return self.abandoned

    def start(self) -> None:
        """Listen. Raises: OSError when the port is taken."""
        if self._thread is not None:
            raise RuntimeError("a ScriptedServer starts once")
        self._thread = threading.Thread(target=self._run, name="scripted-server", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._start_error is not None:
            self._thread.join()
            raise self._start_error

    def close(self) -> None:
        """Close all connections, those that hang too, and end the thread, within a second."""
        if self._thread is None or self._loop is None or self._stop is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=5)
        if self._thread.is_alive():
            raise RuntimeError("the server did not stop: a scripted function blocks its thread")

    def __enter__(self) -> ScriptedServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        if not self.failures or not self._raise_failures:
            return
        message = "the scripted server saw: " + "; ".join(self.failures)
        if raised is not None:
            raised.add_note(message)  # the test fails already: keep its own reason on top
            return
        raise ScriptError(message)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            listener = await asyncio.start_server(
                self._service.serve, HOST, self._port, limit=MAX_HEAD_BYTES, backlog=128
            )
        except OSError as error:
            self._start_error = error
            return
        self._port = listener.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        listener.close()
        await self._service.close()
        async with asyncio.timeout(0.5):
            await listener.wait_closed()

    @staticmethod
    def _wait(reached: Callable[[], bool], timeout_s: float, what: str, seen: Sequence[object]) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout_s} s for {what}, got {len(seen)}")
            time.sleep(0.005)


@contextmanager
def refusing() -> Iterator[str]:
    """A base URL where every connection is refused: its port is held, and nothing listens there."""
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        yield f"http://{HOST}:{holder.getsockname()[1]}/v1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a script file until SIGINT or SIGTERM; the first line of stdout is the base URL.

    Exit code: 0, 1 when the client did what the script does not allow (told on stderr), 2 for a bad script.
    """
    parser = argparse.ArgumentParser(prog="python -m agentsh.testing.server", description=__doc__)
    parser.add_argument("script", type=Path, metavar="SCRIPT.json", help="replies, as a JSON list")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--record", type=Path, metavar="DIR", help="write each request there")
    given = parser.parse_args(arguments)
    try:
        items, settings = read_script(given.script)
    except (ScriptFileError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 2
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = ScriptedServer(items, port=given.port, record_dir=given.record, **settings)
    server.start()
    print(server.base_url, flush=True)
    stop.wait()
    server.close()
    for failure in server.failures:
        print(failure, file=sys.stderr)
    return 1 if server.failures else 0


if __name__ == "__main__":
    sys.exit(main())
