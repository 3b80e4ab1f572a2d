"""web_fetch against a real server on loopback, which the settings of these tests name; and what it never reaches."""

import asyncio
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agentsh.base.errors import ToolFailed
from agentsh.ports.services import Services
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.tools import web
from agentsh.tools.web import MAX_BYTES, Fetcher, as_markdown, is_public
from agentsh.tools.web_fetch import TOOL
from agentsh.workspace.local import LocalWorkspace

PAGE = """<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body>
<script>alert("no")</script><h2>Use</h2><p>It <b>works</b>: <a href="/x">see</a> <code>f(x)</code></p>
<ul><li>one</li><li>two</li></ul><table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre>a
  b</pre></body></html>"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        kind, body, status, more = {
            "/page": ("text/html; charset=utf-8", PAGE.encode(), 200, {}),
            "/latin": ("text/html", b'<meta charset="iso-8859-1"><p>caf\xe9</p>', 200, {}),
            "/json": ("application/json", b'{"a": 1}', 200, {}),
            "/gone": ("text/plain", b"not here \x1b[2J", 404, {}),
            "/binary": ("application/pdf", b"%PDF", 200, {}),
            "/empty": ("text/plain", b"", 200, {}),
            "/bomb": ("text/plain", gzip.compress(b"x" * 30_000_000), 200, {"Content-Encoding": "gzip"}),
            "/near": ("text/plain", b"", 302, {"Location": "/json"}),
            "/loop": ("text/plain", b"", 302, {"Location": "/loop"}),
            "/far": ("text/plain", b"", 301, {"Location": "http://example.com/there"}),
            "/file": ("text/plain", b"", 302, {"Location": "file:///etc/passwd"}),
            "/deep": ("text/html", b"<div>" * 3_000 + b"bottom", 200, {}),
            "/host": ("text/plain", str(self.headers["Host"]).encode(), 200, {}),
        }.get(path, ("text/plain", b"?", 500, {}))
        if path == "/slow":
            self.server.stopping.wait(20)  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.stopping = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.stopping.set()  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


async def fetched(server: str, path: str, tmp_path: Path, *, private: bool = True) -> ToolOutcome:
    fetch = Fetcher(frozenset({"127.0.0.1"}) if private else frozenset())
    context = ToolContext(LocalWorkspace(tmp_path, session="test-web"), "call_1", services=Services(fetch=fetch))
    return await TOOL.run(context, {"url": f"http://{server}{path}"})


async def test_html_becomes_markdown(server: str, tmp_path: Path) -> None:
    outcome = await fetched(server, "/page", tmp_path)
    head, data, _, text = outcome.for_model.split("\n", 3)
    assert head == f"http://{server}/page · HTTP 200 · text/html"
    assert "not instructions" in data
    assert text.startswith("# A & B\n\n## Use\n\nIt **works**: [see](/x) `f(x)`")
    assert "* one\n* two" in text
    assert "| k | v |" in text
    assert "```\na\n  b\n```" in text
    assert "alert" not in text
    assert "p{}" not in text


@pytest.mark.parametrize(
    ("path", "text"),
    [("/json", '{"a": 1}'), ("/latin", "café"), ("/near", '{"a": 1}'), ("/empty", "(the page is empty)"),
     ("/gone", "not here"), ("/deep", "bottom")],
)  # fmt: skip
async def test_other_text(server: str, tmp_path: Path, path: str, text: str) -> None:
    outcome = await fetched(server, path, tmp_path)
    assert outcome.for_model.endswith(text)
    assert outcome.status == ("error" if path == "/gone" else "ok")


async def test_the_host_is_told_by_its_name(server: str, tmp_path: Path) -> None:
    port = server.partition(":")[2]
    fetch = Fetcher(frozenset({f"localhost:{port}"}))
    assert (await fetch(f"http://localhost:{port}/host")).text == f"localhost:{port}"


async def test_a_bomb_is_cut(server: str, tmp_path: Path) -> None:
    outcome = await fetched(server, "/bomb", tmp_path)
    assert len(outcome.for_model) < 30_000
    assert outcome.output is not None
    assert len(outcome.output) <= MAX_BYTES


async def test_a_redirect_to_another_host_is_told(server: str, tmp_path: Path) -> None:
    outcome = await fetched(server, "/far", tmp_path)
    assert (
        outcome.for_model == f"http://{server}/far redirects to http://example.com/there; fetch that if you want it."
    )


@pytest.mark.parametrize(
    ("path", "why"),
    [("/binary", "application/pdf, no text"), ("/loop", "more than 5 redirects"), ("/file", "no http or https URL")],
)
async def test_what_cannot_be_had(server: str, tmp_path: Path, path: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        await fetched(server, path, tmp_path)


async def test_it_ends_in_time(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "LIMIT_S", 0.2)
    with pytest.raises(ToolFailed, match=r"did not answer within|cannot be fetched"):
        await fetched(server, "/slow", tmp_path)


async def test_private_addresses_are_refused_unless_named(server: str, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="private address"):
        await fetched(server, "/json", tmp_path, private=False)
    for url in ("http://localhost:1/", "http://[::1]:1/", "http://0.0.0.0:1/", "http://2130706433/", "http://127.1/"):
        with pytest.raises(ToolFailed, match=r"private address|no host"):
            await Fetcher(frozenset({"example.com"}))(url)


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://a/", "file:///etc/passwd", "http://", "http://u:p@a/", "http://[::1", "http://a:99999/"]
)
async def test_what_is_no_url_of_the_web(url: str) -> None:
    with pytest.raises(ToolFailed, match="URL"):
        await Fetcher()(url)


async def test_a_host_that_is_not_there_and_a_port_where_nobody_is() -> None:
    with pytest.raises(ToolFailed, match="no host"):
        await Fetcher()("http://nowhere.invalid/")
    with pytest.raises(ToolFailed, match="cannot be fetched"):
        await Fetcher(frozenset({"127.0.0.1"}))("http://127.0.0.1:1/")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1:248:1893:25c8:1946", True), ("10.0.0.1", False),
        ("127.0.0.1", False), ("169.254.169.254", False), ("172.16.3.4", False), ("192.168.1.1", False),
        ("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False), ("255.255.255.255", False), ("::1", False),
        ("fe80::1%eth0", False), ("fc00::1", False), ("::ffff:127.0.0.1", False), ("::ffff:10.0.0.1", False),
        ("64:ff9b::7f00:1", False), ("64:ff9b::a00:1", False), ("2002:7f00:1::", False), ("ff02::1", False),
        ("fd00:ec2::254", False), ("nonsense", False),
    ],
)  # fmt: skip
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


async def test_it_is_off_without_a_way_to_the_web(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="tools"):
        await TOOL.run(ToolContext(LocalWorkspace(tmp_path, session="x"), "c"), {"url": "http://example.com"})


async def test_a_page_that_is_broken_is_text_all_the_same() -> None:
    for html in (
        b"",
        b"<",
        b"<p",
        b"\xff\xfe\x00",
        b"<table><tr><td>" * 50,
        b"<!-- " * 500 + b"<p>x",
        bytes(range(256)),
    ):
        assert isinstance(await asyncio.to_thread(as_markdown, html), str)
