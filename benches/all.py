"""The targets of the log as one table: `python benches/all.py [--quick] [--svg FILE]`, or `make bench`.

Each way and its rival run in turn, A B A B …; the median of the pairwise ratios is printed as Markdown. Milliseconds
belong to one machine and one moment; the ratios travel, on a machine that does nothing else.
"""

import asyncio
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from segments import SESSION, Writer, fill, gzip9, one_event, pack, pair, sealed_again, timed, unpack
from table import Row, markdown, svg
from verify import checked, gains, make, make_many

from agentsh.app.catalog import Filter, rows
from agentsh.app.paths import Home, Homes
from agentsh.base.ids import CROCKFORD
from agentsh.log.archive import archive
from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.packed import NAME as ARCHIVE
from agentsh.log.recover import OpenSegment
from agentsh.log.seal import seal_closed
from agentsh.log.segment import SEALED, begin_segment, closed_name, new_header
from agentsh.log.spill import as_it_is
from agentsh.log.store import OpenLog
from agentsh.log.writer import Appender
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore

FILES = RealFiles()
PAUSE_S = 0.5
"""Between rounds of syncs: disks of virtual machines are throttled after bursts."""
QUICK_S = 240
"""With `--quick` nothing is begun later than that; all of it takes about half as long where nothing else runs."""
EVENTS = 20
"""In each session of the list: one turn with a tool or two."""
TS = "2026-11-29T16:20:01.118204Z"


def typical(count: int) -> list[bytes]:
    """Return payload texts of a session's events, as bytes for a rival that keeps no frame."""
    drafts = Writer().drafts()
    return [json.dumps(next(drafts).payload).encode() for _ in range(count)]


def durable_append(place: Path, rounds: int) -> list[Row]:
    """One event appended and synced, against write(2) and fdatasync of the same bytes, on one thread.

    The first row is what the writer's thread does: number, checksum, fence, write, sync. The second adds what the
    store does before that, on its caller's thread: JSON. That is made before either way, since whichever comes
    behind it finds the caches cold and has a longer sync for that (by some 7 %). So each goes first in turn, and the
    ratio is the mean of both orders: a median of two such heaps together would lie anywhere between them. No event
    loop.
    """
    place.mkdir()
    header = new_header(SESSION, ordinal=0, first_seq=1, by="bench")
    segment = OpenSegment(begin_segment(FILES, str(place), header), len(header.raw), header.salt, 0, 1)
    appender = Appender(
        FILES, str(place), SESSION, segment, blobs=FileBlobs(place / "blobs"), by="bench", last_seq=0, durable_seq=0,
        durability="always",
    )  # fmt: skip
    drafts = Writer().drafts()
    fd = os.open(place / "rival", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    raw = appender.append([next(drafts)])[0].raw
    found: list[tuple[float, float, float]] = []
    for _ in range(2 * rounds):
        for n in range(40):
            draft, theirs = next(drafts), 0.0
            start = time.perf_counter()
            ready = [as_it_is(draft)]
            made = time.perf_counter() - start
            if n % 2:
                theirs = raw_append(fd, raw)
            start = time.perf_counter()
            (record,) = appender.append([draft], ready)
            own = time.perf_counter() - start
            raw = record.raw  # the last record is as long as any other
            found.append((own, made + own, theirs or raw_append(fd, raw)))
        time.sleep(PAUSE_S)
    appender.close()
    os.close(fd)
    thread, whole = (
        math.sqrt(math.prod(statistics.median(times[n] / times[2] for times in found[first::2]) for first in (0, 1)))
        for n in (0, 1)
    )
    sync_us = 1e6 * statistics.median(times[2] for times in found)
    rival = "write + fdatasync of its bytes"
    return [
        Row("append and sync one event", rival, thread, 1.15, True, note=f"on the writer's thread; {sync_us:.0f} µs"),
        Row("the same, with making its JSON", rival, whole, None, True),
    ]


def raw_append(fd: int, data: bytes) -> float:
    """Return the seconds of a write and a sync."""
    start = time.perf_counter()
    os.write(fd, data)
    os.fdatasync(fd)
    return time.perf_counter() - start


def turn(place: Path, rounds: int) -> Row:
    """Five events with two points at which all must be durable, through the store and awaited, as the engine's
    journal does; the rival commits each, on the thread that asks and without an event loop."""
    import sqlite3

    place.mkdir()
    store = JsonlStore(place / "sessions", FileBlobs(place / "blobs"))
    db = sqlite3.connect(place / "rival.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, data BLOB)")
    drafts, texts = Writer().drafts(), iter(typical(20 * rounds * 5))

    async def ours(log: OpenLog) -> float:
        start = time.perf_counter()
        for count in (3, 2):
            for n in range(count):
                await log.append([next(drafts)], awaited=n == count - 1)
            await log.wait_durable(log.last_seq)
        return time.perf_counter() - start

    def theirs() -> float:
        start = time.perf_counter()
        for _ in range(5):
            db.execute("INSERT INTO events (data) VALUES (?)", (next(texts),))
        return time.perf_counter() - start

    async def measured() -> list[float]:
        log = await store.create("20261129-aaaaaa", by="bench")
        ratios = []
        for _ in range(rounds):
            for n in range(16):
                if n % 2:
                    rival, own = theirs(), await ours(log)
                else:
                    own, rival = await ours(log), theirs()
                ratios.append(rival / own)
            await asyncio.sleep(PAUSE_S)
        await log.close()
        return ratios

    ratio = statistics.median(asyncio.run(measured()))
    db.close()
    return Row("five events, two sync points", "five SQLite WAL FULL commits, speed", ratio, 1.3, False)


def resuming(place: Path, rounds: int, events: int, more: int) -> list[Row]:
    """Whole processes that open a long session to a context that is ready, against one that parses all its lines."""
    import resume

    place.mkdir()
    home, plain = resume.prepare(place, events, more)
    ours, longer, _, parse = zip(*resume.measure(home, plain, rounds), strict=True)

    def ratio(a: Sequence[resume.Run], b: Sequence[resume.Run]) -> float:
        return statistics.median(x.seconds / y.seconds for x, y in zip(a, b, strict=True))

    rows = [
        Row(f"`resume` of {events:,} events", "parsing them with pydantic, processes", ratio(ours, parse), 0.1, True),
        Row(f"`resume` of {more:,} events", f"of {events:,}", ratio(longer, ours), 1.5, True),
    ]
    for count, runs in ((events, ours), (more, longer)):
        peak = max(run.peak_kib for run in runs) / 1024
        rows.append(Row(f"memory of `resume`, {count:,} events", "its peak", peak, 120, True, " MiB"))
    return rows


def verification(place: Path, rounds: int, megabytes: int) -> list[Row]:
    """Read a whole log, against `json.loads` on each of its lines; and with two processes, many logs too."""
    log, ids = make(place, megabytes), make_many(place, megabytes * 2, 0.4)

    def parsed() -> None:
        with log.open("rb") as file:
            for line in file:
                json.loads(line)

    _, _, ratio = pair(lambda: checked(place, [SESSION], 1), parsed, rounds)
    rows = [Row("verify", "json.loads of each line", ratio, 0.6, True)]
    for what, sessions in (("one log", [SESSION]), (f"{len(ids)} sessions", ids)):
        gain, most = gains(place, sessions, rounds)
        note = f"{gain / most:.0%} of the {most:.2f}× that work which shares nothing gains here and now"
        rows.append(Row(f"verify with two processes, {what}", "with one, speed", gain, 1.7, False, note=note))
    return rows


def sealing(place: Path, rounds: int, mib: int) -> list[Row]:
    """One sealed segment: its size, its speed, and one old event of it."""
    directory = place / "sessions" / SESSION
    last = fill(directory, 1, mib << 20)
    name = closed_name(0, 1)
    raw = (directory / name).read_bytes()
    seal_closed(FILES, str(directory), SESSION, below=1)
    packed = (directory / (name + SEALED)).read_bytes()
    speed = len(raw) / 1e6 / min(timed(lambda: pack(raw)) for _ in range(max(rounds, 7)))
    whole = len(raw) / 1e6 / min(sealed_again(directory, name, raw) for _ in range(max(rounds, 7)))
    dice = random.Random(2)
    _, _, old = pair(lambda: one_event(directory, dice.randint(1, last)), lambda: unpack(packed), rounds * 3)
    archived = archive(FILES, str(directory), SESSION, {})
    size = (directory / ARCHIVE).stat().st_size
    return [
        Row("sealed segment, saved", "the plain one", 100 - 100 * len(packed) / len(raw), 70, False, " %"),
        Row("sealed segment, packing", "per second, one processor", speed, 200, False, " MB"),
        Row("sealed segment, from end to end", "per second", whole, 200, False, " MB", "checked, packed, read back"),
        Row("sealed segment, size", "gzip -9", len(packed) / gzip9(raw), 0.9, True),
        Row("one event of a sealed segment", "unpacking all of it", old, 0.15, True),
        Row("archive, saved", "the plain log", 100 - 100 * size / archived.raw_bytes, 80, False, " %"),
    ]


def listing(place: Path, rounds: int, count: int) -> Row:
    """The newest 50 of many sessions, as `ls` asks for them, against the same by opening each log."""
    home = Home(place, trusted=True)
    place.joinpath("agentsh.toml").parent.mkdir(parents=True)
    drafts = Writer().drafts()
    for n in range(count):
        session = "20261129-" + "".join(CROCKFORD[n >> bits & 31] for bits in (25, 20, 15, 10, 5, 0))
        directory = home.sessions / session
        directory.mkdir(parents=True)
        head = encode_header(session, ordinal=0, first_seq=1, nonce=f"{n:016x}", created=TS, by="bench")
        lines = [encode_event(next(drafts), seq=seq, dur=seq - 1, salt=head.salt) for seq in range(1, EVENTS + 1)]
        (directory / "events.jsonl").write_bytes(head.raw + b"".join(lines))
    untrusted = home._replace(trusted=False)  # whose index is not believed: each log is opened
    each = [timed(lambda: rows(Homes((untrusted,), untrusted), Filter(limit=0)))]
    rows(Homes((home,), home), Filter(limit=0))
    ours = [timed(lambda: rows(Homes((home,), home), Filter(limit=50))) for _ in range(max(rounds, 5))]
    told, true = (rows(Homes((one,), one), Filter(limit=50)) for one in (home, untrusted))
    assert [(row.place.id, row.summary) for row in told] == [(row.place.id, row.summary) for row in true]
    ratio = statistics.median(each) / statistics.median(ours)
    return Row(f"newest 50 of {count:,} sessions", f"opening each log ({EVENTS} events), speed", ratio, 100, False)


def sections(quick: bool) -> dict[str, Callable[[Path], list[Row]]]:
    """Return what is measured, the cheap before the dear; each is given a place of its own."""
    rounds = 3 if quick else 7
    return {
        "append": lambda place: durable_append(place, rounds),
        "turn": lambda place: [turn(place, rounds)],
        "verify": lambda place: verification(place, rounds, 100 if quick else 200),
        "seal": lambda place: sealing(place, rounds, 64),
        "list": lambda place: [listing(place, rounds, 2_000 if quick else 10_000)],
        "resume": lambda place: resuming(place, rounds, 100_000, 300_000 if quick else 1_000_000),
    }


def measured(quick: bool) -> tuple[list[Row], list[str]]:
    """Return the rows, and why some are not there: one that breaks or comes too late takes no other with it."""
    found, missing = list[Row](), list[str]()
    began = time.monotonic()
    for name, measure in sections(quick).items():
        start = time.monotonic()
        if quick and start - began > QUICK_S:
            missing.append(f"{name}: {QUICK_S} s are over")
            continue
        with tempfile.TemporaryDirectory() as text:
            try:
                found += measure(Path(text) / name)
            except Exception as error:  # noqa: BLE001 - told at the end; the other figures stand
                missing.append(f"{name}: {type(error).__name__}: {error}")
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return found, missing


def main(arguments: list[str]) -> int:
    """Measure, print, draw; 1 where a target is missed or a figure is missing."""
    quick = "--quick" in arguments
    found, missing = measured(quick)
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}"
    print(markdown(found))
    print(f"\n{load}{', quick' if quick else ''}.")
    for reason in missing:
        print(f"Not measured: {reason}")
    if "--svg" in arguments:
        target = Path(arguments[arguments.index("--svg") + 1])
        caption = f"The log against its targets ({load}{', quick' if quick else ''})"
        target.write_text(svg(found, caption), encoding="utf-8")
    return 0 if all(row.met for row in found) and not missing else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
