"""The targets of the log as one table: `python benches/all.py [--quick] [--svg FILE]`, or `make bench`.

Each way and its rival run in turn, A B A B …; the median of the pairwise ratios is printed as Markdown. Milliseconds
belong to one machine and one moment; the ratios travel, on a machine that does nothing else.
"""

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from segments import SESSION, Writer, fill, gzip9, one_event, pack, pair, sealed_again, timed, unpack
from table import Row, markdown, svg
from verify import burnt, make

from agentsh.app.catalog import Filter, rows
from agentsh.app.paths import Home, Homes
from agentsh.base.ids import CROCKFORD
from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.recover import OpenSegment
from agentsh.log.seal import seal_closed
from agentsh.log.segment import SEALED, begin_segment, closed_name, new_header
from agentsh.log.store import OpenLog
from agentsh.log.writer import Appender
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.verify import Verifier

FILES = RealFiles()
PAUSE_S = 0.5
"""Between rounds of syncs: disks of virtual machines are throttled after bursts."""
EVENTS = 20
"""In each session of the list: one turn with a tool or two."""
TS = "2026-11-29T16:20:01.118204Z"


def typical(count: int) -> list[bytes]:
    """Return payload texts of a session's events, as bytes for a rival that keeps no frame."""
    drafts = Writer().drafts()
    return [json.dumps(next(drafts).payload).encode() for _ in range(count)]


def durable_append(place: Path, rounds: int) -> Row:
    """One event appended and synced on the writer's thread, against write(2) and fdatasync of the same bytes."""
    place.mkdir()
    header = new_header(SESSION, ordinal=0, first_seq=1, by="bench")
    segment = OpenSegment(begin_segment(FILES, str(place), header), len(header.raw), header.salt, 0, 1)
    appender = Appender(
        FILES, str(place), SESSION, segment, blobs=FileBlobs(place / "blobs"), by="bench", last_seq=0, durable_seq=0,
        durability="always",
    )  # fmt: skip
    drafts = Writer().drafts()
    fd = os.open(place / "rival", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    ratios = []
    for _ in range(rounds):
        for _ in range(20):
            draft = next(drafts)
            start = time.perf_counter()
            (record,) = appender.append([draft])
            ours = time.perf_counter() - start
            start = time.perf_counter()
            os.write(fd, record.raw)
            os.fdatasync(fd)
            ratios.append(ours / (time.perf_counter() - start))
        time.sleep(PAUSE_S)
    appender.close()
    os.close(fd)
    return Row("append and sync one event", "write + fdatasync of its bytes", statistics.median(ratios), 1.15, True)


def turn(place: Path, rounds: int) -> Row:
    """Five events with two points at which all must be durable, through the store; the rival commits each."""
    import sqlite3

    place.mkdir()
    store = JsonlStore(place / "sessions", FileBlobs(place / "blobs"))
    db = sqlite3.connect(place / "rival.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, data BLOB)")
    drafts, texts = Writer().drafts(), iter(typical(20 * rounds * 5))

    async def ours(log: OpenLog) -> None:
        for count in (3, 2):
            for _ in range(count):
                await log.append([next(drafts)])
            await log.wait_durable(log.last_seq)

    def theirs() -> None:
        for _ in range(5):
            db.execute("INSERT INTO events (data) VALUES (?)", (next(texts),))

    async def measured() -> list[float]:
        log = await store.create("20261129-aaaaaa", by="bench")
        ratios = []
        for _ in range(rounds):
            for _ in range(15):
                start = time.perf_counter()
                await ours(log)
                middle = time.perf_counter()
                theirs()
                ratios.append((time.perf_counter() - middle) / (middle - start))
            await asyncio.sleep(PAUSE_S)
        await log.close()
        return ratios

    ratio = statistics.median(asyncio.run(measured()))
    db.close()
    return Row("five events, two sync points", "five SQLite WAL FULL commits, speed", ratio, 1.3, False)


def verification(place: Path, rounds: int, megabytes: int) -> list[Row]:
    """Read a whole log, against `json.loads` on each of its lines; and with two processes against one."""
    log = make(place, megabytes)

    def parsed() -> None:
        with log.open("rb") as file:
            for line in file:
                json.loads(line)

    def verified(jobs: int) -> None:
        (found,) = Verifier(str(place), None, jobs=jobs).check([SESSION])
        assert found.ok

    _, _, ratio = pair(lambda: verified(1), parsed, rounds)
    _, _, gain = pair(lambda: verified(1), lambda: verified(2), rounds)
    _, _, most = pair(lambda: burnt(1), lambda: burnt(2), rounds)
    note = f"work that shares nothing gains {most:.2f}× here and now"
    return [
        Row("verify", "json.loads of each line", ratio, 0.6, True),
        Row("verify with two processes", "with one, speed", gain, 1.7, False, note=note),
    ]


def sealing(place: Path, rounds: int, mib: int) -> list[Row]:
    """One sealed segment: its size, its speed, and one old event of it."""
    directory = place / "sessions" / SESSION
    last = fill(directory, 1, mib << 20)
    name = closed_name(0, 1)
    raw = (directory / name).read_bytes()
    seal_closed(FILES, str(directory), SESSION, below=1)
    packed = (directory / (name + SEALED)).read_bytes()
    speed = len(raw) / 1e6 / min(timed(lambda: pack(raw)) for _ in range(rounds))
    whole = len(raw) / 1e6 / min(timed(lambda: sealed_again(directory, name, raw)) for _ in range(rounds))
    dice = random.Random(2)
    _, _, old = pair(lambda: one_event(directory, dice.randint(1, last)), lambda: unpack(packed), rounds * 3)
    return [
        Row("sealed segment, saved", "the plain one", 100 - 100 * len(packed) / len(raw), 70, False, " %"),
        Row("sealed segment, packing", "per second", speed, 200, False, " MB", f"{whole:.0f} MB from end to end"),
        Row("sealed segment, size", "gzip -9", len(packed) / gzip9(raw), 0.9, True),
        Row("one event of a sealed segment", "unpacking all of it", old, 0.15, True),
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
    ratio = statistics.median(each) / statistics.median(ours)
    return Row(f"newest 50 of {count:,} sessions", f"opening each log ({EVENTS} events), speed", ratio, 100, False)


def main(arguments: list[str]) -> int:
    """Measure, print, draw."""
    quick = "--quick" in arguments
    rounds = 3 if quick else 7
    with tempfile.TemporaryDirectory() as text:
        place = Path(text)
        found = [durable_append(place / "append", rounds), turn(place / "turn", rounds)]
        found += verification(place / "verify", rounds, 40 if quick else 100)
        found += sealing(place / "seal", rounds, 16 if quick else 64)
        found.append(listing(place / "home", rounds, 2_000 if quick else 10_000))
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}"
    print(markdown(found))
    print(f"\n{load}; {'quick, ' if quick else ''}{rounds} rounds.")
    if "--svg" in arguments:
        target = Path(arguments[arguments.index("--svg") + 1])
        target.write_text(svg(found, f"The log against its targets ({load})"), encoding="utf-8")
    return 0 if all(row.met for row in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
