"""HTTP/1.1 as bytes on one connection: reads whole requests, frames answers, closes as FIN or as RST."""

from __future__ import annotations

import asyncio
import contextlib
import http
import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentsh.testing.server_problems import Problem

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024

Ending = Literal["fin", "rst"]


class Headers(Mapping[str, str]):
    """The headers of one request: names compare without case, the last of equal names wins, `raw` has all."""

    def __init__(self, raw: Iterable[tuple[str, str]] = ()) -> None:
        self.raw: tuple[tuple[str, str], ...] = tuple(raw)
        self._values = {name.lower(): value for name, value in self.raw}

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Headers({list(self.raw)!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came: `body` holds the exact bytes, `json` what they parse to (None if they do not).

    `number` counts from 1 in order of arrival. `received_at` is in seconds since the epoch; `monotonic_s` is
    on the monotonic clock of the server's process, for the time between two requests. `problems` lists why
    the server refused it, empty when the request was fit to be answered by the script.
    """

    number: int
    method: str
    path: str
    headers: Headers
    body: bytes
    json: Any
    received_at: float
    monotonic_s: float
    problems: tuple[Problem, ...] = ()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """`messages` of a chat request; raises KeyError where there are none."""
        messages: list[dict[str, Any]] = self.json["messages"]
        return messages

    @property
    def streams(self) -> bool:
        """Whether the body asks for a stream."""
        return isinstance(self.json, dict) and self.json.get("stream") is True

    @property
    def model(self) -> str:
        """The model that the body names, `""` where it names none."""
        name = self.json.get("model") if isinstance(self.json, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def wants_usage(self) -> bool:
        """Whether the body has `stream_options.include_usage`."""
        options = self.json.get("stream_options") if isinstance(self.json, dict) else None
        return isinstance(options, dict) and options.get("include_usage") is True


@dataclass(frozen=True, slots=True)
class Received:
    """A request as read from the socket, before anything judged it."""

    method: str
    path: str
    headers: Headers
    body: bytes
    received_at: float
    monotonic_s: float


class BadRequestError(Exception):
    """What came is not HTTP that this server reads; `status` says how to answer before closing."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Connection:
    """One accepted connection. Not shared between tasks; limits are in bytes, `idle_s` in seconds."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle_s: float) -> None:
        self._reader = reader
        self._writer = writer
        self.idle_s = idle_s

    async def receive(self) -> Received | None:
        """The next whole request; None when the client is done.

        Raises: BadRequestError, TimeoutError after `idle_s` without a whole request, ConnectionError.
        """
        async with asyncio.timeout(self.idle_s):
            try:
                head = await self._reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError as error:
                raise BadRequestError(431, "request head too large") from error
            received_at, monotonic_s = time.time(), time.monotonic()
            method, path, headers = _parsed_head(head)
            if headers.get("expect", "").lower() == "100-continue":
                await self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            try:
                body = await self._reader.readexactly(_body_length(headers))
            except asyncio.IncompleteReadError:
                return None
        return Received(method, path, headers, body, received_at, monotonic_s)

    async def send(self, data: bytes) -> None:
        """Hand bytes to the kernel. Raises: ConnectionError when the client is gone."""
        self._writer.write(data)
        await self._writer.drain()

    def client_left(self) -> bool:
        """Whether the client has closed its side, as far as this end has heard."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def wait_left(self) -> None:
        """Wait until the client has closed its side; what it sends until then is lost."""
        while await self._reader.read(4096):
            pass

    async def close(self, ending: Ending = "fin") -> None:
        """Close after what was sent: with FIN, or at once with RST."""
        if ending == "rst":
            # The pause lets the client read what came before: a reset may overtake it.
            await asyncio.sleep(0.02)
            self._reset_on_close()
            self.abort()
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(0.5):
                await self._writer.wait_closed()
        self.abort()

    def abort(self) -> None:
        """Close without waiting for anything; harmless when closed."""
        self._writer.transport.abort()

    def _reset_on_close(self) -> None:
        sock = self._writer.get_extra_info("socket")
        linger = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """The head of an answer, blank line included."""
    try:
        reason = http.HTTPStatus(status).phrase
    except ValueError:
        reason = "Unknown"
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; empty data would end the body, so it gives no bytes."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


LAST_CHUNK = b"0\r\n\r\n"


def _parsed_head(data: bytes) -> tuple[str, str, Headers]:
    lines = data.decode("latin-1").split("\r\n")
    match lines[0].split(" "):
        case [method, target, version] if version.startswith("HTTP/1."):
            path = target
        case _:
            raise BadRequestError(400, f"not an HTTP/1 request line: {lines[0][:80]!r}")
    pairs = [line.partition(":") for line in lines[1:] if line]
    return method, path, Headers((name.strip(), value.strip()) for name, _, value in pairs)


def _body_length(headers: Headers) -> int:
    if "transfer-encoding" in headers:
        raise BadRequestError(411, "this server needs a Content-Length")
    text = headers.get("content-length", "0")
    if not text.isdecimal():
        raise BadRequestError(400, f"bad Content-Length: {text[:80]!r}")
    if int(text) > MAX_BODY_BYTES:
        raise BadRequestError(413, f"body larger than {MAX_BODY_BYTES} bytes")
    return int(text)
