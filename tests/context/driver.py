"""A random session, as the engine would write it: real decisions, real bytes, crashes and resumes in between."""

import json
import random
from hashlib import sha256
from typing import Any

from agentsh.app.texts import BlobTexts
from agentsh.base.errors import ContextOverflow
from agentsh.context.budget import Prepared, Scale, count_message, fit
from agentsh.context.fold import apply
from agentsh.context.marks import Marks
from agentsh.context.planning import plan, weighed_with
from agentsh.context.rendered import RenderCache
from agentsh.context.repairs import repairs
from agentsh.context.request import prompt_of, summary_prompt, tools_of
from agentsh.context.state import SessionState
from agentsh.context.summarising import ask_that_fits, mechanical
from agentsh.context.surroundings import Surroundings, capped, changes, entries
from agentsh.context.view import RULES
from agentsh.events.base import NO_USAGE, Fact
from agentsh.events.codec import decode, encode
from agentsh.events.compaction import Compaction, CompactionUndone, SummaryAsk
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged, ModelChanged, Note, Opened, SessionInit, WorkspaceOrigin
from agentsh.events.tool import PartialOutput, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import (
    AgentMessage,
    Attachment,
    ContextBuilt,
    ImageDropped,
    PartialMessage,
    TurnEnd,
    TurnFinished,
    UserMessage,
)
from agentsh.log.frame import decode_event, encode_event
from agentsh.log.spill import spill
from agentsh.models.chat_body import encode as encode_body
from agentsh.ports.tokens import ByteEstimate
from agentsh.stores.memory import MemoryBlobs
from agentsh.testing import server_rules as rules

TS = "2026-11-29T16:20:00.000000Z"
TOOLS = '[{"name":"look","description":"look","parameters":{"type":"object","properties":{}}}]'
MORE_TOOLS = TOOLS[:-1] + ',{"name":"new","description":"n","parameters":{"type":"object","properties":{}}}]'
BUDGETS = (4_000, 12_000, 30_000, 128_000)
SIZES = (0, 1, 30, 400, 3_000, 12_000, 45_000)
MILD_SIZES = (30, 400)
MILD_OUTPUTS = (3_000, 3_000, 6_000)
PIECES = ("word ", "línea\n", "漢字", "\ud800", "\u2028", "\x00", "<|endoftext|>", '{"a":1}', "😀")
ARGUMENTS = ("{}", '{"path":"a"}', '{"a":', "[1]", '{"a":NaN}', "", "\ud800", '{"content":"' + "x" * 40_000 + '"}')
MILD_ARGUMENTS = ("{}",)
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
IMAGES = [
    Attachment(name=name, media_type=kind, content=content, width=600, height=400)
    for name, kind, content in (
        ("dot.png", "image/png", DOT), ("dot.png", "image/png", DOT), ("odd\x1b\nname.png", "image/png", DOT),
        ("dot.jpg", "image/jpeg", DOT), ("page.png", "image/png", "<html>"), ("odd.tiff", "image/tiff", DOT + "A"),
    )
]  # fmt: skip
"""Three that may be sent, and three that must not."""
IMAGE_TOKENS = 425
"""Of 600 × 400 pixels by the tiles of gpt-4o: two of them."""
IDS = ("call_1", "call_1", "", "odd id!", "x" * 300)


def count_body(body: dict[str, Any]) -> int:
    """The tokens of a chat body by three bytes each, from its own members: shares nothing with the builder."""

    def third(text: str) -> int:
        return (len(text.encode()) + 2) // 3

    total = 0
    for message in body["messages"]:
        if isinstance(content := message["content"], list):
            total += 4 + third(content[0]["text"]) + sum(IMAGE_TOKENS for part in content if part["type"] != "text")
            continue
        total += 4 + third(content or "")
        for call in message.get("tool_calls", ()):
            total += third(call["function"]["name"]) + third(call["function"]["arguments"])
    return total


class Driver:
    """Writes one session. bodies: what was sent, by the seq of its context_built. overflows: refused requests.

    mild: with texts and arguments of a usual size, and many steps.
    """

    def __init__(self, seed: int, *, budget: int | None = None, mild: bool = False) -> None:
        self.random = random.Random(seed)
        self.blobs = MemoryBlobs()
        self.texts = BlobTexts(self.blobs)
        self.state = SessionState()
        self.events: list[Event] = []
        self.bodies: dict[int, bytes] = {}
        self.kinds: dict[int, str] = {}
        self.overflows = self.compactions = 0
        self.mild = mild
        self.sizes: tuple[int, ...] = MILD_SIZES if mild else SIZES
        self.outputs: tuple[int, ...] = MILD_OUTPUTS if mild else SIZES
        self.arguments: tuple[str, ...] = MILD_ARGUMENTS if mild else ARGUMENTS
        self.budget = budget or self.random.choice(BUDGETS)
        self.counter, self.cache = ByteEstimate(), RenderCache()
        self.day, self.tools, self.files = 1, TOOLS, {"AGENTS.md": "Be kind."}
        origin = WorkspaceOrigin(kind="empty", origin=None, base=None)
        self.add(
            SessionInit(
                id="x", title=None, cwd="/x", project=None, model="m", mode="yolo", workspace=origin
            )
        )  # fmt: skip
        now = self.now()
        self.add(
            EnvironmentChanged(
                system_prompt="You are a test in /x.", tools=now.tools, date=now.date, directory=now.directory,
                instructions=entries(now.instructions, texts=True),
                request={"wire": "chat", "options": {}, **({"images": True} if seed % 3 else {})},
            )
        )  # fmt: skip

    def now(self) -> Surroundings:
        return Surroundings(f"2026-12-{self.day:02}", "/x", self.tools, capped(list(self.files.items())))

    def add(self, fact: Fact, cause: int | None = None) -> Event:
        draft = spill(encode(fact, ts=TS, cause=cause), self.blobs)
        event = decode(decode_event(encode_event(draft, seq=len(self.events) + 1, dur=0, salt=1), 1))
        self.events.append(event)
        apply(self.state, event)
        return event

    def text(self, sizes: tuple[int, ...] | None = None) -> str:
        size = self.random.choice(sizes or self.sizes)
        piece = self.random.choice(PIECES)
        return (piece * (size // len(piece) + 1))[:size]

    def images(self) -> tuple[Attachment, ...]:
        count = self.random.choice((1, 1, 2, 1 if self.mild else 14))
        return tuple(self.random.choices(IMAGES, k=count))

    def write(self, turns: int) -> "Driver":
        """Write so many turns."""
        for _ in range(turns):
            self.between()
            self.turn()
        return self

    def between(self) -> None:
        """What may happen between two turns: a crash and a resume, another day, another model, other instructions."""
        dice = self.random.random()
        if self.state.turn is not None or dice < 0.15:
            self.resume()
        elif dice < 0.25:
            self.day += 1
        elif dice < 0.3:
            self.files[self.random.choice(("AGENTS.md", "web/AGENTS.md"))] = self.text() or "x"
        elif dice < 0.33:
            self.tools = MORE_TOOLS
        elif dice < 0.4:
            more = self.random.choice(({}, {"images": True}, {"images": True, "merge_user_messages": True}))
            request = {"wire": "chat", "options": {"top_p": 1}, **more}
            self.add(ModelChanged(model=self.random.choice("mn"), request=request))
        elif dice < 0.43:
            self.add(Note(text="a note"))
        elif dice < 0.45:
            self.add(ImageDropped(image="dot.png", reason="x", from_seq=max(self.state.last_seq - 20, 0)))
        elif dice < 0.65:
            self.compact()
        elif dice < 0.72 and self.state.compaction is not None:
            self.add(CompactionUndone(compaction=self.state.compaction.seq))

    def compact(self) -> None:
        """Ask for a summary, and compact with an account from the log, where it is worth it."""
        tools = tools_of(self.state, self.texts)
        fixed = self.counter.count(tools)
        scale = Scale(self.state, self.texts, self.counter, fixed_tokens=fixed, cache=self.cache)
        planned = plan(scale, Marks(self.budget))
        if planned is None:
            return
        ask = ask_that_fits(
            self.state, self.texts, lambda ms: fixed + sum(count_message(m, self.counter) for m in ms),
            SummaryAsk(attempt=1, max_words=100), self.budget - planned.summary_tokens,
        )  # fmt: skip
        if ask is not None:
            prompt = summary_prompt(self.state, self.texts, ask)
            body = encode_body(prompt)
            tokens = fixed + sum(count_message(m, self.counter) for m in prompt.messages)
            assert rules.problems(json.loads(body)) == []
            assert count_body(json.loads(body)) + fixed <= self.budget
            self.add(
                ContextBuilt(
                    request_sha256=sha256(body).hexdigest(), bytes=len(body), estimator=self.counter.name,
                    tokens=tokens, budget=self.budget, cut=None, rules=RULES, summary=ask,
                ),
                self.state.last_seq,
            )  # fmt: skip
        if self.random.random() < 0.2:
            return  # it died here
        text = mechanical(self.state, self.texts, planned.upto_seq, max_bytes=planned.summary_tokens * 3)
        if weighed_with(scale, planned.from_seq, planned.upto_seq, text) <= planned.allowed_tokens:
            members = {"from_seq": planned.from_seq, "upto_seq": planned.upto_seq, "summary": text, "by": "auto"}
            self.add(Compaction.model_validate(members))
            self.compactions += 1

    def resume(self) -> None:
        """Another process, perhaps with another budget; it begins with an empty cache."""
        self.add(Opened(epoch=self.state.epoch + 1, version="t", host="h"))
        for repair in repairs(self.state):
            self.add(repair.fact, repair.cause)
        self.cache = RenderCache()
        if self.random.random() < 0.3 and not self.mild:
            self.budget = self.random.choice(BUDGETS)

    def look(self) -> None:
        now, known = self.now(), self.state.surroundings
        told = changes(self.state, self.texts, now)
        if told and known is not None:
            self.add(
                EnvironmentChanged(
                    system_prompt=known.system_prompt, tools=now.tools, date=now.date, directory=now.directory,
                    instructions=entries(now.instructions, texts=False), changes=told,
                )
            )  # fmt: skip

    def turn(self) -> None:
        self.look()
        attachments: tuple[Attachment, ...] = ()
        if self.random.random() < 0.1:
            attachments = (Attachment(name="a.txt", media_type="text/plain", content=self.text()),)
        if self.random.random() < 0.08:
            attachments += self.images()
        user = self.add(UserMessage(text=self.text(), attachments=attachments))
        reason: TurnEnd = "done"
        for _ in range(self.random.randint(1, 6)):
            try:
                self.request()
            except ContextOverflow:
                self.overflows += 1
                reason = "error"
                break
            if not self.reply():
                if self.state.open_calls or self.random.random() < 0.3:
                    return  # it died here
                break
            if self.random.random() < 0.1:
                self.add(UserMessage(text="and also this", attachments=()))
        self.add(
            TurnFinished(reason=reason, steps=1, usage=NO_USAGE, cost_usd=None, duration_ms=0), user.seq
        )  # fmt: skip

    def fitted(self) -> Prepared:
        return fit(
            self.state, self.texts, self.counter, marks=Marks(self.budget),
            fixed_tokens=self.counter.count(tools_of(self.state, self.texts)), cache=self.cache,
        )  # fmt: skip

    def body(self, fitted: Prepared) -> bytes:
        return encode_body(prompt_of(self.state, fitted.messages, tools_of(self.state, self.texts)))

    def request(self) -> None:
        fitted = self.fitted()
        body = self.body(fitted)
        event = self.add(
            ContextBuilt(
                request_sha256=sha256(body).hexdigest(), bytes=len(body), estimator=self.counter.name,
                tokens=fitted.tokens, budget=self.budget, cut=fitted.cut, rules=fitted.view.rules,
            ),
            self.state.last_seq,
        )  # fmt: skip
        self.bodies[event.seq] = body
        self.kinds[event.seq] = fitted.kind

    def reply(self) -> bool:
        """Write a reply and the results of its calls; return whether another step follows."""
        if self.random.random() < 0.1:
            self.add(PartialMessage(text="half"))
            if self.random.random() < 0.5:
                return False
        calls = self.random.choice((0, 1, 1, 1, 2, 4))
        said = AgentMessage(
            text=self.text() if self.random.random() < 0.5 else "", reasoning=None, model="m",
            finish="tool_calls" if calls else "stop", usage=None, cost_usd=None,
        )  # fmt: skip
        agent = self.add(said, self.state.last_seq)
        asked = [
            self.add(
                ToolCall(
                    call=self.random.choice(IDS), name=self.random.choice(("look", "a.b", "")),
                    arguments=self.random.choice(self.arguments),
                ),
                agent.seq,
            )
            for _ in range(calls)
        ]  # fmt: skip
        for call in asked:
            if self.random.random() < 0.03:
                return False
            started = self.add(
                ToolStarted(call="c", effects=("read",), sandbox="none", pid=None, decision="yolo"), call.seq
            )
            if self.random.random() < 0.1:
                self.add(PartialOutput(call="c", text="some"), started.seq)
            if self.random.random() < 0.03:
                return False
            result = ToolResult(call="c", status="ok", for_model=self.text(self.outputs), for_user="x", duration_ms=0)
            if self.random.random() < 0.04:
                result = result.model_copy(update={"images": self.images()})
            self.add(result, started.seq)
            if self.random.random() < 0.02:
                self.add(result)  # of a call that the log has lost
        return calls > 0
