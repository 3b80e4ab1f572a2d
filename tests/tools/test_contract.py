"""Every tool keeps the contract."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentsh.app.wiring import TOOLS, load
from agentsh.base.clock import SystemClock
from agentsh.context.state import SessionState
from agentsh.engine.bus import Bus
from agentsh.engine.jobs import JobKeeper
from agentsh.engine.journal import Journal
from agentsh.engine.secret_stream import SecretStream
from agentsh.ports.services import Services
from agentsh.ports.texts import InlineTexts
from agentsh.ports.tool import Tool
from agentsh.ports.workspace import Workspace
from agentsh.testing import MemoryStore
from agentsh.testing.tool_contract import ESCAPES, SECRET, ToolContract
from agentsh.tools.web import Fetcher
from agentsh.workspace.job_output import JobOutputs
from agentsh.workspace.local import LocalWorkspace
from tests.tools.test_web import server

__all__ = ["server"]


class _Named(ToolContract):
    name = ""

    @pytest.fixture
    def tool(self) -> Tool:
        found: Tool = load(TOOLS[self.name])
        assert found.spec.name == self.name
        return found


class TestRead(_Named):
    name = "read"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"path": "a.txt", "offset": 2, "limit": 1}


class TestList(_Named):
    name = "list"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"path": "."}


class TestGlob(_Named):
    name = "glob"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"pattern": "*.txt", "path": "."}


class TestGrep(_Named):
    name = "grep"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"pattern": "t[wh]", "path": ".", "glob": "*.txt", "ignore_case": True}


class TestWrite(_Named):
    name = "write"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"path": "new/b.txt", "content": "x\n"}


class TestApplyPatch(_Named):
    name = "apply_patch"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch"}

    def with_path(self, good: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        return {"patch": f"*** Begin Patch\n*** Update File: {path}\n@@\n-canary-secret-text\n+x\n*** End Patch"}

    @pytest.mark.parametrize("escape", ESCAPES)
    @pytest.mark.parametrize(
        "section", ["*** Delete File: {}\n", "*** Add File: {}\n+x\n", "*** Update File: a.txt\n*** Move to: {}\n"]
    )
    def test_no_section_leads_out(
        self, tool: Tool, workspace: Workspace, root: Path, section: str, escape: str
    ) -> None:
        outside = root.parent / "outside"
        section = section.replace("{}", escape.replace("{outside}", str(outside)))
        outcome = self.call(tool, workspace, json.dumps({"patch": f"*** Begin Patch\n{section}*** End Patch"}))
        assert (outcome.status, outcome.edits) == ("error", ())
        assert {p.name: p.read_text() for p in outside.iterdir()} == {"secret": SECRET}
        assert sorted(p.name for p in root.iterdir()) == ["a.txt", "out"]


class TestEdit(_Named):
    name = "edit"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"path": "a.txt", "old": "two", "new": "2", "replace_all": False}


class TestShell(_Named):
    name = "shell"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"command": "echo hi", "timeout_s": 20}

    def slow_arguments(self, good: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"command": "sleep 300 & (setsid sleep 300 &) ; sleep 300", "timeout_s": 20}


class TestJob(_Named):
    name = "job"

    @pytest.fixture(autouse=True)
    def jobs(self, tmp_path: Path) -> None:
        log = asyncio.run(MemoryStore().create("20261129-k3v9qd", by="test"))
        journal = Journal(log, SessionState(), Bus(), SystemClock())
        secrets = journal.secrets
        outputs = JobOutputs(tmp_path / "jobs", lambda: SecretStream(secrets), secrets.clean)
        workspace = LocalWorkspace(tmp_path, session="test-contract-jobs")
        self.services = Services(jobs=JobKeeper(journal, workspace, outputs, InlineTexts(), SystemClock()))

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"action": "list", "id": "1", "timeout_s": 0.1}


class TestTodo(_Named):
    name = "todo"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"items": [{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}]}


class TestAskUser(_Named):
    name = "ask_user"

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        return {"question": "Which?", "choices": ["this", "that"]}


class TestWebFetch(_Named):
    name = "web_fetch"
    services = Services(fetch=Fetcher(frozenset({"127.0.0.1"})))

    @pytest.fixture
    def good_arguments(self, server: str) -> Mapping[str, Any]:
        return {"url": f"http://{server}/page"}


def test_every_tool_is_here() -> None:
    tested = {c.name for c in _Named.__subclasses__()}
    assert tested == set(TOOLS)
