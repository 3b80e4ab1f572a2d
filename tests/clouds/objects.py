"""What the servers have in common: objects by key, requests taken apart, refusals, and a list of what was strange.

They are strict: what the real service would refuse is refused as it would, with its code; what agentsh has no reason
to ask (a deletion, an upload in blocks, an unknown header of the service) is refused too, and noted in `strange`,
which the fixtures want to be empty. There is no state beside `buckets`, so a test can look into it and damage it.
"""

import base64
import itertools
import threading
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

PAGE = 2
"""Entries of a listing in one answer; the services send 1000 and 5000. Few, so that every listing has to go on."""


class Object(NamedTuple):
    """One version of an object. number: grows with every write, whatever the key."""

    data: bytes
    number: int
    modified: str

    @property
    def md5(self) -> bytes:
        return md5(self.data, usedforsecurity=False).digest()


class Request(NamedTuple):
    """A request. path: as it was sent. key: "" for the bucket itself. headers: names in lower case."""

    method: str
    path: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """An answer; to HEAD its body is measured and not sent."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class Refusal(Exception):
    """What the service says instead: a status and the code of its error document."""

    def __init__(self, status: int, code: str, message: str = "refused") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class ObjectServer:
    """Use it as a context manager. cut: bodies of this many bytes or more break off half-way, so many times."""

    own_headers = "x-none-"
    known_headers: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, Object]] = {}
        self.strange: list[str] = []
        self.seen: list[Request] = []
        self.cut: tuple[int, int] = (0, 0)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1_700_000_000_000_001)
        self._server = _Http(("127.0.0.1", 0), self._handler())
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> "ObjectServer":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=20)

    def authorize(self, asked: Request) -> None:
        """Raise a Refusal for whom it does not know."""
        raise NotImplementedError

    def handle(self, asked: Request) -> Answer:
        """Answer a request that is authorized; the lock is held."""
        raise NotImplementedError

    def problem(self, refusal: Refusal) -> Answer:
        """Return the error document of the service."""
        raise NotImplementedError

    def odd(self, what: str) -> Refusal:
        """Note that nobody should have asked this."""
        self.strange.append(what)
        return Refusal(501, "NotImplemented", what)

    def answer(self, asked: Request) -> Answer:
        """Answer any request."""
        self.seen.append(asked)
        try:
            for name in asked.headers:
                if name.startswith(self.own_headers) and name not in self.known_headers:
                    raise self.odd(f"{asked.method} with {name}")
            if asked.method == "PUT" and "content-length" not in asked.headers:
                raise Refusal(411, "MissingContentLength")
            self.authorize(asked)
            with self._lock:
                return self.handle(asked)
        except Refusal as refusal:
            return self.problem(refusal)

    def stored(self, data: bytes) -> Object:
        """Return a new version."""
        return Object(data, next(self._numbers), formatdate(usegmt=True))

    def page(self, names: list[str], prefix: str, after: str) -> tuple[list[str], list[str], str | None]:
        """Return keys and common prefixes directly below `prefix` behind `after`, and where the next page begins."""
        entries: list[str] = []
        for name in sorted(n for n in names if n.startswith(prefix)):
            head, slash, _ = name[len(prefix) :].partition("/")
            if prefix + head + slash not in entries:
                entries.append(prefix + head + slash)
        rest = [entry for entry in entries if entry > after]
        shown = rest[:PAGE]
        keys = [e for e in shown if not e.endswith("/")]
        return keys, [e for e in shown if e.endswith("/")], shown[-1] if len(rest) > PAGE else None

    def content(self, asked: Request, found: Object, headers: dict[str, str], invalid: Refusal) -> Answer:
        """Return the answer to a GET or HEAD, with a part of the body where a range is asked for."""
        wanted = asked.headers.get("range") or asked.headers.get("x-ms-range")
        if wanted is None:
            return Answer(200, headers, found.data)
        unit, _, limits = wanted.partition("=")
        first, _, last = limits.partition("-")
        if unit != "bytes" or not first.isdigit() or (last and not last.isdigit()):
            raise self.odd(f"the range {wanted}")
        start, end = int(first), min(int(last) + 1 if last else len(found.data), len(found.data))
        if start >= end:
            raise invalid
        headers = {**headers, "Content-Range": f"bytes {start}-{end - 1}/{len(found.data)}"}
        return Answer(206, headers, found.data[start:end])

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urlsplit(self.path)
                bucket, _, key = parts.path.removeprefix("/").partition("/")
                asked = Request(
                    self.command, parts.path, unquote(bucket), unquote(key),
                    dict(parse_qsl(parts.query, keep_blank_values=True)),
                    {name.lower(): value for name, value in self.headers.items()}, body,
                )  # fmt: skip
                answer = service.answer(asked)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                sent = answer.body if asked.method != "HEAD" else b""
                least, times = service.cut
                if times and asked.method == "GET" and asked.key and len(sent) >= least:
                    service.cut = (least, times - 1)
                    sent = sent[: len(sent) // 2]
                    self.close_connection = True
                try:
                    self.wfile.write(sent)
                except OSError:  # whoever asked is dead
                    self.close_connection = True

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _any

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


def base64_of(data: bytes) -> str:
    """Return bytes as headers have them."""
    return base64.b64encode(data).decode()
