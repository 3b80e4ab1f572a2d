"""Where requests go, in the one form that the log records and compares."""

from urllib.parse import unquote, urlsplit

from agentsh.app.wiring import BUCKETS


def host_of(url: str) -> str:
    """Return scheme, host and port of a URL, never a path, a query or a user; empty where it is no URL.

    The port of the scheme is left out, so that one place has one name.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    usual = port is None or port == {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" if usual else f"{parts.scheme}://{host}:{port}"


def is_address(url: str) -> bool:
    """Tell whether a client can ask this server: http or https, a host, and nothing that has no place in a URL."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return whole and all(32 < ord(c) < 127 for c in url)


def check_bucket_url(url: str) -> str:
    """Return the URL of a place for copies as it is, but for its scheme in small letters and slashes at its end.

    Raises:
        ValueError: there is no such kind of place, or a credential is in it.
    """
    parts = urlsplit(url.strip())
    if parts.scheme not in BUCKETS:
        raise ValueError(f"it begins with none of {', '.join(f'{scheme}://' for scheme in BUCKETS)}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("it may hold a bucket and a path only: credentials come from the environment")
    path = unquote(parts.path)
    if parts.scheme == "file" and (parts.netloc or not path.startswith("/") or not path.strip("/")):
        raise ValueError("it needs a whole path: file:///path/to/directory")
    if parts.scheme != "file" and not parts.netloc:
        raise ValueError(f"it names no bucket: {parts.scheme}://bucket/path")
    if any(part in (".", "..") for part in path.split("/")):
        raise ValueError("it holds . or ..")
    if any(ord(c) < 32 or ord(c) == 127 for c in path):
        raise ValueError("it holds a control character")
    if parts.scheme != "file" and "//" in path.rstrip("/"):
        raise ValueError("it holds //, a part without a name")
    return f"{parts.scheme}:{url.strip().partition(':')[2].rstrip('/')}"
