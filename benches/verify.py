"""How fast `verify` reads: against `json.loads` of each line, and two processes against one. Ratios of one run.

`python benches/verify.py [MEGABYTES]`. Beside the gain of two processes stands what two processes gain at all on this
machine right now, with work that shares nothing: on a busy one that is less than 2.
"""

import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from string import ascii_lowercase
from zlib import crc32

from agentsh.log.frame import encode_event, encode_header
from agentsh.log.record import Draft
from agentsh.stores.verify import Verifier

SESSION = "20261129-k3v9qd"
ROUNDS = 7
BURN = bytes(range(256)) * 4000


def make(sessions: Path, megabytes: float, session: str = SESSION) -> Path:
    """Write a log of events of about 1 kB."""
    dice, words = random.Random(session), vocabulary()
    log = sessions / session / "events.jsonl"
    log.parent.mkdir(parents=True)
    ts = "2026-11-29T16:20:01.123456Z"
    head = encode_header(session, ordinal=0, first_seq=1, nonce="7" * 16, created=ts, by="bench")
    usage = {"prompt": 1544, "cached": 1408, "completion": 38, "reasoning": 0}
    with log.open("wb") as file:
        file.write(head.raw)
        seq = 0
        while file.tell() < megabytes * 1_000_000:
            seq += 1
            payload = {
                "text": " ".join(dice.choices(words, k=dice.randint(20, 250))), "reasoning": None, "model": "x",
                "finish": "stop", "usage": usage, "cost_usd": 0.1,
            }  # fmt: skip
            draft = Draft("agent_message", ts, payload, max(seq - 1, 1))
            file.write(encode_event(draft, seq=seq, dur=max(seq - 3, 0), salt=head.salt))
    return log


def make_many(sessions: Path, count: int, megabytes: float) -> list[str]:
    """Write so many logs of that size each, and return their ids."""
    ids = [f"{SESSION[:9]}{n:06}" for n in range(count)]
    for session in ids:
        make(sessions, megabytes, session)
    return ids


@cache
def vocabulary() -> list[str]:
    """Return words that nobody knows."""
    dice = random.Random(1)
    return ["".join(dice.choices(ascii_lowercase, k=dice.randint(2, 9))) for _ in range(5000)]


def checked(sessions: Path, ids: Sequence[str], jobs: int) -> None:
    """Verify sessions that are whole."""
    assert all(found.ok for found in Verifier(str(sessions), None, jobs=jobs).check(ids))


def gains(sessions: Path, ids: Sequence[str], rounds: int) -> tuple[float, float]:
    """Return what two processes gain over one in verifying, and what two that share nothing gain meanwhile."""
    found: list[tuple[float, float]] = []
    for _ in range(rounds):
        one, two = seconds(lambda: checked(sessions, ids, 1)), seconds(lambda: checked(sessions, ids, 2))
        found.append((one / two, seconds(lambda: burnt(1)) / seconds(lambda: burnt(2))))
    return statistics.median(gain for gain, _ in found), statistics.median(most for _, most in found)


def burn(rounds: int) -> int:
    """Work that shares nothing with anybody."""
    return sum(crc32(BURN, n) & 1 for n in range(rounds))


def burnt(jobs: int) -> None:
    """Do the same work with one process or two."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        list(pool.map(burn, [100] * 16))


def seconds(work: Callable[[], object]) -> float:
    """Return how long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cpu_s(work: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU time of this process and of its children."""
    before = _cpu_s()
    work()
    own, children = (after - earlier for after, earlier in zip(_cpu_s(), before, strict=True))
    return own, children


def _cpu_s() -> tuple[float, float]:
    own, children = (getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


def main() -> None:
    """Print the figures."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as place:
        sessions = Path(place)
        log = make(sessions, megabytes)
        ids = make_many(sessions, megabytes * 2, 0.4)

        def parsed() -> None:
            with log.open("rb") as file:
                for line in file:
                    json.loads(line)

        ways: dict[str, Callable[[], None]] = {
            "json": parsed,
            "one": lambda: checked(sessions, [SESSION], 1), "two": lambda: checked(sessions, [SESSION], 2),
            "many one": lambda: checked(sessions, ids, 1), "many two": lambda: checked(sessions, ids, 2),
            "burn one": lambda: burnt(1), "burn two": lambda: burnt(2),
        }  # fmt: skip
        times: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for name, work in ways.items():
                times.setdefault(name, []).append(seconds(work))
                # On idle cores all is done when the busiest of the two is.
                times.setdefault(f"cpu {name}", []).append(max(cpu_s(work)))
    pairs = {
        "verify / json.loads": ("one", "json"),
        "the same, by CPU time": ("cpu one", "cpu json"),
        "gain of two processes": ("one", "two"),
        f"the same, {len(ids)} sessions": ("many one", "many two"),
        "gain of two that share nothing": ("burn one", "burn two"),
        "gain by CPU time, on two idle cores": ("cpu one", "cpu two"),
        f"the same by CPU time, {len(ids)} sessions": ("cpu many one", "cpu many two"),
    }
    print(f"{megabytes} MB, {ROUNDS} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for label, (a, b) in pairs.items():
        ratios = [x / y for x, y in zip(times[a], times[b], strict=True)]
        print(f"{label:<36} median {statistics.median(ratios):.2f}  best of each {min(times[a]) / min(times[b]):.2f}")
    one, two = megabytes / min(times["one"]), megabytes / min(times["two"])
    print(f"verify, best: {one:.0f} MB/s with one, {two:.0f} with two")


if __name__ == "__main__":
    main()
