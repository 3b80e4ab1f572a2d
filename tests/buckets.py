"""Object storage on loopback, and a gate before it that delays, refuses and counts.

S3 is moto's server, in a process of its own; Google's and Microsoft's are those of `tests/clouds`.
"""

import base64
import http.client
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

from tests.clouds.azure import AzureServer
from tests.clouds.google import GoogleServer, PublicKey
from tests.clouds.objects import ObjectServer

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
OURS = ("AWS_", "AZURE_", "GOOGLE_")
_BUCKETS = itertools.count(1)


@dataclass
class Cloud:
    """A bucket of its own on a server, or behind a gate. secrets: what nobody may read anywhere."""

    port: int
    bucket: str
    scheme = ""
    secrets: tuple[str, ...] = (SECRET, "AKIDEXAMPLE")

    @property
    def url(self) -> str:
        return self.url_of(self.bucket)

    def url_of(self, bucket: str) -> str:
        return f"{self.scheme}://{bucket}/copies/of mine"

    def env(self, port: int | None = None) -> dict[str, str]:
        """Return the environment that leads there, or to another port."""
        raise NotImplementedError

    def stranger(self) -> dict[str, str]:
        """Return what to put into the environment to be nobody whom the server knows."""
        raise NotImplementedError


class S3(Cloud):
    """On moto, which asks for no credentials; so nobody is a stranger."""

    scheme = "s3"

    def env(self, port: int | None = None) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET,
        }  # fmt: skip


class Account(NamedTuple):
    """A service account of Google's, with a key made for these tests. pem: its private key."""

    public: PublicKey
    pem: str

    def file(self, path: Path) -> Path:
        """Write what Google gives its owner to download."""
        about = {
            "type": "service_account", "private_key_id": "of-tests", "private_key": self.pem,
            "client_email": self.public.email, "token_uri": "http://127.0.0.1:9/not-asked",
        }  # fmt: skip
        path.write_text(json.dumps(about))
        return path


def account(email: str) -> Account:
    """Return a new one."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(65537, 2048)
    numbers = key.public_key().public_numbers()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return Account(PublicKey(email, numbers.n, numbers.e), pem)


@dataclass
class Google(Cloud):
    """On our own server, with the key of a service account in a file."""

    scheme = "gs"
    server: ObjectServer | None = None
    key_file: str = ""
    strangers_file: str = ""

    def env(self, port: int | None = None) -> dict[str, str]:
        return {
            "GOOGLE_BASE_URL": f"http://127.0.0.1:{port or self.port}",
            "GOOGLE_APPLICATION_CREDENTIALS": self.key_file,
        }

    def stranger(self) -> dict[str, str]:
        return {"GOOGLE_APPLICATION_CREDENTIALS": self.strangers_file}


@dataclass
class Azure(Cloud):
    """On our own server, with the key of the storage account."""

    scheme = "az"
    server: ObjectServer | None = None
    key: str = ""

    def env(self, port: int | None = None) -> dict[str, str]:
        return {
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{port or self.port}",
            "AZURE_STORAGE_ACCOUNT_NAME": "agentshtests", "AZURE_STORAGE_ACCOUNT_KEY": self.key,
        }  # fmt: skip

    def stranger(self) -> dict[str, str]:
        return {"AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"of another account").decode()}


@pytest.fixture(scope="session")
def moto_port() -> Iterator[int]:
    env = {k: v for k, v in os.environ.items() if not k.startswith((*OURS, "PYTHONWARNINGS"))}
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
    _lead(monkeypatch, found)
    return found


@pytest.fixture(scope="session")
def accounts() -> tuple[Account, Account]:
    """Two of Google's: one that the server knows, and a stranger. To make a key takes a moment."""
    return account("copies@tests.invalid"), account("stranger@tests.invalid")


@pytest.fixture
def gs(accounts: tuple[Account, Account], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """A new bucket on a server of its own, and an environment that leads to it."""
    known, stranger = accounts
    with GoogleServer(known.public) as server:
        found = Google(
            server.port, "bucket", (known.pem.split("\n")[3], "copies@tests"), server,
            str(known.file(tmp_path / "key.json")), str(stranger.file(tmp_path / "stranger.json")),
        )  # fmt: skip
        server.buckets["bucket"] = {}
        _lead(monkeypatch, found)
        yield found
    assert server.strange == []


@pytest.fixture
def az(monkeypatch: pytest.MonkeyPatch) -> Iterator[Azure]:
    """A new container on a server of its own, and an environment that leads to it."""
    key = base64.b64encode(SECRET.encode()).decode()
    with AzureServer("agentshtests", key) as server:
        found = Azure(server.port, "container", (key,), server, key)
        server.buckets["container"] = {}
        _lead(monkeypatch, found)
        yield found
    assert server.strange == []


@pytest.fixture(params=["s3", "gs", "az"])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    """Each of them."""
    found: Cloud = request.getfixturevalue(request.param)
    return found


def _lead(monkeypatch: pytest.MonkeyPatch, place: Cloud, port: int | None = None) -> None:
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    for name, value in place.env(port).items():
        monkeypatch.setenv(name, value)


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
    """A gate before S3 that the environment leads through."""
    with _gated(s3) as found:
        _lead(monkeypatch, s3, found.port)
        yield found


@pytest.fixture
def cloud_gate(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A gate before each of them."""
    with _gated(cloud) as found:
        _lead(monkeypatch, cloud, found.port)
        yield found


@contextmanager
def _gated(place: Cloud) -> Iterator[Gate]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = unquote(self.path)  # Google's client quotes every dot
            found.seen.append((self.command, path))
            status = found.rule(len(found.seen), self.command, path)
            try:
                if status is not None:
                    self._answer(status, {}, b"<Error><Code>AccessDenied</Code></Error>")
                    return
                with closing(http.client.HTTPConnection("127.0.0.1", place.port, timeout=20)) as server:
                    server.request(self.command, self.path, body, dict(self.headers))
                    answer = server.getresponse()
                    content = answer.read()
                length = answer.headers["Content-Length"] if self.command == "HEAD" else None
                self._answer(answer.status, dict(answer.headers), content, length)
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
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=20)
