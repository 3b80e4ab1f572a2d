"""Text: safe cuts, one-line summaries, and cleaning for a terminal. Pure."""

from agentsh.base.pattern import later

# C0 and C1 controls but for tab and line feed, DEL, and the bidirectional controls that can reorder a line on screen.
_CONTROLS = later("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# A whole escape sequence goes, not only its first byte: CSI, OSC/DCS/SOS/PM/APC strings, two-byte escapes.
_ESCAPES = later(
    "\x1b\\[[0-?]*[ -/]*[@-~]"
    "|\x9b[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)


_LEFT_OUT = later(r"\[… (\d[\d,]{0,15}) lines …\]")


def clean(text: str) -> str:
    """Return `text` without anything that could steer a terminal; tabs and line feeds stay.

    CR LF becomes LF, and a lone CR (a progress bar) becomes LF too.
    """
    if text.isprintable():  # most lines: all that is taken away is not
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


_UNSEEN = later("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def escaped(json_text: str) -> str:
    """Return JSON with all that steers a terminal, breaks a line for some readers, or is no text, as `\\uXXXX`."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def as_seen(text: str) -> str:
    """Return output as a screen would show it in the end: no escapes, of a progress bar only its last state."""
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.replace("\r\n", "\n").split("\n"))
    return clean(text)


def _last_state(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


def one_line(text: str, max_chars: int) -> str:
    """Return the first words of `text` on one line, clean, at most `max_chars` characters, `…` where cut."""
    flat = " ".join(clean(text[: max_chars * 8]).split())
    return flat if len(flat) <= max_chars else flat[: max_chars - 1].rstrip() + "…"


def short_path(path: str, max_chars: int = 120) -> str:
    """Return a path for people, clean, at most `max_chars` characters, its middle as `…` where it is longer."""
    shown, half = " ".join(clean(path).splitlines()), (max_chars - 1) // 2
    return shown if len(shown) <= max_chars else f"{shown[: max_chars - 1 - half]}…{shown[-half:]}"


def head_bytes(text: str, max_bytes: int) -> str:
    """Return the longest start of `text` whose UTF-8 form has at most `max_bytes` bytes."""
    raw = text[:max_bytes].encode("utf-8", "surrogatepass")
    return raw[:max_bytes].decode("utf-8", "ignore") if len(raw) > max_bytes else text[:max_bytes]


def tail_bytes(text: str, max_bytes: int) -> str:
    """Return the longest end of `text` whose UTF-8 form has at most `max_bytes` bytes."""
    if max_bytes <= 0:
        return ""
    end = text[-max_bytes:]
    raw = end.encode("utf-8", "surrogatepass")
    return raw[-max_bytes:].decode("utf-8", "ignore") if len(raw) > max_bytes else end


def middle_cut(text: str, max_bytes: int, note: str = "") -> str:
    """Return `text` with its middle replaced by a marked line so that it fits `max_bytes` of UTF-8.

    note: what to say inside the mark beside the number of bytes left out, e.g. where the whole can be found.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size <= max_bytes:
        return text
    mark = f"\n[… {size - max_bytes:,} bytes left out{'; ' + note if note else ''} …]\n"
    room = max(max_bytes - len(mark.encode()), 0)
    head = head_bytes(text, room * 2 // 3)
    return head + mark + tail_bytes(text, room - len(head.encode("utf-8", "surrogatepass")))


def ends_of(lines: list[str], most: int) -> list[str]:
    """Return at most `most` lines: the first, the last, and between how many are left out, as `left_out` reads it."""
    if len(lines) <= most:
        return lines
    head = most // 2
    tail = most - 1 - head
    return [*lines[:head], f"[… {len(lines) - head - tail:,} lines …]", *lines[-tail:]]


def left_out(line: str) -> int:
    """Return how many lines a line of `ends_of` stands for; 0 for any other."""
    found = _LEFT_OUT.fullmatch(line)
    return int(found[1].replace(",", "")) if found else 0


def plural(n: int, noun: str) -> str:
    """Return `1 file`, `2 files`, `3,000 files`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def age(seconds: float) -> str:
    """Return how long ago, in its largest unit: `12s`, `5m`, `3h`, `9d`, `7w`."""
    for size, unit in ((604800, "w"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size * (2 if unit == "w" else 1):
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"
