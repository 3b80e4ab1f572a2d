"""A whole engine on memory: store, scripted model, fake clock, tools of two lines."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from agentsh.base.errors import StreamCut
from agentsh.context.state import SessionState
from agentsh.context.state_codec import reducer
from agentsh.engine.aside import Asides
from agentsh.engine.bus import Bus
from agentsh.engine.compactor import Compactor
from agentsh.engine.gate import Gate
from agentsh.engine.journal import Journal
from agentsh.engine.open import Writer, begin, refold, reopen
from agentsh.engine.session import Chosen, Parts, Session
from agentsh.engine.step import ModelStep, Price, StepSettings
from agentsh.engine.tool_runner import ToolRunner
from agentsh.engine.turn import Limits, Turn
from agentsh.engine.upkeep import CheckpointPolicy, Upkeep
from agentsh.engine.user_command import UserCommands
from agentsh.engine.whole import LoggedSession
from agentsh.events.base import Fact
from agentsh.events.session import EnvironmentChanged, Mode, SessionInit, WorkspaceOrigin
from agentsh.events.signals import TextDelta
from agentsh.log.store import Opened, OpenLog
from agentsh.models.scripted import Move
from agentsh.ports.approver import Approver
from agentsh.ports.hook import Hook
from agentsh.ports.model import Model, Prompt, Streamed
from agentsh.ports.texts import InlineTexts
from agentsh.ports.tokens import ByteEstimate
from agentsh.ports.tool import Tool, ToolContext, ToolOutcome, ToolSpec
from agentsh.ports.workspace import Workspace
from agentsh.testing import FailingLog, FakeClock, FunctionTool, KeepingRenderer, MemoryStore, ScriptedModel

F = TypeVar("F", bound=Fact)
ID = "20261129-k3v9qd"


class NoWorkspace:
    """Only what the engine itself looks at."""

    sandbox = "none"
    root = "/nowhere"

    def relative(self, path: str) -> str:
        return path

    def real(self, path: str) -> str | None:
        return path

    def expands(self, pattern: str) -> list[str]:
        return []

    def starts_in(self, directory: str | None) -> str:
        return "."


@dataclass
class Counter:
    """Counts runs of the tool with effects."""

    runs: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)

    def tools(self) -> dict[str, Tool]:
        async def look(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
            return ToolOutcome(f"saw {arguments.get('path')}", "look")

        async def change(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
            self.runs.append(str(arguments.get("path")))
            return ToolOutcome("changed", "change")

        async def hang(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
            context.progress("half of the output")
            self.runs.append("hang")
            self.started.set()
            await asyncio.sleep(3600)
            raise AssertionError

        async def broken(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
            raise KeyError("a bug in the tool")

        def tool(name: str, effects: set[Any], function: Any) -> Tool:
            spec = ToolSpec(name, f"{name} it", {"type": "object"}, frozenset(effects), "path")
            return FunctionTool(spec, function)

        return {
            "look": tool("look", {"read"}, look),
            "change": tool("change", {"write"}, change),
            "hang": tool("hang", {"exec"}, hang),
            "broken": tool("broken", {"read"}, broken),
        }


@dataclass
class Rig:
    session: Session
    journal: Journal
    log: FailingLog
    store: MemoryStore
    model: ScriptedModel
    screen: KeepingRenderer
    counter: Counter
    clock: FakeClock
    step: ModelStep

    def facts(self, kind: type[F]) -> list[F]:
        """The facts of one class that were shown, in order."""
        return [e.fact for e in self.screen.events if isinstance(e.fact, kind)]


def assemble(
    log: OpenLog,
    state: SessionState,
    model: Model,
    screen: KeepingRenderer,
    counter: Counter,
    clock: FakeClock,
    *,
    approver: Approver | None = None,
    hooks: Sequence[Hook] = (),
    limits: Limits | None = None,
    budget_tokens: int = 100_000,
    policy: CheckpointPolicy | None = None,
    compacts: bool = True,
    store: MemoryStore | None = None,
    place: Workspace | None = None,
) -> tuple[Session, Journal, ModelStep]:
    bus = Bus()
    bus.subscribe(screen)
    journal = Journal(log, state, bus, clock)
    workspace = place or cast(Workspace, NoWorkspace())
    gate = Gate(journal, workspace, hooks, approver, preapproved=lambda state: False)
    runner = ToolRunner(journal, counter.tools(), workspace, gate, hooks, InlineTexts(), clock)
    settings = StepSettings(budget_tokens, Price(1.0, 0.1, 10.0), compacts=compacts)
    step = ModelStep(journal, model, InlineTexts(), ByteEstimate(), settings, clock)
    compactor = Compactor(journal, step, InlineTexts(), ByteEstimate())
    turn = Turn(journal, step, compactor, runner, limits or Limits(), clock)

    def choose(name: str) -> Chosen:
        return Chosen(name, {}, model, settings)

    upkeep = Upkeep(journal, log, policy or CheckpointPolicy(), clock)
    whole = None if store is None else LoggedSession(store, ID)
    own, asides = UserCommands(journal, workspace, clock), Asides(journal, step, InlineTexts(), ByteEstimate())
    parts = Parts(
        log, journal, turn, step, compactor, gate, model, choose, upkeep, whole=whole, commands=own, asides=asides
    )
    return Session(parts), journal, step


async def new(
    moves: Sequence[Move],
    *,
    mode: Mode = "yolo",
    store: MemoryStore | None = None,
    model: Model | None = None,
    **more: Any,
) -> Rig:
    store = store or MemoryStore()
    clock, screen, counter, script = FakeClock(hold=True), KeepingRenderer(), Counter(), ScriptedModel(moves)
    log = FailingLog(await store.create(ID, by="agentsh test"))
    session, journal, step = assemble(
        log, SessionState(), model or script, screen, counter, clock, store=store, **more
    )
    init = SessionInit(
        id=ID,
        title=None,
        cwd="/x",
        project="x",
        model="scripted",
        mode=mode,
        workspace=WorkspaceOrigin(kind="empty", origin=None, base=None),
    )
    environment = EnvironmentChanged(system_prompt="You are a test.", tools="[]", instructions=())
    await begin(journal, init, environment)
    return Rig(session, journal, log, store, script, screen, counter, clock, step)


async def again(
    store: MemoryStore,
    moves: Sequence[Move],
    *,
    opened: Opened | None = None,
    model: Model | None = None,
    **more: Any,
) -> Rig:
    opened = opened or await store.open(ID, reducer=reducer())
    folded = refold(opened)
    clock, screen, counter, script = FakeClock(hold=True), KeepingRenderer(), Counter(), ScriptedModel(moves)
    log = FailingLog(opened.log)
    session, journal, step = assemble(log, folded.state, model or script, screen, counter, clock, store=store, **more)
    await reopen(journal, opened.recovery, Writer("test", "host", 1))
    await session.opened(folded)
    return Rig(session, journal, log, store, script, screen, counter, clock, step)


class CutModel:
    """Shows some text, then dies."""

    def encode(self, prompt: Prompt) -> bytes:
        return b"{}"

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        yield TextDelta("half an ans")
        raise StreamCut("the stream was cut")

    async def close(self) -> None:
        return
