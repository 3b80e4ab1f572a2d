"""Where requests go, in the one form that the log records and compares."""

from urllib.parse import urlsplit


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
