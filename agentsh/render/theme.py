"""What things look like: styles, marks, and figures as people read them.

Only the sixteen colours of the terminal's own palette are used, so that light and dark themes both work.
"""

from rich.style import Style

PLAIN = Style()
DIM = Style(dim=True)
BOLD = Style(bold=True)
ITALIC = Style(italic=True)
STRIKE = Style(strike=True)
CODE = Style(color="cyan")
USER = Style(bold=True)
USER_MARK = Style(color="cyan", bold=True)
HEADING = Style(bold=True)
HEADING_1 = Style(bold=True, underline=True)
GOOD = Style(color="green")
BAD = Style(color="red")
WARN = Style(color="yellow")
LOUD = Style(color="red", bold=True)
ADDED = Style(color="green")
REMOVED = Style(color="red")
HUNK = Style(color="cyan", dim=True)
CODE_THEME = "ansi_dark"

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def duration(ms: int) -> str:
    """Return `5 ms`, `1.8 s`, `2 m 05 s`, `1 h 02 m`."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(ms // 1000, 60)
    if minutes < 60:
        return f"{minutes} m {seconds:02} s"
    return f"{minutes // 60} h {minutes % 60:02} m"


def money(usd: float) -> str:
    """Return US dollars, with enough digits to tell small sums apart."""
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def count(n: int) -> str:
    """Return `950`, `4.9k`, `1.2M`."""
    if n < 1000:
        return str(n)
    return f"{n / 1000:.1f}k" if n < 1_000_000 else f"{n / 1_000_000:.1f}M"


def moment(ts: str) -> str:
    """Return a time stamp of the log to the minute; it stays in UTC, so that every replay says the same."""
    return f"{ts[:10]} {ts[11:16]} UTC"
