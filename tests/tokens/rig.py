"""Sessions in this process that talk to the scripted server over a real socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from agentsh.app.build import Running, new_session, resume_session
from agentsh.app.paths import Home
from agentsh.app.plan import Plan, Screens
from agentsh.app.settings import Choice, Settings, choose_model
from agentsh.app.stores import event_store
from agentsh.context.state import SessionState
from agentsh.events.base import Fact
from agentsh.events.codec import decode
from agentsh.events.event import Event
from agentsh.testing import KeepingRenderer
from agentsh.testing.server import ScriptedServer
from agentsh.workspace.provision import provision
from tests.app.rig import a_home, an_id

ID = an_id(7)
F = TypeVar("F", bound=Fact)


class Desk:
    """A home, and one session in it. config: of agentsh.toml, as a table; nothing is compacted unless it says so."""

    def __init__(self, root: Path, server: ScriptedServer, model: str = "scripted", **config: Any) -> None:
        self.home: Home = a_home(root / "home")
        self.server = server
        self.settings = Settings.model_validate({"session": {"mode": "yolo", "compact": "off"}, **config})
        self.model = model
        self.screen = KeepingRenderer()
        self.budget_tokens: int | None = None

    def choice(self, name: str | None = None) -> Choice:
        return choose_model(self.settings, {"OPENAI_BASE_URL": self.server.base_url}, name or self.model)

    def plan(self, name: str | None = None) -> Plan:
        return Plan(self.home, self.settings, self.choice(name), Screens((self.screen,)), None, self.budget_tokens)

    @asynccontextmanager
    async def new(self) -> AsyncIterator[Running]:
        made = provision(self.home.workspaces / ID, choice="empty", source=self.home.root, homes=[self.home.root])
        running = await new_session(self.plan(), ID, made, cwd=self.home.root, mode="yolo")
        async with running.session:
            yield running

    @asynccontextmanager
    async def again(self, model: str | None = None) -> AsyncIterator[Running]:
        async def plan_for(state: SessionState) -> Plan:
            return self.plan(model)

        running = await resume_session(self.home, ID, self.settings, plan_for=plan_for, show=lambda events: None)
        async with running.session:
            yield running

    def logged(self) -> list[Event]:
        return [decode(record) for record in event_store(self.home).read(ID)]

    def facts(self, kind: type[F]) -> list[F]:
        return [e.fact for e in self.logged() if isinstance(e.fact, kind)]
