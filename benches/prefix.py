"""How much of each request a provider has cached already: agentsh, killed and resumed, against a sliding window.

`python benches/prefix.py [STEPS] [KILLS] [BUDGET]`. One real session of STEPS steps over a real socket, killed with
SIGKILL KILLS times and resumed. Counted: bytes of each request that are the start of the one before, as a share of
all bytes sent. A provider's cache works on such a start, in blocks of tokens; tokens are taken as bytes here. Beside
it, of the very same conversation: what a window over its last 20, 40 or 80 messages would have sent.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentsh.app.catalog import places
from agentsh.app.contexts import Contexts, Sent, encoded
from agentsh.app.paths import Home
from agentsh.app.stores import event_store
from agentsh.context.difference import shared
from agentsh.context.fold import apply
from agentsh.context.messages import build, messages_of
from agentsh.context.state import SessionState
from agentsh.context.view import View
from agentsh.events.compaction import Compaction
from agentsh.events.turn import ContextBuilt
from agentsh.testing.server import Request, ScriptedServer, call, reply

COMMAND = Path(sys.executable).parent / "agentsh"
WINDOWS = (20, 40, 80)


class Agent:
    """Asks for so many commands, one in each step, then ends."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.asked = 0

    def __call__(self, request: Request) -> Any:
        if "about to be replaced by a summary" in str(request.json["messages"][-1]["content"]):
            return reply("## Goal\nAll steps.\n## Open work\nThe next step.\n## Exact facts\nNone.")
        self.asked += 1
        if self.asked > self.steps:
            return reply("All is done.")
        last = 1000 + (40 + self.asked * 37 % 200) * 3
        return reply(f"Step {self.asked}.", calls=[call("shell", {"command": f"seq 1000 {last}"})])


def run(place: Path, steps: int, kills: int, budget: int) -> list[bytes]:
    """Run the session; return the bodies that the server was sent."""
    home, cwd = place / "home", place / "project"
    cwd.mkdir()
    home.mkdir()
    (home / "agentsh.toml").write_text(f"[context]\nbudget_tokens = {budget}\n")
    stops: list[int | None] = [*sorted(random.Random(7).sample(range(2, steps), kills)), None]
    with ScriptedServer([Agent(steps)] * (steps + kills + 5)) as server:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "AGENTSH_"))}
        env |= {"HOME": str(place), "AGENTSH_HOME": str(home), "AGENTSH_MODEL": "scripted"}
        env |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
        words = ["new", "work", "--empty"]
        for upto in stops:
            process = subprocess.Popen(
                [COMMAND, *words, "-p", "--mode", "yolo", "--max-steps", str(steps + 9)], cwd=cwd, env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
            while upto is not None and process.poll() is None and len(server.requests) < upto:
                time.sleep(0.005)
            if upto is not None:
                process.send_signal(signal.SIGKILL)
            _, err = process.communicate(timeout=600)
            assert process.returncode == (0 if upto is None else -signal.SIGKILL), err.decode()
            words = ["resume", "--last", "go on"]
        return [r.body for r in server.requests if r.path.endswith("/chat/completions")]


def requests_of(root: Path) -> tuple[Contexts, list[Sent]]:
    """Return every request of the session, built again from its log."""
    home = Home(root, trusted=True)
    (place,) = places((home,))
    contexts = Contexts(place)
    seqs = [r.seq for r in event_store(home).read(place.id) if r.type == "context_built"]
    return contexts, [contexts.at(seq) for seq in seqs]


def uncut(sent: Sent) -> SessionState:
    """Return the state before a request as it would be if nothing had ever been cut or compacted."""
    state = SessionState()
    for event in sent.events:
        if isinstance(event.fact, Compaction):
            continue
        if isinstance(event.fact, ContextBuilt):
            event = event._replace(fact=event.fact.model_copy(update={"cut": None}))
        apply(state, event)
    return state


def windowed(sent: Sent, contexts: Contexts, size: int) -> bytes:
    """Return what a window over the last `size` messages would have sent instead."""
    system, *rest = messages_of(build(uncut(sent), contexts.texts, View()))
    start = max(len(rest) - size, 0)
    while start < len(rest) and rest[start].role == "tool":  # a result never stands without its call
        start += 1
    return encoded(sent.rebuilt.wire, replace(sent.rebuilt.prompt, messages=(system, *rest[start:])))


def share(bodies: Sequence[bytes]) -> float:
    """Return which share of all bytes sent, but for the first request, was the start of the request before."""
    return sum(shared(bodies)) / sum(len(body) for body in bodies[1:])


def fresh(bodies: Sequence[bytes]) -> int:
    """Return the bytes that a provider had to read anew."""
    return sum(map(len, bodies)) - sum(shared(bodies))


def main() -> None:
    """Print the figures."""
    given = [int(n) for n in sys.argv[1:]]
    steps, kills, budget = [*given, *(200, 10, 64_000)[len(given) :]]
    with tempfile.TemporaryDirectory() as place:
        bodies = run(Path(place), steps, kills, budget)
        contexts, sent = requests_of(Path(place) / "home")
        assert [s.body for s in sent] == bodies, "what was sent is what the log gives"
        others = {size: [windowed(s, contexts, size) for s in sent] for size in WINDOWS}
    decisions = sum(s.built.cut is not None for s in sent)
    print(f"{len(bodies)} requests, {sum(map(len, bodies)) / 1e6:.1f} MB, all built again byte for byte")
    print(f"{kills} kills, budget {budget:,} tokens, {decisions} recorded cuts or prunings")
    print(f"agentsh                  {share(bodies):6.1%} of what was sent was the start of the request before")
    for size, bodies_then in others.items():
        ratio = fresh(bodies_then) / fresh(bodies)
        print(
            f"window of {size:>3} messages   {share(bodies_then):6.1%}, bytes to read anew: {ratio:.1f} times as many"
        )


if __name__ == "__main__":
    main()
