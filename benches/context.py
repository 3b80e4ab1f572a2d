"""How long it takes until a context can be sent: `python benches/context.py [ROUNDS]`, Markdown on stdout.

A session works until its context has passed three quarters of a budget of 128,000 tokens; its checkpoint is written
as a file. Then, in one process, in turn: the file, warm in the cache, becomes the body of the next request (checked,
unpacked, decoded, weighed, fitted, validated, encoded, hashed); and `json.loads` reads the very bytes of that body.
The same again with no checkpoint decoded but a state at hand, as at each step of a turn. Medians, and the median of
the ratios of each round. Milliseconds belong to one machine and one moment; the ratios travel.
"""

import gc
import json
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from resume import Session
from segments import SESSION, pair

from agentsh.app.texts import BlobTexts
from agentsh.app.wiring import TOOLS, load
from agentsh.base.text import plural
from agentsh.context.budget import fit
from agentsh.context.fold import apply
from agentsh.context.marks import Marks
from agentsh.context.rendered import RenderCache
from agentsh.context.request import prompt_of, tools_of
from agentsh.context.state import SessionState
from agentsh.context.state_codec import decode_state, encode_state, reducer
from agentsh.context.validate import problems
from agentsh.events.codec import decode
from agentsh.log.chain import Anchor
from agentsh.log.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from agentsh.log.files import RealFiles
from agentsh.log.frame import decode_event, encode_event
from agentsh.log.record import Draft
from agentsh.log.spill import spill
from agentsh.models.chat_body import encode
from agentsh.ports.tokens import PieceEstimate
from agentsh.stores.memory import MemoryBlobs

BUDGET = 128_000
FULL = 0.75
FILES = RealFiles()


class Ready(NamedTuple):
    """A request that could be sent."""

    body: bytes
    sha256: str
    tokens: int
    messages: int


def ready(state: SessionState, texts: BlobTexts, cache: RenderCache | None = None) -> Ready:
    """Return the next request of a state, as `engine.step` makes it."""
    counter, tools = PieceEstimate(), tools_of(state, texts)
    fitted = fit(state, texts, counter, marks=Marks(BUDGET), fixed_tokens=counter.count(tools), cache=cache)
    assert not problems(fitted.messages)
    body = encode(prompt_of(state, fitted.messages, tools))
    return Ready(body, sha256(body).hexdigest(), fitted.tokens, len(fitted.messages))


def schemas() -> str:
    """Return the tools that a session offers."""
    specs = [load(place).spec for place in TOOLS.values()]
    return json.dumps([{"name": s.name, "description": s.description, "parameters": s.parameters} for s in specs])


class Talk:
    """A session that works. The provider reports what was estimated."""

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()
        self.texts = BlobTexts(self.blobs)
        self.state = SessionState()
        self.cache = RenderCache()
        self.tokens = 0
        self._made = Session(SESSION)
        for draft in self._made.birth():
            more = {"tools": schemas()} if draft.type == "environment_changed" else {}
            self._add(draft._replace(payload={**draft.payload, **more}))

    def turn(self) -> None:
        """Work on one message."""
        for draft in self._made.turn():
            payload = dict(draft.payload)
            if draft.type == "context_built":
                now = ready(self.state, self.texts, self.cache)
                self.tokens = now.tokens
                payload |= {"request_sha256": now.sha256, "bytes": len(now.body), "estimator": "~pieces"}
                payload |= {"tokens": now.tokens, "budget": BUDGET, "cut": None, "rules": 1}
            elif draft.type == "agent_message":
                usage = {"prompt": self.tokens, "cached": 0, "completion": len(payload["text"]) // 4, "reasoning": 0}
                payload |= {"usage": usage}
            cause = self.state.last_seq if draft.type == "agent_message" else draft.cause
            self._add(draft._replace(payload=payload, cause=cause))

    def _add(self, draft: Draft) -> None:
        line = encode_event(spill(draft, self.blobs), seq=self.state.last_seq + 1, dur=0, salt=1)
        apply(self.state, decode(decode_event(line, 1)))


def collected(job: Callable[[], object]) -> Callable[[], object]:
    """Return a job that no collection of garbage interrupts, as `agentsh resume` runs it."""

    def run() -> object:
        gc.disable()
        try:
            return job()
        finally:
            gc.enable()

    return run


def main(rounds: int) -> None:
    """Print the table."""
    talk = Talk()
    while talk.tokens < BUDGET * FULL:
        talk.turn()
    with tempfile.TemporaryDirectory() as place:
        state = encode_state(talk.state)
        anchor = Anchor(talk.state.last_seq, 0, 0, "00000000")
        write_checkpoint(FILES, place, Checkpoint(anchor, SESSION, reducer(), state))

        def opened() -> Ready:
            found = read_checkpoint(FILES, place, anchor.seq)
            assert found is not None
            return ready(decode_state(found.state), talk.texts)

        def step() -> Ready:
            return ready(talk.state, talk.texts, talk.cache)

        now = opened()
        assert now == step(), "from a checkpoint it is the same"

        def rival() -> object:
            return json.loads(now.body)

        rows = [
            (what, *pair(collected(job), rival, rounds)) for what, job in (("checkpoint", opened), ("step", step))
        ]
    print(
        f"A context of {now.tokens:,} tokens of {BUDGET:,}: {plural(now.messages, 'message')}, "
        f"{len(now.body):,} bytes; {plural(talk.state.last_seq, 'event')}, a state of {len(state):,} bytes."
    )
    print("\n| ready to be sent from | ms | `json.loads` of the body, ms | ratio |\n|---|--:|--:|--:|")
    for what, ours, theirs, ratio in rows:
        print(f"| {what} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
