"""A script for a real terminal: the loop on an engine on memory. Run as `python -m tests.repl.talk`."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, TextIO, cast

from agentsh.app.texts import BlobTexts
from agentsh.base.clock import SystemClock
from agentsh.context.state import SessionState
from agentsh.engine.aside import Asides
from agentsh.engine.bus import Bus
from agentsh.engine.compactor import Compactor
from agentsh.engine.gate import Gate
from agentsh.engine.journal import Journal
from agentsh.engine.open import begin
from agentsh.engine.session import Chosen, Parts, Session
from agentsh.engine.step import ModelStep, Price, StepSettings
from agentsh.engine.tool_runner import ToolRunner
from agentsh.engine.turn import Limits, Turn
from agentsh.engine.user_command import UserCommands
from agentsh.events.codec import decode
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged, SessionInit, WorkspaceOrigin
from agentsh.events.signals import ReasoningDelta, TextDelta
from agentsh.ports.model import Prompt, Reply, Streamed
from agentsh.ports.tokens import ByteEstimate
from agentsh.ports.tool import Tool, ToolContext, ToolOutcome, ToolSpec
from agentsh.ports.workspace import Workspace
from agentsh.render import markdown
from agentsh.render.screen import ScreenRenderer
from agentsh.repl.ask import TerminalApprover
from agentsh.repl.looks import ThemeName, looks_of
from agentsh.repl.loop import run_repl
from agentsh.repl.outputs import Outputs
from agentsh.repl.plain_stage import PlainStage
from agentsh.repl.stage import Stage
from agentsh.repl.terminal import ReplIO
from agentsh.testing import FunctionTool, MemoryStore, ScriptedModel
from agentsh.workspace.local import LocalWorkspace
from tests.engine.rig import ID, NoWorkspace

LONG = "\n\n".join(f"Marker {n:03} of a **streamed** answer, with `code` and some more words." for n in range(60))

THOUGHTS = [f"thought-{n:03}" + ("\n" if n % 6 == 5 else " ") for n in range(420)]


class EchoModel(ScriptedModel):
    """Answers by the last message: `long`, `sleep`, `touch`, `chatter`, `count`; anything else is echoed."""

    def __init__(self) -> None:
        super().__init__([])

    def encode(self, prompt: Prompt) -> bytes:
        last = prompt.messages[-1]
        return (last.text if last.role == "user" else "\0").encode("utf-8", "replace")

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        said = body.decode()
        await asyncio.sleep(0.05)
        if said in ("sleep", "touch", "chatter"):
            from agentsh.ports.model import Call

            yield Reply("", None, (Call("call_1", said, '{"path": "x"}'),), "tool_calls", None, "echo")
            return
        for word in THOUGHTS if said == "think" else ():
            yield ReasoningDelta(word)
            await asyncio.sleep(0.001)
        if said == "essay":
            async for item in essay():
                yield item
            return
        reasoning = "".join(THOUGHTS) if said == "think" else None
        text = {"long": LONG, "\0": "The tool is done.", "count": ""}.get(said)
        if text is None:
            lines = said.count("\n") + 1
            text = f"You said {lines} lines." if lines > 1 else f"You said: {said}"
        for n in range(0, len(text), 13):
            yield TextDelta(text[n : n + 13])
            await asyncio.sleep(0.002)
        yield Reply(text, reasoning, (), "stop", None, "echo")


async def essay() -> AsyncGenerator[Streamed, None]:
    """A long answer at a steady pace: TALK_TOKENS words, TALK_RATE a second, as a model would write them."""
    count, rate = int(os.environ["TALK_TOKENS"]), float(os.environ["TALK_RATE"])
    ends = {11: "and so on. ", 59: "and so on.\n\n"}
    words = [f"w{n:05} " + ends.get(n % 60, "") for n in range(count)]
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for n, word in enumerate(words):
        await asyncio.sleep(max(began_s + n / rate - loop.time(), 0))
        yield TextDelta(word)
    yield Reply("".join(words), None, (), "stop", None, "echo")


def tools() -> dict[str, Tool]:
    async def sleep(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        for n in range(600):
            context.progress(f"tick {n}\n")
            await asyncio.sleep(0.1)
        return ToolOutcome("slept", "sleep")

    async def touch(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("touched", "touch x\n\x1b]52;c;aGk=\x07detail")

    def tool(name: str, effects: set[Any], function: Any) -> Tool:
        return FunctionTool(ToolSpec(name, name, {"type": "object"}, frozenset(effects), "path"), function)

    async def chatter(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("chattered", "chatter x\n" + "".join(f"row-{n:03}\n" for n in range(200)))

    return {
        "chatter": tool("chatter", {"read"}, chatter),
        "sleep": tool("sleep", {"read"}, sleep),
        "touch": tool("touch", {"write"}, touch),
    }


async def main() -> int:
    store = MemoryStore()
    log = await store.create(ID, by="test")
    clock, bus, state, texts = SystemClock(), Bus(), SessionState(), BlobTexts(store.blobs)
    colour = "NO_COLOR" not in os.environ
    stage = Stage(sys.stdout)
    plain = PlainStage(sys.stdout) if os.environ.get("TALK_PLAIN") else None
    colour = colour and plain is None
    region = plain or stage
    looks = looks_of(cast(ThemeName, os.environ.get("TALK_THEME", "auto")), os.environ, possible=colour)
    screen = ScreenRenderer(
        cast(TextIO, region),
        colour=looks.colour,
        live=plain is None,
        texts=texts,
        region=region,
        palette=looks.palette,
    )
    outputs = Outputs(texts.text)
    bus.subscribe(screen)
    bus.subscribe(outputs)
    history = os.environ.get("TALK_HISTORY")
    io = ReplIO(
        screen,
        Path(history) if history else None,
        ("echo", "other"),
        stage=stage,
        behind=markdown.preload,
        text=texts.text,
        plain=plain,
        looks=looks,
        menus=plain is None,
        outputs=outputs,
        vi=bool(os.environ.get("TALK_VI")),
    )
    if place := os.environ.get("TALK_WORKSPACE"):
        io.workspace = LocalWorkspace(Path(place), session=ID)
    journal = Journal(log, state, bus, clock)
    workspace, model = cast(Workspace, NoWorkspace()), EchoModel()
    gate = Gate(journal, workspace, (), TerminalApprover(io), preapproved=lambda state: False)
    runner = ToolRunner(journal, tools(), workspace, gate, (), texts, clock)
    settings = StepSettings(100_000, Price(1, 1, 1))
    step = ModelStep(journal, model, texts, ByteEstimate(), settings, clock)

    def choose(name: str) -> Chosen:
        return Chosen(name, {}, model, settings)

    compactor = Compactor(journal, step, texts, ByteEstimate())
    turn = Turn(journal, step, compactor, runner, Limits(), clock)
    own, asides = (
        UserCommands(journal, io.workspace or workspace, clock),
        Asides(journal, step, texts, ByteEstimate()),
    )
    parts = Parts(log, journal, turn, step, compactor, gate, model, choose, commands=own, asides=asides)
    session = Session(parts)
    origin = WorkspaceOrigin(kind="empty", origin=None, base=None)
    init = SessionInit(id=ID, title=None, cwd="/x", project="x", model="echo", mode="ask", workspace=origin)
    await begin(journal, init, EnvironmentChanged(system_prompt="You are a test.", tools="[]", instructions=()))
    pausing()
    code = await run_repl(session, io)
    write_replay([decode(record) for record in store.read(ID)], texts)
    return code


def pausing() -> None:
    """Stop between two things at SIGUSR1, say so by a file, and go on at SIGUSR2."""

    def pause() -> None:
        Path(os.environ["TALK_PAUSED"]).touch()
        signal.sigwait({signal.SIGUSR2})

    if "TALK_PAUSED" in os.environ:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, pause)


def write_replay(events: list[Event], texts: BlobTexts) -> None:
    """Write what the record alone shows at this width, where a test wants to compare."""
    if replay := os.environ.get("TALK_REPLAY"):
        with open(replay, "w", encoding="utf-8") as file:
            again = ScreenRenderer(file, width=os.get_terminal_size().columns, colour=False, live=False, texts=texts)
            for event in events:
                again.on(event)
            again.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
