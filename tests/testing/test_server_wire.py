"""The scripted server as bytes on a socket: layouts, segments, endings, limits."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentsh.testing.server import (
    Comment,
    Cut,
    Event,
    Layout,
    ModelReply,
    Raw,
    ScriptedServer,
    StreamError,
    Text,
    call,
    closed,
    cut_stream,
    forever,
    hang,
    malformed,
    reply,
)

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}


@contextmanager
def connected(server: ScriptedServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        yield sock


def post(sock: socket.socket, body: Any = BODY, path: str = CHAT, close: bool = True) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    end = "Connection: close\r\n" if close else ""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n{end}\r\n"
    sock.sendall(head.encode() + data)


def received(sock: socket.socket) -> bytes:
    """All bytes until the server closes."""
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def answer(*script: Any, body: Any = BODY, path: str = CHAT, **options: Any) -> tuple[bytes, bytes]:
    """Head and body of the answer to one request; the body as it is on the wire."""
    with ScriptedServer(script, **options) as server, connected(server) as sock:
        post(sock, body, path)
        head, _, rest = received(sock).partition(b"\r\n\r\n")
    return head, rest


def unchunked(data: bytes) -> list[bytes]:
    """The chunks of a chunked body; raises ValueError where it is not terminated."""
    pieces: list[bytes] = []
    while True:
        size, separator, rest = data.partition(b"\r\n")
        if not separator:
            raise ValueError("unterminated")
        length = int(size, 16)
        if length == 0:
            assert rest == b"\r\n"
            return pieces
        if rest[length : length + 2] != b"\r\n":
            raise ValueError("broken off")
        pieces.append(rest[:length])
        data = rest[length + 2 :]


def test_a_stream_is_real_server_sent_events() -> None:
    head, body = answer(reply(["He", "llo"]))
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Type: text/event-stream" in head
    pieces = unchunked(body)
    assert all(piece.startswith(b"data: {") and piece.endswith(b"}\n\n") for piece in pieces[:-1])
    assert pieces[-1] == b"data: [DONE]\n\n"
    chunk = json.loads(pieces[1][6:])
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"][0]["delta"] == {"content": "He"}
    assert "usage" not in chunk
    assert "Hello" not in body.decode()


def test_call_fragments_on_the_wire() -> None:
    _, body = answer(reply(calls=[call("ls", {"a": 1}, id="c", chunk=4)]))
    deltas = [json.loads(piece[6:])["choices"][0]["delta"] for piece in unchunked(body)[:-2]]
    assert deltas == [
        {"role": "assistant", "content": None, "refusal": None},
        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "ls", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
    ]


def test_no_done_and_only_ascii() -> None:
    _, body = answer(reply("ü", done=False, layout=Layout(escape=True)))
    assert b"[DONE]" not in body
    assert b"\\u00fc" in body
    assert body.isascii()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_comments_and_several_data_lines(line_end: Any) -> None:
    layout = Layout(line_end=line_end, split_data=True, data_prefix="data:")
    _, body = answer(ModelReply(steps=(Comment("ping"), Event({"a": 1}, name="e")), layout=layout))
    text = b"".join(unchunked(body)).decode()
    assert f": ping{line_end * 2}" in text
    wanted = line_end.join(["event: e", "data:{", 'data: "a": 1', "data:}", "", ""])
    assert wanted in text
    if line_end != "\n":
        assert "\n" not in text.replace(line_end, "")


def test_segments_end_inside_a_character() -> None:
    _, body = answer(reply("a修b", layout=Layout(split_utf8=True)))
    pieces = unchunked(body)
    assert b"".join(pieces).decode().count("修") == 1
    broken = [piece for piece in pieces if piece.endswith("修".encode()[:1])]
    assert len(broken) == 1


def test_segments_of_single_bytes_and_joined_events() -> None:
    _, single = answer(reply("é", layout=Layout(segment_bytes=1)))
    _, joined = answer(reply(["a", "b"], layout=Layout(joined=True)))
    assert {len(piece) for piece in unchunked(single)} == {1}
    assert len(unchunked(joined)) == 1


def test_half_a_surrogate_pair_is_escaped() -> None:
    _, body = answer(reply(["\ud83d", "\ude00"]))
    assert b'"\\ud83d"' in body
    assert b'"\\ude00"' in body


def test_endings() -> None:
    _, terminated = answer(cut_stream("a", "end"))
    assert len(unchunked(terminated)) == 2
    _, fin = answer(cut_stream("a", "fin"))
    with pytest.raises(ValueError, match="unterminated"):
        unchunked(fin)
    _, inside = answer(cut_stream("a", "mid_chunk"))
    with pytest.raises(ValueError, match="broken off"):
        unchunked(inside)
    with pytest.raises(ConnectionResetError):
        answer(cut_stream("a", "rst"))


def test_endings_before_any_byte() -> None:
    assert answer(closed()) == (b"", b"")
    with pytest.raises(ConnectionResetError):
        answer(closed("rst"))


def test_a_body_that_ends_with_the_connection() -> None:
    head, body = answer(reply("a", layout=Layout(chunked=False)))
    assert b"Connection: close" in head
    assert b"Transfer-Encoding" not in head
    assert body.endswith(b"data: [DONE]\n\n")
    _, cut = answer(ModelReply(steps=(Text("a"), Cut("end")), layout=Layout(chunked=False)))
    assert b"[DONE]" not in cut


def test_garbage_inside_and_outside_the_framing() -> None:
    _, body = answer(malformed(b"\x00\xff garbage"))
    assert b"\x00\xff garbage" in unchunked(body)
    _, body = answer(ModelReply(steps=(Raw(b"not a size\r\n", framed=False),)))
    with pytest.raises(ValueError, match="invalid literal"):
        unchunked(body)


def test_faults_of_answers_that_are_not_streamed() -> None:
    once = {**BODY, "stream": False}
    head, half = answer(cut_stream("Hello"), body=once)
    length = int(next(line for line in head.split(b"\r\n") if b"Content-Length" in line).split()[1])
    assert 0 < len(half) < length
    _, error = answer(ModelReply(steps=(StreamError("No", code="c"),)), body=once)
    assert json.loads(error)["error"]["code"] == "c"
    _, garbage = answer(ModelReply(steps=(Raw(b"<"),)), body=once)
    assert garbage.endswith(b"}<")


def test_headers_of_the_script_replace_those_of_the_server() -> None:
    head, _ = answer(reply("a", headers={"x-ratelimit-remaining-requests": "0", "content-type": "text/plain"}))
    assert b"x-ratelimit-remaining-requests: 0" in head
    assert b"content-type: text/plain" in head
    assert b"event-stream" not in head


def test_one_connection_serves_many_requests() -> None:
    with ScriptedServer([forever(reply("x"))]) as server, connected(server) as sock:
        for _ in range(3):
            post(sock, close=False)
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                data += sock.recv(65536)
        assert len(server.requests) == 3
        assert len({request.monotonic_s for request in server.requests}) == 3


def test_the_first_bytes_may_wait_for_an_expected_continue() -> None:
    with ScriptedServer([reply("x")]) as server, connected(server) as sock:
        body = json.dumps(BODY).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
        sock.sendall(head.encode() + b"\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 100 Continue")
        sock.sendall(body)
        assert b"[DONE]" in received(sock)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nX: " + b"y" * 70_000, 431),
    ],
)
def test_what_is_not_http_is_answered_and_a_failure(request_bytes: bytes, status: int) -> None:
    with ScriptedServer(raise_failures=False) as server, connected(server) as sock:
        sock.sendall(request_bytes)
        assert sock.recv(1000).startswith(b"HTTP/1.1 %d" % status)
    assert server.failures


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/v1/nothing", 404, "Invalid URL (POST /v1/nothing)"),
        ("GET", CHAT, 405, f"Not allowed to GET on {CHAT} (HINT: Perhaps you meant to use a different HTTP method?)"),
        ("POST", "/v1/models", 405, "Not allowed to POST on /v1/models (HINT: Perhaps you meant to use a"),
    ],
)
def test_unknown_paths_and_methods_take_no_reply(method: str, path: str, status: int, message: str) -> None:
    with ScriptedServer([reply("x")]) as server, connected(server) as sock:
        sock.sendall(f"{method} {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
        data = received(sock)
        assert server.remaining == 1
    assert data.startswith(b"HTTP/1.1 %d" % status)
    assert message in data.decode()


def test_connections_are_bounded_and_idle_ones_close() -> None:
    with ScriptedServer([reply("x")], max_connections=2, idle_s=0.2, raise_failures=False) as server:
        with connected(server) as first, connected(server) as second, connected(server) as third:
            assert third.recv(10) == b""
            begun = time.monotonic()
            assert first.recv(10) == second.recv(10) == b""
            assert 0.1 < time.monotonic() - begun < 20
        with connected(server) as again:
            post(again)
            assert b"[DONE]" in received(again)
    assert server.failures == ["more than 2 connections at once"]


def test_a_reply_that_hangs_ends_at_the_idle_limit() -> None:
    head, body = answer(hang("partial"), idle_s=0.2)
    assert b"200 OK" in head
    assert b"partial" in body
    with pytest.raises(ValueError, match="unterminated"):
        unchunked(body)


def test_a_taken_port_is_an_error_of_start() -> None:
    with ScriptedServer() as server, pytest.raises(OSError, match="in use"):
        ScriptedServer(port=server.port).start()
    with pytest.raises(RuntimeError):
        server.start()
    ScriptedServer().close()


def test_many_clients_at_once_each_get_one_reply() -> None:
    names = [f"reply {number}" for number in range(50)]
    with ScriptedServer([reply(name) for name in names]) as server:
        socks = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in names]
        for sock in socks:
            post(sock)
        bodies = b"".join(received(sock) for sock in socks)
        for sock in socks:
            sock.close()
    assert all(bodies.count(f'"{name}"'.encode()) == 1 for name in names)
    assert [request.number for request in server.requests] == list(range(1, 51))
