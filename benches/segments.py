"""What sealed segments save and cost, as ratios in one interleaved run: `python benches/segments.py [ROUNDS [MIB]]`.

The events are synthetic in structure, with the source text of Python's own library as what tools and models say.
Each way and its rival run in turn, A B A B …; medians, and the median of the pairwise ratios, are printed as
Markdown. Seconds belong to one machine and one moment; the ratios travel.
"""

import asyncio
import random
import statistics
import sys
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from agentsh.log.chain import LogScan
from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.record import Draft
from agentsh.log.scan import to_record
from agentsh.log.seal import seal_closed
from agentsh.log.seekable import Packer, pieces
from agentsh.log.segment import OPEN_NAME, SEALED, closed_name
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore

SESSION = "20261129-k3v9qd"
TS = "2026-11-29T16:%02d:%02d.%06dZ"
FILES = RealFiles()


class Writer:
    """Makes up events of a session that reads, edits and tests."""

    def __init__(self) -> None:
        self.dice = random.Random(1)
        library = Path(sysconfig.get_paths()["stdlib"])
        self.texts = [p.read_text(errors="ignore") for p in sorted(library.glob("*.py"))]
        self.now = 0

    def drafts(self) -> Iterator[Draft]:
        """Yield events for ever."""
        while True:
            for kind, payload in self._turn():
                self.now += self.dice.randint(50, 900_000)
                seconds = self.now // 1_000_000
                yield Draft(kind, TS % (seconds // 60 % 60, seconds % 60, self.now % 1_000_000), payload, None)

    def _some(self, least: int, most: int) -> str:
        text, size = self.dice.choice(self.texts), self.dice.randint(least, most)
        at = text.find("\n", self.dice.randrange(max(len(text) - size, 1))) + 1
        return text[at : at + size]

    def _hash(self) -> str:
        return self.dice.randbytes(32).hex()

    def _context(self) -> tuple[str, dict[str, Any]]:
        return "context_built", {
            "request_sha256": self._hash(), "bytes": self.dice.randint(6_000, 400_000), "estimator": "o200k",
            "tokens": self.dice.randint(1_500, 120_000), "budget": 128_000, "cut": None,
        }  # fmt: skip

    def _says(self, text: str, finish: str) -> tuple[str, dict[str, Any]]:
        usage = {n: self.dice.randint(10, 90_000) for n in ("prompt", "cached", "completion", "reasoning")}
        return "agent_message", {
            "text": text, "reasoning": None, "model": "gpt-5", "finish": finish, "usage": usage,
            "cost_usd": self.dice.randint(1, 90_000) / 1e6,
        }  # fmt: skip

    def _turn(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "user_message", {"text": self._some(40, 400), "attachments": []}
        for _ in range(self.dice.randint(2, 9)):
            call = f"call_{self._hash()[:12]}"
            yield self._context()
            yield self._says(self._some(0, 300), "tool_calls")
            name = self.dice.choice(["read", "grep", "shell", "edit"])
            path = f"src/{self.dice.choice('abcdefgh')}/{self.dice.choice('klmnop')}.py"
            arguments = {"path": path} if name != "edit" else {"path": path, "old": self._some(40, 400)}
            yield "tool_call", {"call": call, "name": name, "arguments": str(arguments).replace("'", '"')}
            yield (
                "tool_started",
                {"call": call, "effects": ["read"], "sandbox": "bwrap", "pid": 4711, "decision": "auto"},
            )
            if name == "edit":
                diff = "".join(f"{self.dice.choice(' +-')}{line}\n" for line in self._some(200, 2_500).splitlines())
                yield "code_edit", {"call": call, "path": path, "diff": diff, "before": self._hash(),
                                    "after": self._hash(), "snapshot": self._hash()}  # fmt: skip
            numbered = "".join(f"{n:5}\t{line}\n" for n, line in enumerate(self._some(200, 7_000).splitlines(), 1))
            yield "tool_result", {"call": call, "status": "ok", "for_model": numbered,
                                  "for_user": f"{name} {path}", "duration_ms": 40 + len(numbered)}  # fmt: skip
        yield self._context()
        yield self._says(self._some(200, 2_000), "stop")
        yield "turn_finished", {"reason": "done", "steps": 3, "cost_usd": 0.1, "duration_ms": 7_006}


def fill(directory: Path, count: int, size: int) -> int:
    """Write `count` closed segments of about `size` bytes and an empty open one; return the last seq."""
    directory.mkdir(parents=True)
    drafts, seq, before = Writer().drafts(), 0, None
    for ordinal in range(count + 1):
        head = encode_header(
            SESSION, ordinal=ordinal, first_seq=seq + 1, nonce=f"{ordinal:016x}", created=TS % (1, 1, 1), by="bench",
            prev_sha256=before,
        )  # fmt: skip
        lines, length, first = [head.raw], 0, seq + 1
        while length < size and ordinal < count:
            seq += 1
            lines.append(encode_event(next(drafts), seq=seq, dur=seq - 1, salt=head.salt))
            length += len(lines[-1])
        data = b"".join(lines)
        before = sha256(data).hexdigest()
        (directory / (closed_name(ordinal, first) if ordinal < count else OPEN_NAME)).write_bytes(data)
    return seq


def timed(job: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def pair(a: Callable[[], object], b: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Return the medians of both, and the median ratio."""
    a(), b()
    runs = [(timed(a), timed(b)) for _ in range(rounds)]
    return (
        statistics.median(x for x, _ in runs),
        statistics.median(y for _, y in runs),
        statistics.median(x / y for x, y in runs),
    )


def pack(raw: bytes) -> int:
    """Return the size of the frames of a sealed segment."""
    packer = Packer()
    return sum(len(packer.frame(piece)) for piece in pieces([raw]))


def gzip9(raw: bytes) -> int:
    """Return the size that gzip -9 makes of it."""
    squeezer = zlib.compressobj(9, wbits=31)
    return len(squeezer.compress(raw)) + len(squeezer.flush())


def sealed_again(directory: Path, name: str, raw: bytes) -> float:
    """Return the seconds of sealing one segment: crcs, hash, frames, sync, reading back, rename, removal."""
    (directory / (name + SEALED)).unlink(missing_ok=True)
    (directory / name).write_bytes(raw)
    return timed(lambda: seal_closed(FILES, str(directory), SESSION, below=1))


def unpack(packed: bytes) -> int:
    """Return the length of what `zstd -dc` prints."""
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
        return len(reader.read())


def one_event(directory: Path, seq: int) -> None:
    """Open the log, and return one old event."""
    scan = LogScan(FILES, str(directory), SESSION)
    found = next(entry for entry in scan.entries(seq - 1) if entry[0] >= seq)
    assert to_record(found[1] + b"\n").seq == seq
    scan.close()


def sizes_and_speeds(place: Path, rounds: int, size: int) -> None:
    """Print what one segment gives."""
    directory = place / "one" / "sessions" / SESSION
    last = fill(directory, 1, size)
    name = closed_name(0, 1)
    raw = (directory / name).read_bytes()
    mb = len(raw) / 1e6
    seal_closed(FILES, str(directory), SESSION, below=1)
    packed = (directory / (name + SEALED)).read_bytes()
    zipped = gzip9(raw)
    print(f"One segment of {mb:.1f} MB, {last:,} events of {len(raw) // last:,} bytes.\n")
    print("| what / rival | this | rival | ratio | wanted |\n|---|--:|--:|--:|--:|")
    saved, theirs = 100 - 100 * len(packed) / len(raw), 100 - 100 * zipped / len(raw)
    row("saved, % / gzip -9", saved, theirs, None, "at least 70", 1)
    row("size, MB / gzip -9", len(packed) / 1e6, zipped / 1e6, len(packed) / zipped, "at most 0.90", 1)
    ours, rival, ratio = pair(lambda: pack(raw), lambda: gzip9(raw), max(rounds // 3, 2))
    row("packing, MB/s / gzip -9", mb / ours, mb / rival, 1 / ratio, "at least 5")
    ours, rival, ratio = pair(lambda: sealed_again(directory, name, raw), lambda: pack(raw), rounds)
    row("sealing from end to end, MB/s / packing alone", mb / ours, mb / rival, 1 / ratio, "")
    dice = random.Random(2)
    ours, rival, ratio = pair(lambda: one_event(directory, dice.randint(1, last)), lambda: unpack(packed), rounds * 5)
    row("one old event, ms / unpacking it all", ours * 1e3, rival * 1e3, ratio, "at most 0.15", 1)


def row(what: str, ours: float, theirs: float, ratio: float | None, wanted: str, digits: int = 0) -> None:
    """Print a row of a table."""
    said = "" if ratio is None else f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"
    print(f"| {what} | {ours:.{digits}f} | {theirs:.{digits}f} | {said} | {wanted} |", flush=True)


async def opened(root: Path) -> None:
    """Open the session for writing, and close it."""
    log = await JsonlStore(root / "sessions", FileBlobs(root / "blobs"), segment_bytes=1 << 40).open(SESSION)
    await log.log.close()


def opening(place: Path, rounds: int, size: int) -> None:
    """Print what it costs to open ten sealed segments instead of a plain one with the same events."""
    sealed, plain = place / "ten", place / "plain"
    last = fill(sealed / "sessions" / SESSION, 10, size // 10)
    fill(plain / "sessions" / SESSION, 1, size)
    end = plain / "sessions" / SESSION
    (end / closed_name(0, 1)).rename(end / OPEN_NAME)
    seal_closed(FILES, str(sealed / "sessions" / SESSION), SESSION, below=10, min_bytes=0)
    print(f"\nTen sealed segments / one plain log of the same {size / 1e6:.0f} MB.\n")
    print("| what, ms | sealed | plain | ratio | wanted |\n|---|--:|--:|--:|--:|")

    def read(root: Path, after: int) -> Callable[[], object]:
        store = JsonlStore(root / "sessions", FileBlobs(root / "blobs"))
        return lambda: sum(1 for _ in store.lines(SESSION, after_seq=after))

    rows: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("opening, all events read", lambda: asyncio.run(opened(sealed)), lambda: asyncio.run(opened(plain))),
        ("the last 1,000 events", read(sealed, last - 1_000), read(plain, last - 1_000)),
        (
            "one event from the middle",
            lambda: one_event(sealed / "sessions" / SESSION, last // 2),
            lambda: one_event(end, last // 2),
        ),
    ]
    for name, a, b in rows:
        ours, theirs, ratio = pair(a, b, max(rounds // 2, 3))
        row(name, ours * 1e3, theirs * 1e3, ratio, "", 1)


def main(rounds: int, mib: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as text:
        sizes_and_speeds(Path(text), rounds, mib << 20)
        opening(Path(text), rounds, mib << 20)


if __name__ == "__main__":
    main(*(int(word) for word in (sys.argv[1:] + ["9", "64"][len(sys.argv) - 1 :])))
