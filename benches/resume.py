"""What a long session costs to resume: `python benches/resume.py [ROUNDS [EVENTS]]`, Markdown on stdout.

Two sessions are written through the real writer, one of EVENTS events (100,000) and one of ten times as many, about
1 kB each, with their segments closed and sealed as they grow and a checkpoint 500 events before the end. Whole
processes then run in turn, A B C D A B C D …: `resume` of both to a context that is ready to be sent, the way the
command goes; and two that parse the lines of the smaller session from one plain file: through our own codec, and with
models of pydantic, of the line and of what each type of event holds (`agentsh.testing.pydantic_models`). Each is
timed from its start to the line in which it says that it is ready, by the clock and in processor time, which other
work on the machine touches less; all run from bytecode, as after an installation. Medians, and medians of the ratios
of each round; peak memory as each process sees it itself. Seconds belong to one machine and one moment; the ratios
travel.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from segments import Writer

from agentsh.app.paths import Home
from agentsh.base.text import plural
from agentsh.context.fold import apply
from agentsh.context.state import SessionState
from agentsh.context.state_codec import encode_state, reducer
from agentsh.events.codec import decode
from agentsh.log.record import Draft
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore

BUDGET_BYTES = 128_000 * 3
"""Of a request; a cut is recorded where 80 % of it are passed, down to 40 %, as `context.budget` does."""
BEHIND = 500
"""Events behind the last checkpoint: half of what the policy lets come together."""
TURN_EVENTS = 400

RESUME = """
import gc
gc.disable()  # as `agentsh.cli.sessions` does
import asyncio, sys, time
from pathlib import Path
from agentsh.app.paths import Home, Homes
from agentsh.app.sandboxes import choose_early
from agentsh.app.settings import choose_model, load_settings

home, session = Home(Path(sys.argv[1]), True), sys.argv[2]
settings = load_settings(Homes((home,), home), {"HOME": sys.argv[1]})
choose_early(settings)
from agentsh.app.build import resume_session
from agentsh.app.plan import Plan, Screens
from agentsh.app.stores import blob_store
from agentsh.app.texts import BlobTexts
from agentsh.context.budget import fit
from agentsh.context.marks import Marks
from agentsh.models.chat_body import encode
from agentsh.ports.model import Prompt
from agentsh.ports.tokens import ByteEstimate

async def main():
    async def plan_for(state):
        return Plan(home, settings, choose_model(settings, {"OPENAI_API_KEY": "sk-none"}, "gpt-5"), Screens(()))
    running = await resume_session(home, session, settings, plan_for=plan_for, show=lambda past: None)
    gc.freeze()
    gc.enable()
    state = running.session.state
    fitted = fit(state, BlobTexts(blob_store(home)), ByteEstimate(), marks=Marks(128_000))
    body = encode(Prompt(state.model, fitted.messages, ()))
    print(len(fitted.messages), fitted.tokens, len(body), time.process_time(), flush=True)
    await running.session.close()

asyncio.run(main())
"""
CODEC = """
import sys, time
from agentsh.events.codec import decode
from agentsh.log.scan import to_record

with open(sys.argv[1], "rb") as file:
    events = [decode(to_record(line)) for line in file]
print(len(events), time.process_time(), flush=True)
"""
PARSE = """
import sys, time
from pydantic import BaseModel
from agentsh.events.union import KINDS
from agentsh.testing.pydantic_models import model_of

class Line(BaseModel):
    seq: int
    ts: str
    type: str
    dur: int
    cause: int | None = None
    payload: dict
    crc: str

facts, models = [], {name: model_of(kind) for name, kind in KINDS.items()}
with open(sys.argv[1], "rb") as file:
    for raw in file:
        line = Line.model_validate_json(raw)
        facts.append(models[line.type].model_validate(line.payload))
print(len(facts), time.process_time(), flush=True)
"""
PEAK = """
import resource, sys
try:
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
print("PEAK", peak)
"""


class Session:
    """Makes up the events of a session: turns that read, edit and test, with a cut whenever the context is full."""

    def __init__(self, session: str) -> None:
        self._writer = Writer().drafts()
        self._session = session
        self._items: list[tuple[int, int]] = []
        self.last_seq = 0

    def turn(self) -> list[Draft]:
        """Return the events of the next turn."""
        drafts: list[Draft] = []
        for draft in self._writer:
            drafts.append(self._fitting(draft, self.last_seq + len(drafts) + 1))
            if draft.type == "turn_finished":
                self.last_seq += len(drafts)
                return drafts
        raise AssertionError

    def birth(self) -> list[Draft]:
        """Return the first events."""
        init = {
            "id": self._session, "title": "bench", "cwd": "/", "project": None, "model": "demo", "mode": "ask",
            "workspace": {"kind": "empty", "origin": None, "base": None},
        }  # fmt: skip
        environment = {"system_prompt": "You are a bench.", "tools": "[]", "instructions": []}
        ts = "2026-11-29T16:20:00.000000Z"
        self.last_seq = 2
        return [Draft("session_init", ts, init), Draft("environment_changed", ts, environment)]

    def _fitting(self, draft: Draft, seq: int) -> Draft:
        payload, cause = dict(draft.payload), None
        if draft.type in ("user_message", "agent_message"):
            self._items.append((seq, 0))
            self._answering = seq
        elif draft.type == "context_built":
            payload["cut"] = self._cut()
        elif draft.type == "tool_call":
            cause = self._answering
        elif draft.type in ("tool_started", "code_edit", "tool_result"):
            cause = self._asked
        if draft.type == "tool_call":
            self._asked = seq
        if draft.type == "turn_finished":
            payload["usage"] = {"prompt": 1, "cached": 0, "completion": 1, "reasoning": 0}
        text = payload.get("for_model") or payload.get("text") or payload.get("arguments") or ""
        if self._items and draft.type in ("user_message", "agent_message", "tool_call", "tool_result"):
            at, size = self._items[-1]
            self._items[-1] = (at, size + len(text.encode()) + 20)
        return Draft(draft.type, draft.ts, payload, cause)

    def _cut(self) -> dict[str, Any] | None:
        total = sum(size for _, size in self._items)
        if total < BUDGET_BYTES * 0.8:
            return None
        while total > BUDGET_BYTES * 0.4:
            total -= self._items.pop(0)[1]
        return {"from_seq": self._items[0][0], "reason": "high-water mark"}


async def write(home: Home, session: str, events: int) -> None:
    """Write a session of about so many events, with its checkpoint."""
    store = JsonlStore(home.sessions, FileBlobs(home.blobs), durability="none")
    log, made, state = await store.create(session, by="bench"), Session(session), SessionState()
    pending, saved = made.birth(), False
    while log.last_seq < events:
        while len(pending) < TURN_EVENTS:
            pending += made.turn()
        for record in await log.append(pending):
            apply(state, decode(record))
        pending = []
        if not saved and log.last_seq > events - BEHIND - TURN_EVENTS:
            saved = bool(await log.checkpoint(encode_state(state), reducer=reducer(), keep=3))
        await log.turn_ended()
    directory = home.sessions / session
    while any(n.endswith(".jsonl") and "-" in n for n in os.listdir(directory)):  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0.2)
    await log.close()
    (home.workspaces / session).mkdir(parents=True)


def lines(home: Home, session: str) -> Iterator[bytes]:
    """Yield the lines of a session."""
    for record in JsonlStore(home.sessions, FileBlobs(home.blobs)).read(session):
        yield record.raw


class Run(NamedTuple):
    """seconds, cpu_s: until it said `words`. peak_kib: of memory."""

    seconds: float
    cpu_s: float
    peak_kib: int
    words: list[str]


def whole(code: str, *arguments: str) -> Run:
    """Run a process to its end."""
    start = time.perf_counter()
    argv = [sys.executable, "-c", code + PEAK, *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        seconds = time.perf_counter() - start
        rest = process.stdout.read()
    if process.returncode:
        sys.exit("a process failed")
    return Run(seconds, float(words[-1]), int(rest.split()[1]), words)


SMALL, LARGE = "20261129-aaaaaa", "20261129-bbbbbb"


def prepare(place: Path, events: int, more: int) -> tuple[Home, Path]:
    """Write both sessions, the second of `more` events, and the lines of the first to a plain file.

    From here on processes keep their bytecode, in `place`.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(place / "bytecode")
    home, plain = Home(place / "home", True), place / "plain.jsonl"
    for session, count in ((SMALL, events), (LARGE, more)):
        started = time.perf_counter()
        asyncio.run(write(home, session, count))
        print(f"{plural(count, 'event')} written in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    with plain.open("wb") as file:
        file.writelines(lines(home, SMALL))
    return home, plain


def main(rounds: int, events: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        home, plain = prepare(Path(place), events, events * 10)
        report(measure(home, plain, rounds), events, plain.stat().st_size / 1e6)


def measure(home: Home, plain: Path, rounds: int) -> list[list[Run]]:
    """Return the runs of each round; the first round only warms the caches."""
    root, runs = str(home.root), list[list[Run]]()
    for _ in range(rounds + 1):
        runs.append(
            [
                whole(RESUME, root, SMALL),
                whole(RESUME, root, LARGE),
                whole(CODEC, str(plain)),
                whole(PARSE, str(plain)),
            ]
        )
    return runs[1:]


def report(runs: list[list[Run]], events: int, mb: float) -> None:
    """Print the tables."""
    ours, ten, codec, parse = zip(*runs, strict=True)

    def row(what: str, a: tuple[Run, ...], b: tuple[Run, ...], wanted: str) -> None:
        ratio = statistics.median(x.seconds / y.seconds for x, y in zip(a, b, strict=True))
        seconds = [statistics.median(r.seconds for r in rows) for rows in (a, b)]
        cpu = statistics.median(x.cpu_s / y.cpu_s for x, y in zip(a, b, strict=True))
        print(f"| {what} | {seconds[0]:.2f} | {seconds[1]:.2f} | {ratio:.3f} | {cpu:.3f} | {wanted} |")

    messages, tokens, body, _ = ours[-1].words
    print(
        f"{plural(events, 'event')}, {mb:.0f} MB; the context: {messages} messages, {tokens} tokens, {body} bytes.\n"
    )
    print("| whole processes: what / rival | s | rival s | ratio | of processor time | wanted |")
    print("|---|--:|--:|--:|--:|--:|")
    row("`resume` / parsing the same lines through our codec", ours, codec, "at most 0.10")
    row("`resume` / parsing them with pydantic models of line and payload", ours, parse, "at most 0.10")
    row(f"`resume`, {plural(events * 10, 'event')} / {plural(events, 'event')}", ten, ours, "at most 1.5")
    print("\n| peak memory | MiB | wanted |\n|---|--:|--:|")
    for name, rows, wanted in (
        (f"`resume`, {plural(events, 'event')}", ours, "under 120"),
        (f"`resume`, {plural(events * 10, 'event')}", ten, "under 120"),
        ("parsing through our codec", codec, ""),
    ):
        print(f"| {name} | {max(r.peak_kib for r in rows) / 1024:.0f} | {wanted} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
