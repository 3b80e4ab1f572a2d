"""Reads the text of a PDF in a process of its own: what a hostile file makes of memory and time ends with it.

Run as a script, with the PDF on stdin and `first count max_bytes cpu_s memory_bytes` as arguments. Prints a JSON
object a line: {"total": pages}, then {"page": number, "text": …} for each; or {"error": why}. It imports nothing of
ours.
"""

import io
import json
import resource
import sys


def main(first: int, count: int, max_bytes: int, cpu_s: int, memory_bytes: int) -> None:
    """Print pages from `first` on, until `count` are or max_bytes of text are more than reached."""
    for kind, most in ((resource.RLIMIT_CPU, cpu_s), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, memory_bytes)):
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))
    try:
        from pypdf import PdfReader
    except ImportError:
        _say({"error": "missing"})
        return
    try:
        reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        if reader.is_encrypted and not reader.decrypt(""):
            _say({"error": "it is locked with a password"})
            return
        total = len(reader.pages)
        _say({"total": total})
        room = max_bytes
        for number in range(first, min(first - 1 + count, total) + 1):
            text = reader.pages[number - 1].extract_text()
            _say({"page": number, "text": text[: max_bytes + 1]})
            room -= len(text)
            if room < 0:
                return
    except MemoryError:
        _say({"error": "it takes more memory than is allowed"})
    except Exception as error:  # noqa: BLE001 - whatever a broken file makes of the library is told in one line
        _say({"error": f"it cannot be read: {type(error).__name__}: {error}"[:300]})


def _say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
