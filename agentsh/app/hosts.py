"""Where requests go, in the one form that the log records and compares."""

from urllib.parse import urlsplit

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


def check_bucket_url(url: str) -> str:
    """Return the URL of a place for copies as it is, without a slash at its end.

    Raises:
        ValueError: there is no such kind of place, or a credential is in it.
    """
    parts = urlsplit(url.strip())
    if parts.scheme not in BUCKETS:
        raise ValueError(f"it begins with none of {', '.join(f'{scheme}://' for scheme in BUCKETS)}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("it may hold a bucket and a path only: credentials come from the environment")
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        raise ValueError("it needs a whole path: file:///path/to/directory")
    if parts.scheme != "file" and not parts.netloc:
        raise ValueError(f"it names no bucket: {parts.scheme}://bucket/path")
    if any(part in (".", "..") for part in parts.path.split("/")):
        raise ValueError("it holds . or ..")
    return url.strip().rstrip("/")
