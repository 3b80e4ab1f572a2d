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
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from zlib import crc32

from agentsh.log.frame import encode_event, encode_header
from agentsh.log.record import Draft
from agentsh.stores.verify import Verifier

SESSION = "20261129-k3v9qd"
ROUNDS = 7
BURN = bytes(range(256)) * 4000


def make(sessions: Path, megabytes: int) -> Path:
    """Write a log of events of about 1 kB."""
    dice = random.Random(1)
    words = [bytes(dice.choices(b"abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))).decode() for _ in range(5000)]
    log = sessions / SESSION / "events.jsonl"
    log.parent.mkdir(parents=True)
    ts = "2026-11-29T16:20:01.123456Z"
    head = encode_header(SESSION, ordinal=0, first_seq=1, nonce="7" * 16, created=ts, by="bench")
    with log.open("wb") as file:
        file.write(head.raw)
        seq = 0
        while file.tell() < megabytes * 1_000_000:
            seq += 1
            usage = {"prompt": 1544, "cached": 1408, "completion": 38, "reasoning": 0}
            text = " ".join(dice.choices(words, k=dice.randint(20, 250)))
            payload = {
                "text": text,
                "reasoning": None,
                "model": "x",
                "finish": "stop",
                "usage": usage,
                "cost_usd": 0.1,
            }
            draft = Draft("agent_message", ts, payload, max(seq - 1, 1))
            file.write(encode_event(draft, seq=seq, dur=max(seq - 3, 0), salt=head.salt))
    return log


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
    before = os.times()
    work()
    after = os.times()
    own = after.user + after.system - before.user - before.system
    return own, after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Print the figures."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as place:
        sessions = Path(place)
        log = make(sessions, megabytes)

        def parsed() -> None:
            with log.open("rb") as file:
                for line in file:
                    json.loads(line)

        def verified(jobs: int) -> None:
            (found,) = Verifier(str(sessions), None, jobs=jobs).check([SESSION])
            assert found.ok

        times: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for name, work in (
                ("json", parsed), ("one", lambda: verified(1)), ("two", lambda: verified(2)),
                ("burn one", lambda: burnt(1)), ("burn two", lambda: burnt(2)),
            ):  # fmt: skip
                times.setdefault(name, []).append(seconds(work))
            rival, alone, both = cpu_s(parsed), cpu_s(lambda: verified(1)), cpu_s(lambda: verified(2))
            times.setdefault("cpu json", []).append(rival[0])
            times.setdefault("cpu one", []).append(alone[0])
            times.setdefault("cpu two", []).append(both[0] + both[1] / 2)
    pairs = {
        "verify / json.loads": ("one", "json"),
        "the same, by CPU time": ("cpu one", "cpu json"),
        "gain of two processes": ("one", "two"),
        "gain of two that share nothing": ("burn one", "burn two"),
        "gain by CPU time, on two idle cores": ("cpu one", "cpu two"),
    }
    print(f"{megabytes} MB, {ROUNDS} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for label, (a, b) in pairs.items():
        ratios = [x / y for x, y in zip(times[a], times[b], strict=True)]
        print(f"{label:<36} median {statistics.median(ratios):.2f}  best of each {min(times[a]) / min(times[b]):.2f}")
    one, two = megabytes / min(times["one"]), megabytes / min(times["two"])
    print(f"verify, best: {one:.0f} MB/s with one, {two:.0f} with two")


if __name__ == "__main__":
    main()
