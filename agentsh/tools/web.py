"""Gets pages for `web_fetch`: http and https only, bounded in time, size and redirects, never from private addresses.

It runs in agentsh itself, since commands in the sandbox have no network. The name of a host is looked up here, every
address it has is judged, and the connection goes to an address that was judged: a name that changes its address
meanwhile (DNS rebinding) gains nothing. Proxies of the environment are not used, for the same reason.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from agentsh import __version__
from agentsh.base.errors import ToolFailed
from agentsh.base.light import dataclass
from agentsh.base.text import one_line
from agentsh.ports.services import Page

if TYPE_CHECKING:
    import httpx2

LIMIT_S = 30.0
"""For all of a fetch, redirects and conversion included."""
MAX_BYTES = 2_000_000
"""Of a page, unpacked; what is longer is cut there."""
MAX_REDIRECTS = 5
ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Parts of a page that are no text.
_NO_TEXT = ("script", "style", "noscript", "template", "svg", "iframe", "object", "canvas")


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Gets pages. private: hosts, as they stand in a URL, that may have private addresses."""

    private: frozenset[str] = frozenset()

    async def __call__(self, url: str) -> Page:
        """Return the page at `url`; a redirect to another host is told and not followed.

        Raises:
            ToolFailed: it is no URL of the web, the host may not be reached, or did not answer with text in time.
        """
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._follow(url.strip())
        except TimeoutError:
            raise ToolFailed(f"{one_line(url, 200)} did not answer within {LIMIT_S:.0f} s") from None

    async def _follow(self, url: str) -> Page:
        for _ in range(MAX_REDIRECTS + 1):
            page = await self._get(url)
            if page.moved is None or not _same_place(url, page.moved):
                return page
            url = page.moved
        raise ToolFailed(f"{one_line(url, 200)}: more than {MAX_REDIRECTS} redirects")

    async def _get(self, url: str) -> Page:
        import httpx2

        parts = checked(url)
        addresses = await self._addresses(parts)
        try:
            async with httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                timeout=LIMIT_S,
                verify=await asyncio.to_thread(ssl.create_default_context) if parts.scheme == "https" else False,
                headers={"User-Agent": f"agentsh/{__version__}", "Accept": ACCEPT},
            ) as client:
                for n, address in enumerate(addresses):
                    try:
                        return await _page(client, url, parts, address)
                    except httpx2.ConnectError:
                        if n + 1 == len(addresses):
                            raise
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, ValueError) as error:
            why = one_line(str(error), 200) or type(error).__name__
            raise ToolFailed(f"{one_line(url, 200)} cannot be fetched: {why}") from None
        raise AssertionError("a host has an address")

    async def _addresses(self, parts: SplitResult) -> list[str]:
        """Return the addresses of a host, each of which may be reached.

        Raises:
            ToolFailed: it has none, or one that is not of the public internet.
        """
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ToolFailed(f"there is no host {one_line(host, 100)}") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not {host, parts.netloc.lower()} & self.private and not all(map(is_public, addresses)):
            raise ToolFailed(
                f"{one_line(host, 100)} is at a private address, which web_fetch does not reach",
                hint="the user can name it in `[tools] web_private`",
            )
        return addresses


def checked(url: str) -> SplitResult:
    """Return the parts of a URL of the web.

    Raises:
        ToolFailed: it is none, or carries a password.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ToolFailed(f"{one_line(url, 200)!r} is no URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ToolFailed(f"{one_line(url, 200)!r} is no http or https URL")
    if parts.username is not None or parts.password is not None:
        raise ToolFailed("a URL with a user or a password in it is not fetched")
    return parts


def is_public(address: str) -> bool:
    """Tell whether an address is of the public internet, also where one address is wrapped in another."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if found in _NAT64:
            inner.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if any(each is not None and not is_public(str(each)) for each in inner):
            return False
    return found.is_global and not found.is_multicast


def _same_place(before: str, after: str) -> bool:
    """Tell whether a redirect stays with the host, and does not leave encryption."""
    old, new = urlsplit(before), checked(after)
    hosts = {(old.hostname or "").removeprefix("www."), (new.hostname or "").removeprefix("www.")}
    ports = old.port == new.port or (old.port is None and new.port is None)
    return len(hosts) == 1 and ports and not (old.scheme == "https" and new.scheme == "http")


async def _page(client: "httpx2.AsyncClient", url: str, parts: SplitResult, address: str) -> Page:
    """Ask one address for a page."""
    host = f"[{address}]" if ":" in address else address
    port = f":{parts.port}" if parts.port is not None else ""
    pinned = parts._replace(netloc=host + port, fragment="").geturl()
    name = parts.netloc.encode("idna").decode() if not parts.netloc.isascii() else parts.netloc
    extensions = {"sni_hostname": (parts.hostname or "").encode("idna").decode()} if parts.scheme == "https" else {}
    async with client.stream("GET", pinned, headers={"Host": name}, extensions=extensions) as response:
        location = response.headers.get("location")
        if response.status_code in _REDIRECTS and location:
            return Page(url, response.status_code, "", "", moved=urljoin(url, location))
        media_type = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
        if (
            not media_type.startswith(_TEXT)
            and media_type not in _HTML
            and not media_type.endswith(("+json", "+xml"))
        ):
            raise ToolFailed(f"{one_line(url, 200)} is {one_line(media_type, 80)}, no text")
        data = await _bounded(response.aiter_bytes())
        charset = response.charset_encoding
    return Page(url, response.status_code, media_type, await asyncio.to_thread(_text, data, media_type, charset))


async def _bounded(pieces: AsyncIterator[bytes]) -> bytes:
    """Return what comes, up to MAX_BYTES."""
    data = bytearray()
    async for piece in pieces:
        data += piece
        if len(data) >= MAX_BYTES:
            break
    return bytes(data[:MAX_BYTES])


def _text(data: bytes, media_type: str, charset: str | None) -> str:
    if media_type in _HTML:
        return as_markdown(data, charset)
    try:
        return data.decode(charset or "utf-8", "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


def as_markdown(html: bytes, charset: str | None = None) -> str:
    """Return an HTML page as Markdown, its title first.

    Raises:
        ToolFailed: the extra for it is not installed.
    """
    try:
        from bs4 import BeautifulSoup
        from markdownify import MarkdownConverter
    except ImportError:
        raise ToolFailed("HTML needs an extra", hint="the user can `pip install 'agentsh[web]'`") from None
    soup = BeautifulSoup(html, "html.parser", from_encoding=charset)
    for tag in soup(_NO_TEXT):
        tag.decompose()
    title = one_line(soup.title.get_text(), 300) if soup.title is not None else ""
    body = soup.body or soup
    try:
        text = MarkdownConverter(heading_style="ATX", strip=["img"]).convert_soup(body)
    except RecursionError:  # nested too deeply for a converter that follows the tree
        text = "\n".join(_lines(body.stripped_strings))
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    while "\n\n\n" in lines:
        lines = lines.replace("\n\n\n", "\n\n")
    return f"# {title}\n\n{lines.strip()}" if title and not lines.lstrip().startswith("# ") else lines.strip()


def _lines(texts: Iterable[str]) -> Iterable[str]:
    return (" ".join(text.split()) for text in texts)
