"""Stories made of events, ways to play them, and a terminal that holds all its lines."""

import io
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pyte

from agentsh.events import session, tool, turn
from agentsh.events.base import Fact, Usage
from agentsh.events.event import Event, Opaque
from agentsh.events.signals import ReasoningDelta, ReasoningEnded, Signal, TextDelta
from agentsh.ports.texts import InlineTexts
from agentsh.render.screen import ScreenRenderer

USAGE = Usage(prompt=4936, cached=4608, completion=123, reasoning=0)
TS = "2026-11-29T16:20:01.123456Z"

MARKDOWN = """# A title with `code`

Some *text* with **bold**, ~~gone~~, a [link](https://example.org/page) and <b>html</b>.
A second line, 修复失败的测试, e\u0301a\u0301 and שלום עולם.

Steps:
1. First, in a sentence that is long enough to be wrapped at eighty columns too, for sure.
2. Second with `code`
   - nested

   ```python
   def f(x):
       return x + 1
   ```
3. Third

| name | n | 列 |
|------|--:|:-:|
| a longer cell with several words in it | 22222 | 修复 |
| b | 1 | x |

```python
def total(items):
    \"\"\"The sum.\"\"\"
    return sum(item.price for item in items)  # a comment that makes this line too long for eighty columns
```
> quoted text
> in two lines

---
The end: see [ref] and https://example.org.

[ref]: https://example.org/ref
"""


class Clock:
    """Seconds that tests move."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Story:
    """Makes events with a running seq."""

    def __init__(self) -> None:
        self.seq = 0

    def event(self, fact: Fact | Opaque, cause: int | None = None) -> Event:
        self.seq += 1
        return Event(self.seq, TS, cause, fact, b"{}\n")  # type: ignore[arg-type]

    def init(self) -> Event:
        place = session.WorkspaceOrigin(kind="git", origin="/home/ana/shop", base="4f2c9d1aa")
        return self.event(
            session.SessionInit(
                id="20261129-k3v9qd", title=None, cwd="/home/ana/shop", project="shop", model="gpt-5", mode="auto",
                workspace=place,
            )
        )  # fmt: skip

    def user(self, text: str) -> Event:
        return self.event(turn.UserMessage(text=text, attachments=()))

    def agent(
        self,
        text: str,
        finish: turn.Finish = "stop",
        reasoning: str | None = None,
        thought: turn.Thought | None = None,
    ) -> Event:
        return self.event(
            turn.AgentMessage(
                text=text, reasoning=reasoning, model="gpt-5", finish=finish, usage=USAGE, cost_usd=0.0006,
                thought=thought,
            )
        )  # fmt: skip

    def call(self, name: str, arguments: str, status: Any, for_user: str, **more: Any) -> list[Event]:
        diff = more.pop("diff", None)
        asked = self.event(tool.ToolCall(call="c", name=name, arguments=arguments))
        started = self.event(
            tool.ToolStarted(call="c", effects=("exec",), sandbox="bwrap", pid=1, decision="auto"), asked.seq
        )
        events = [asked, started]
        if diff is not None:
            edit = tool.CodeEdit(call="c", path="cart.py", diff=diff, before="a", after="b", snapshot=None)
            events.append(self.event(edit, started.seq))
        result = tool.ToolResult(
            call="c", status=status, for_model="x", for_user=for_user, **{"duration_ms": 1834, **more}
        )
        return [*events, self.event(result, started.seq)]

    def finished(self, reason: turn.TurnEnd = "done", error: str | None = None) -> Event:
        return self.event(
            turn.TurnFinished(
                reason=reason, steps=3, usage=USAGE, cost_usd=0.00192, duration_ms=7006, error=error
            )
        )  # fmt: skip


def whole_story() -> list[Event]:
    """One of everything."""
    s = Story()
    events = [
        s.init(),
        s.user("修复失败的测试\nand a second line, long enough to be wrapped in a terminal of eighty, yes"),
    ]
    events.append(
        s.agent(
            "I will run the tests first.",
            "tool_calls",
            "The user wants the tests fixed. " * 12,
            turn.Thought(ms=3210, words=72),
        )
    )
    output = "pytest -q · exit 1\n" + "\n".join(f"line {n} of the output" for n in range(40))
    events += s.call("shell", '{"command": "pytest -q"}', "ok", output, exit=1)
    diff = "@@ -7,2 +7,2 @@\n def total():\n-    return 40\n+    return 42\n"
    events += s.call("edit", '{"path": "cart.py"}', "ok", "edit cart.py +1 -1", diff=diff, duration_ms=5)
    long = "@@ -1 +1,60 @@\n" + "".join(f"+line {n}\n" for n in range(60))
    events += s.call("write", '{"path": "long.py"}', "ok", "write long.py +60", diff=long, duration_ms=5)
    asked = s.event(tool.ToolCall(call="d", name="shell", arguments='{"command": "rm -rf build && make all"}'))
    question = s.event(tool.ApprovalAsked(call="d", subject="rm", effects=("exec",)), asked.seq)
    answer = s.event(tool.ApprovalAnswered(call="d", answer="no", reason="not now"), question.seq)
    denied = tool.ToolResult(call="d", status="denied", for_model="x", for_user="denied: not now", duration_ms=0)
    events += [asked, question, answer, s.event(denied, asked.seq)]
    events += s.call("shell", '{"command": "sleep 100"}', "timed_out", "sleep 100 · timed out", duration_ms=100_000)
    events += s.call("shell", '{"command": "make"}', "unknown", "it may have run", duration_ms=0)
    events += s.call("shell", "not json", "error", "bad arguments: not JSON", duration_ms=0)
    events += [s.agent(MARKDOWN), s.finished(), s.user("again"), s.agent("Half of an ans", "cut")]
    events += [
        s.finished("error", "the model's answer ended early (try again)"),
        s.user("x"),
        s.finished("interrupted"),
    ]
    events += [s.event(session.Opened(epoch=2, version="0.1.0", host="h"))]
    events += [s.event(session.Recovered(cut_bytes=132, quarantined=(), damages=(), calls=1, turn=True))]
    events += [s.event(session.ModelChanged(model="gpt-6")), s.event(session.ModeChanged(mode="ask"))]
    events += [
        s.event(session.Renamed(title="A title", by="user")),
        s.event(session.Renamed(title="no", by="prompt")),
    ]
    cut = turn.Cut(from_seq=9, reason="budget")
    built: dict[str, Any] = {"request_sha256": "a", "bytes": 1, "estimator": "e", "tokens": 1, "budget": 9}
    events += [s.event(turn.ContextBuilt(**built, cut=None)), s.event(turn.ContextBuilt(**built, cut=cut))]
    events += [s.event(Opaque("brand_new", {"a": 1})), s.event(Opaque("renamed", {}, "title: Field required"))]
    return [*events, s.finished("max_steps"), s.finished("max_cost"), s.finished("crashed")]


def renderer(out: Any, width: int, *, colour: bool = False, live: bool = False, clock: Any = None) -> ScreenRenderer:
    more = {"now_s": clock} if clock else {}
    return ScreenRenderer(out, width=width, colour=colour, live=live, texts=InlineTexts(), **more)


def replayed(events: Iterable[Event], width: int, *, colour: bool = False) -> str:
    """What the facts alone write."""
    out = io.StringIO()
    screen = renderer(out, width, colour=colour)
    for event in events:
        screen.on(event)
    screen.close()
    return out.getvalue()


def chunks(text: str, rng: random.Random, most: int = 12) -> Iterator[str]:
    """The text in pieces of random sizes."""
    start = 0
    while start < len(text):
        size = rng.randint(1, most)
        yield text[start : start + size]
        start += size


def signals_for(event: Event, rng: random.Random) -> Iterator[Signal]:
    """The previews that a live run would have sent before this fact."""
    if isinstance(event.fact, turn.AgentMessage):
        for piece in chunks(str(event.fact.reasoning or ""), rng):
            yield ReasoningDelta(piece)
        if event.fact.thought is not None:
            yield ReasoningEnded(event.fact.thought.ms, event.fact.thought.words)
        for piece in chunks(str(event.fact.text), rng):
            yield TextDelta(piece)


def live_run(events: Iterable[Event], width: int, rng: random.Random, *, colour: bool = False) -> tuple[str, Clock]:
    """What a live run writes, previews and all."""
    out, clock = io.StringIO(), Clock()
    screen = renderer(out, width, colour=colour, live=True, clock=clock)
    for event in events:
        for signal in signals_for(event, rng):
            clock.now_s += rng.choice((0.001, 0.02, 0.3))
            screen.signal(signal)
            screen.tick()
        clock.now_s += 0.05
        screen.on(event)
    screen.close()
    return out.getvalue(), clock


def terminal_lines(written: str, width: int, height: int = 24) -> list[str]:
    """All lines that a terminal holds after this was written, scrollback included."""
    terminal = pyte.HistoryScreen(width, height, history=100_000, ratio=0.5)
    stream = pyte.Stream(terminal)
    stream.feed(written.replace("\n", "\r\n"))  # what the terminal driver does
    past = ["".join(row[x].data for x in range(width)).rstrip() for row in terminal.history.top]
    lines = [*past, *(line.rstrip() for line in terminal.display)]
    while lines and not lines[-1]:
        lines.pop()
    return lines
