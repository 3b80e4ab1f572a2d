"""The demo model in the real engine: real tools, a real directory, a log in memory, time of its own."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentsh.app.wiring import TOOLS, load
from agentsh.context.messages import build, messages_of
from agentsh.context.state import SessionState
from agentsh.context.view import View
from agentsh.engine.bus import Bus
from agentsh.engine.compactor import Compactor
from agentsh.engine.gate import Gate
from agentsh.engine.journal import Journal
from agentsh.engine.open import Writer, begin, refold, reopen
from agentsh.engine.session import Chosen, Parts, Session
from agentsh.engine.step import ModelStep, StepSettings
from agentsh.engine.tool_runner import ToolRunner
from agentsh.engine.turn import Limits, Turn
from agentsh.events.session import EnvironmentChanged, Mode, SessionInit, WorkspaceOrigin
from agentsh.events.tool import ToolResult
from agentsh.events.turn import AgentMessage, TurnFinished
from agentsh.log.store import OpenLog
from agentsh.models.demo import DemoModel
from agentsh.ports.model import Message
from agentsh.ports.texts import InlineTexts
from agentsh.ports.tokens import ByteEstimate
from agentsh.ports.tool import Tool
from agentsh.testing import FakeClock, KeepingRenderer, MemoryStore
from agentsh.workspace.local import LocalWorkspace

ID = "20261129-k3v9qd"


@dataclass
class DemoRig:
    session: Session
    store: MemoryStore
    screen: KeepingRenderer
    journal: Journal
    model_clock: FakeClock
    root: Path
    bus: Bus

    async def ask(self, text: str) -> str:
        """Run a turn; return the last words."""
        outcome = await self.session.submit(text)
        assert outcome.reason == "done", outcome
        return str(self.facts(AgentMessage)[-1].text)

    def facts(self, kind: type[Any]) -> list[Any]:
        return [event.fact for event in self.screen.events if isinstance(event.fact, kind)]

    @property
    def results(self) -> list[ToolResult]:
        return self.facts(ToolResult)

    @property
    def ends(self) -> list[str]:
        return [fact.reason for fact in self.facts(TurnFinished)]

    def messages(self) -> tuple[Message, ...]:
        return messages_of(build(self.journal.state, InlineTexts(), View()))


def tools() -> dict[str, Tool]:
    return {name: load(target) for name, target in TOOLS.items()}


def _assemble(log: OpenLog, state: SessionState, root: Path, store: MemoryStore, limits: Limits | None) -> DemoRig:
    clock, screen, bus = FakeClock(hold=True), KeepingRenderer(), Bus()
    bus.subscribe(screen)
    journal = Journal(log, state, bus, clock)
    workspace = LocalWorkspace(root, session=ID)
    gate = Gate(journal, workspace, (), None, preapproved=lambda state: True)
    runner = ToolRunner(journal, tools(), workspace, gate, (), InlineTexts(), clock)
    model_clock = FakeClock()
    model, settings = DemoModel(clock=model_clock), StepSettings(100_000)
    step = ModelStep(journal, model, InlineTexts(), ByteEstimate(), settings, clock)
    compactor = Compactor(journal, step, InlineTexts(), ByteEstimate())
    turn = Turn(journal, step, compactor, runner, limits or Limits(), clock)

    def choose(name: str) -> Chosen:
        return Chosen(name, {}, model, settings)

    session = Session(Parts(log, journal, turn, step, compactor, gate, model, choose))
    return DemoRig(session, store, screen, journal, model_clock, root, bus)


async def new(root: Path, *, mode: Mode = "yolo", limits: Limits | None = None) -> DemoRig:
    store = MemoryStore()
    rig = _assemble(await store.create(ID, by="agentsh test"), SessionState(), root, store, limits)
    origin = WorkspaceOrigin(kind="empty", origin=None, base=None)
    init = SessionInit(id=ID, title=None, cwd="/x", project="x", model="demo", mode=mode, workspace=origin)
    schemas = [
        {"name": t.spec.name, "description": t.spec.description, "parameters": t.spec.parameters}
        for t in tools().values()
    ]
    environment = EnvironmentChanged(system_prompt="You are a test.", tools=json.dumps(schemas), instructions=())
    await begin(rig.journal, init, environment)
    return rig


async def again(store: MemoryStore, root: Path) -> DemoRig:
    """A second process on the session."""
    opened = await store.open(ID)
    state = refold(opened).state
    rig = _assemble(opened.log, state, root, store, None)
    await reopen(rig.journal, opened.recovery, Writer("test", "host", 1))
    return rig
