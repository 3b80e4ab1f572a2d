"""web_fetch over TLS against a real server on loopback with an authority of its own, and beside proxies."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
from agentsh.tools.web import Fetcher
from tests.tools.test_web import Handler

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make certificates")
Serve = Callable[[str], str]


def openssl(place: Path, *args: str) -> None:
    subprocess.run(["openssl", *args], cwd=place, check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `ca.pem`, and `NAME.pem` with certificate and key for two names."""
    place = tmp_path_factory.mktemp("authority")
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl(place, *new, "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("localhost", "elsewhere.example"):
        issue = ("-CA", "ca.pem", "-CAkey", "ca.key", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}")
        openssl(place, *new, *issue, "-keyout", "leaf.key", "-out", "leaf.pem")
        (place / f"{name}.pem").write_text((place / "leaf.pem").read_text() + (place / "leaf.key").read_text())
    return place


@pytest.fixture
def serve(authority: Path) -> Iterator[Serve]:
    servers: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(name: str) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority / f"{name}.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return f"https://localhost:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_certificate_is_checked_against_the_name(
    authority: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection goes to an address that was judged; the certificate still has to be that of the name."""
    fetch = Fetcher(frozenset({"localhost"}))
    good, other = serve("localhost"), serve("elsewhere.example")
    with pytest.raises(ToolFailed, match=r"cannot be fetched: .*certificate") as unknown:
        await fetch(f"{good}/json")
    assert "\n" not in unknown.value.message
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    page = await fetch(f"{good}/near")
    assert (page.status, page.text) == (200, '{"a": 1}')
    assert (await fetch(f"{good}/host")).text == good.removeprefix("https://")
    with pytest.raises(ToolFailed, match=r"cannot be fetched: .*localhost"):
        await fetch(f"{other}/json")


async def test_proxies_of_the_environment_are_not_used(
    authority: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would look the name up itself, so that nobody could judge its address."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert (await Fetcher(frozenset({"localhost"}))(f"{serve('localhost')}/json")).status == 200
        with pytest.raises(BlockingIOError):
            proxy.accept()
