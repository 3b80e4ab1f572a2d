"""What starting costs, as ratios in one interleaved run: `python benches/startup.py [ROUNDS]` prints Markdown.

Each command and its rival run in turn, A B A B …, as whole processes; the medians and the median of the pairwise
ratios are printed, of the clock and of processor time, which other work on the machine touches less. Milliseconds
belong to one machine and one moment; the ratios travel. Both sides run from bytecode, as after an installation: it is
kept in a directory of this run, whatever PYTHONDONTWRITEBYTECODE says, which would have only ours compiled each time.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agentsh.base.ids import CROCKFORD
from agentsh.log.files import RealFiles
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.lease import take
from agentsh.log.record import Draft
from agentsh.testing.server import ScriptedServer, call, forever, reply

BIN = Path(sys.executable).parent
SESSIONS = 1_000
TS = "2026-11-29T16:20:01.123456Z"


def fill(home: Path) -> None:
    """Write many small sessions, as they would lie on disk."""
    for n in range(SESSIONS):
        session = "20261129-" + "".join(CROCKFORD[n >> bits & 31] for bits in (25, 20, 15, 10, 5, 0))
        place = home / "sessions" / session
        place.mkdir(parents=True)
        header = encode_header(session, ordinal=0, first_seq=1, nonce=f"{n:016x}", created=TS, by="bench")
        workspace = {"kind": "empty", "origin": None, "base": None}
        usage = {"prompt": 1000 + n, "cached": 0, "completion": 50, "reasoning": 0}
        drafts = [
            Draft("session_init", TS, {"id": session, "title": None, "cwd": "/x", "project": "x", "model": "m",
                                       "mode": "ask", "workspace": workspace}),
            Draft("user_message", TS, {"text": f"prompt number {n} " * 5, "attachments": []}),
            Draft("agent_message", TS, {"text": "answer " * 100, "reasoning": None, "model": "m", "finish": "stop",
                                        "usage": usage, "cost_usd": 0.001}),
            Draft("turn_finished", TS, {"reason": "done", "steps": 1, "usage": usage, "cost_usd": 0.001,
                                        "duration_ms": 1}),
        ]  # fmt: skip
        lines = [encode_event(d, seq=i, dur=0, salt=header.salt) for i, d in enumerate(drafts, 1)]
        (place / "events.jsonl").write_bytes(header.raw + b"".join(lines))


class Run(NamedTuple):
    """cpu_s: of the process and of those that it waited for."""

    seconds: float
    cpu_s: float


def one(argv: list[str], env: dict[str, str], cwd: Path, code: int = 0) -> Run:
    """Return what one run took, which must end with `code`."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, check=False)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != code:
        sys.exit(f"{argv} failed: {done.stderr.decode()}")
    return Run(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def pair(a: Callable[[], Run], b: Callable[[], Run], rounds: int) -> tuple[float, float, float, float]:
    """Return the median seconds of both, and the median ratios by the clock and of processor time."""
    a(), b()
    runs = [(a(), b()) for _ in range(rounds)]
    return (
        statistics.median(x.seconds for x, _ in runs),
        statistics.median(y.seconds for _, y in runs),
        statistics.median(x.seconds / y.seconds for x, y in runs),
        statistics.median(x.cpu_s / y.cpu_s for x, y in runs),
    )


def compiled(place: Path) -> dict[str, str]:
    """Return the environment for processes whose bytecode is kept in `place` from their first run on."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPYCACHEPREFIX": str(place)}


def main(rounds: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as text, ScriptedServer([forever(answer)]) as server:
        place = Path(text)
        home = place / "home"
        fill(home)
        (place / "cwd").mkdir()
        env = compiled(place / "bytecode")
        env |= {"AGENTSH_HOME": str(home), "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        turn_env = {**env, "AGENTSH_HOME": str(place / "other")}
        agentsh, python = str(BIN / "agentsh"), sys.executable

        def run(*argv: str, env: dict[str, str] = env, code: int = 0) -> Callable[[], Run]:
            return lambda: one(list(argv), env, place / "cwd", code)

        held = sorted(p.name for p in (home / "sessions").iterdir())[0]
        lease = take(RealFiles(), str(home / "sessions" / held), held)

        turn = (agentsh, "new", "go", "-p", "--json", "--model", "m", "--mode", "yolo", "--empty")
        rows = [
            ("`--version` / `python -c pass`", 3.0, run(agentsh, "--version"), run(python, "-c", "pass")),
            ("`ls`, 1,000 sessions / `import typer`", 1.2, run(agentsh, "ls"), run(python, "-c", "import typer")),
            (
                "`resume` of a session that is held, 1,000 sessions / `import typer`",
                1.2,
                run(agentsh, "resume", held, "go on", "-p", code=4),
                run(python, "-c", "import typer"),
            ),
            (
                "a headless turn with a tool call / `import AsyncOpenAI`",
                2.0,
                run(*turn, env=turn_env),
                run(python, "-c", "from openai import AsyncOpenAI"),
            ),
        ]
        print("| what / rival | ms | rival ms | ratio | of processor time | at most |\n|---|--:|--:|--:|--:|--:|")
        for name, limit, a, b in rows:
            ours, theirs, ratio, cpu = pair(a, b, rounds)
            times = f"{ours * 1000:.0f} | {theirs * 1000:.0f} | {ratio:.2f} | {cpu:.2f}"
            print(f"| {name} | {times} | {limit} |", flush=True)
        lease.release()
        peak = peak_mib(list(turn), turn_env, place / "cwd")
        print(f"| memory of that turn, MiB | {peak:.0f} | | | | 100 |")
        print(f"| first request, bytes | {len(server.requests[0].body):,} | | | | 8,000 |")


def answer(request: object) -> object:
    """Ask for one tool, then answer."""
    messages = json.loads(request.body)["messages"]  # type: ignore[attr-defined]
    if messages[-1]["role"] == "tool":
        return reply("Done.")
    return reply("I write.", calls=[call("write", {"path": "a.txt", "content": "one\n"})])


def peak_mib(argv: list[str], env: dict[str, str], cwd: Path) -> float:
    """Return the peak memory of one run, measured in a process of its own."""
    pid = os.fork()
    if not pid:
        with open(os.devnull, "wb") as sink:
            subprocess.run(argv, env=env, cwd=cwd, stdout=sink, stderr=sink, check=False)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        Path(cwd / "peak").write_text(str(peak))
        os._exit(0)
    os.waitpid(pid, 0)
    return int((cwd / "peak").read_text()) / 1024


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
