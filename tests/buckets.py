"""S3 on loopback: moto's server in a process of its own, and a gate before it that delays, refuses and counts."""

import http.client
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.disable()
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""
SECRET = "sEcReT/kEy+0123456789abcdefghijklmnopqrst"
_BUCKETS = itertools.count(1)


@dataclass
class S3:
    """A bucket of its own on the server, or behind a gate."""

    port: int
    bucket: str

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/copies/of mine"

    def env(self, port: int | None = None) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET,
        }  # fmt: skip


@pytest.fixture(scope="session")
def moto_port() -> Iterator[int]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PYTHONWARNINGS"))}
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield int(server.stdout.readline())
    finally:
        server.stdin.close()
        server.stdout.close()
        server.kill()
        server.wait(timeout=20)


@pytest.fixture
def s3(moto_port: int, monkeypatch: pytest.MonkeyPatch) -> S3:
    """A new bucket, and an environment that leads to it."""
    found = S3(moto_port, f"bucket-{next(_BUCKETS)}")
    connection = http.client.HTTPConnection("127.0.0.1", moto_port, timeout=20)
    connection.request("PUT", f"/{found.bucket}")
    assert connection.getresponse().read() is not None
    connection.close()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in found.env().items():
        monkeypatch.setenv(name, value)
    return found


Rule = Callable[[int, str, str], int | None]
"""Is asked (number, method, path) of each request; a status answers in the server's place, None lets it through."""


@dataclass
class Gate:
    """A proxy before the server. rule: see `Rule`; it may wait. seen: (method, path) of each request, in order."""

    port: int
    rule: Rule = lambda n, method, path: None
    seen: list[tuple[str, str]] = field(default_factory=list)

    @property
    def puts(self) -> list[str]:
        return [path for method, path in self.seen if method == "PUT"]


@pytest.fixture
def gate(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A gate that the environment leads through."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found.seen.append((self.command, self.path))
            status = found.rule(len(found.seen), self.command, self.path)
            try:
                if status is not None:
                    self._answer(status, {}, b"<Error><Code>AccessDenied</Code></Error>")
                    return
                server = http.client.HTTPConnection("127.0.0.1", s3.port, timeout=20)
                server.request(self.command, self.path, body, dict(self.headers))
                answer = server.getresponse()
                content = answer.read()
                length = answer.headers["Content-Length"] if self.command == "HEAD" else None
                self._answer(answer.status, dict(answer.headers), content, length)
                server.close()
            except OSError:  # whoever asked is dead
                self.close_connection = True

        def _answer(self, status: int, headers: dict[str, str], body: bytes, length: str | None = None) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    found = Gate(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{found.port}")
    yield found
    server.shutdown()
    server.server_close()
    thread.join(timeout=20)
