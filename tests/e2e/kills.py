"""A session of 20 steps that is killed at random moments, over and over, and what must hold after each kill."""

import json
import random
import re
import subprocess
import time
from collections import Counter
from typing import Any

from agentsh.testing.server import Request, call, reply
from tests.e2e.harness import Shell, of_type, stop

STEPS = 20
MARK = re.compile(r"mark-(\d+)")


def next_step(request: Request) -> Any:
    """Ask for the step after the highest that was ever asked for: a real agent does not repeat itself either."""
    asked = [
        int(n)
        for m in request.json["messages"]
        for c in m.get("tool_calls") or ()
        for n in MARK.findall(c["function"]["arguments"])
    ]
    step = max(asked, default=0) + 1
    if step > STEPS:
        return reply("All steps are done.", gap_s=0.002, chunk=4)
    line = f"mark-{step}"
    if step % 3 == 0:
        calls = [call("write", {"path": f"{line}.txt", "content": line}), call("list", {"path": "."})]
    else:
        command = f"echo {line} >> counter.txt; sleep 0.02"
        calls = [call("shell", {"command": command}), call("read", {"path": "counter.txt"})]
    return reply(f"Step {step}. " + "word " * 20, calls=calls, chunk=8, gap_s=0.004)


class Killer:
    """Kills sessions, one after another, until enough kills are done; counts what it saw."""

    def __init__(self, shell: Shell, seed: int) -> None:
        self.shell = shell
        self.random = random.Random(seed)
        self.session: str | None = None
        self.seen = b""
        self.done: set[str] = set()
        self.kills = self.unknown = self.sessions = 0

    def run(self, kills: int) -> None:
        """Kill exactly `kills` times, each at a random instant after a random event; each session then ends well."""
        while self.kills < kills:
            while self.kills < kills and self._killed():
                self.kills += 1
            process = self._start()
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0, err.decode()
            self._after(out)
            self._check_the_end()
            self.sessions += 1
            self.session, self.seen = None, b""

    def _killed(self) -> bool:
        """Start, wait for some event, kill; False where the session came to its end before."""
        process = self._start()
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(self.random.randint(1, 30))]
        if lines[-1]:
            time.sleep(self.random.uniform(0, 0.06))
        ended = process.poll() is not None or not lines[-1]
        _, out, err = stop(process)
        assert b"Traceback" not in err, err.decode()
        self._after(b"".join(lines) + out)
        return not ended

    def _start(self) -> "subprocess.Popen[bytes]":
        words = ["new", "go"] if self.session is None else ["resume", self.session, "go on"]
        return self.shell.start(*words, "--json", "--mode", "yolo")

    def _after(self, out: bytes) -> None:
        """Every line that was printed whole was acknowledged: it must be in the log, in order, unchanged."""
        whole = out[: out.rfind(b"\n") + 1]
        if self.session is None:  # one that was killed before its birth was recorded is no session yet
            self.session = next((i for i in self.shell.ids if i not in self.done and self._born(i)), None)
        self.seen += whole
        if self.session is not None:
            log = self.shell.log(self.session).read_bytes()
            position = 0
            for line in self.seen.splitlines(keepends=True):
                position = log.find(line, position)
                assert position >= 0, f"an acknowledged event is gone: {line[:100]!r}"

    def _born(self, session: str) -> bool:
        log = self.shell.log(session)
        return log.exists() and b'"type":"session_init"' in log.read_bytes()

    def _check_the_end(self) -> None:
        assert self.session is not None
        self.done.add(self.session)
        events = self.shell.events(self.session)
        assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
        calls = [e["seq"] for e in events if e["type"] == "tool_call"]
        starts = {e["seq"]: e["cause"] for e in events if e["type"] == "tool_started"}
        results = Counter(starts.get(e["cause"], e["cause"]) for e in events if e["type"] == "tool_result")
        assert results == Counter(calls), "each call has exactly one result"
        self.unknown += sum(p["status"] == "unknown" for p in of_type(events, "tool_result"))
        counter = self.shell.workspace(self.session) / "counter.txt"
        marks = Counter(counter.read_text().split()) if counter.exists() else Counter()
        assert all(n == 1 for n in marks.values()), f"something ran twice: {marks}"
        asked = MARK.findall(json.dumps([p["arguments"] for p in of_type(events, "tool_call")]))
        assert len(set(asked)) == STEPS
        assert of_type(events, "turn_finished")[-1]["reason"] == "done"
