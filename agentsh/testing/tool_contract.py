"""What every tool must keep to, as a pytest class: subclass it, give it a tool and good arguments."""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentsh.base.errors import BadArguments, ToolFailed
from agentsh.base.text import clean
from agentsh.ports.services import Services
from agentsh.ports.tool import Tool, ToolContext, ToolOutcome
from agentsh.ports.workspace import Workspace
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.strays import kill_session

SESSION = f"test-contract-{os.getpid()}"
"""Tests run in several processes; each looks for its own strays."""

SECRET = "canary-secret-text"
MAX_DESCRIPTION_CHARS = 400
MAX_SCHEMA_BYTES = 1_000
MAX_SUMMARY_CHARS = 300
MAX_MODEL_BYTES = 30_000

ESCAPES = ("../outside/secret", "{outside}/secret", "out/secret", "out", "../../../../etc/passwd", "/etc/passwd", "/")

_TRACEBACK = ("Traceback", "(most recent")
"""In two parts: hypothesis tries texts that it finds in the source, and tools repeat what they were given."""

_TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            ".",
            "..",
            "/",
            "a" * 5_000,
            "a\0b",
            "\ud800",
            "\udcff",
            "\x1b[2J",
            "a\nb",
            "*",
            "[",
            "(",
            "{a,b}",
            "**/**",
        ]
    ),
    st.text(max_size=40),
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_HYPOTHESIS = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


class ToolContract:
    """Subclass, and override `tool` and `good_arguments`; the files that these need go into `workspace`."""

    @pytest.fixture
    def tool(self) -> Tool:
        """Return the tool."""
        raise NotImplementedError

    @pytest.fixture
    def good_arguments(self) -> Mapping[str, Any]:
        """Return arguments with which the tool succeeds in `workspace`."""
        raise NotImplementedError

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """Return a directory with a file `a.txt` and a link `out` to `outside`, where a secret is."""
        root, outside = tmp_path / "ws", tmp_path / "outside"
        root.mkdir()
        outside.mkdir()
        (outside / "secret").write_text(SECRET)
        (root / "a.txt").write_text("one\ntwo\nthree\n")
        (root / "out").symlink_to(outside)
        return root

    @pytest.fixture
    def workspace(self, root: Path) -> Iterator[Workspace]:
        """Return a workspace in `root`."""
        yield LocalWorkspace(root, session=SESSION)
        kill_session(SESSION)

    services = Services()
    """What the tool gets of a session; override it where it needs something."""

    def call(self, tool: Tool, workspace: Workspace, arguments: str) -> ToolOutcome:
        """Do what the engine does; anything but ToolFailed is a bug of the tool."""
        try:
            checked = tool.parse(arguments)
            outcome = asyncio.run(tool.run(ToolContext(workspace, "call_1", services=self.services), checked))
        except ToolFailed as error:
            outcome = ToolOutcome(str(error), error.message, "error")
        self.check(outcome)
        return outcome

    def check(self, outcome: ToolOutcome) -> None:
        """Check the texts of an outcome."""
        assert outcome.for_model.strip()
        assert len(outcome.for_model.encode("utf-8", "surrogatepass")) <= MAX_MODEL_BYTES
        assert " ".join(_TRACEBACK) not in outcome.for_model
        first = outcome.for_user.split("\n")[0]
        assert first.strip()
        if outcome.status == "ok":
            assert len(first) <= MAX_SUMMARY_CHARS
            assert clean(first) == first

    def test_describes_itself_tersely(self, tool: Tool) -> None:
        """The name is plain, the description short, and it states a limit."""
        spec = tool.spec
        assert spec.name.isidentifier()
        assert spec.name == spec.name.lower()
        assert spec.description.strip() == spec.description
        assert 20 <= len(spec.description) <= MAX_DESCRIPTION_CHARS
        assert any(c.isdigit() for c in spec.description), "the description states no limit"
        assert spec.effects
        assert len(json.dumps(spec.parameters, separators=(",", ":")).encode()) <= MAX_SCHEMA_BYTES

    def test_schema_is_valid_and_compact(self, tool: Tool) -> None:
        """Every argument has a type and a description; nothing else is in the schema."""
        schema = tool.spec.parameters
        assert schema["type"] == "object"
        assert set(schema.get("required", ())) <= set(schema["properties"])
        for name, value in schema["properties"].items():
            assert value.get("description"), name
            assert "type" in value or "enum" in value, name
        assert tool.spec.subject is None or tool.spec.subject in schema["properties"]
        assert not {"title", "$defs", "$ref"} & set(json.dumps(schema).replace('"', " ").split())

    def test_good_arguments_succeed(
        self, tool: Tool, workspace: Workspace, good_arguments: Mapping[str, Any]
    ) -> None:
        """The good arguments give a result."""
        assert self.call(tool, workspace, json.dumps(good_arguments)).status == "ok"

    def test_bad_arguments_are_told_apart(self, tool: Tool, good_arguments: Mapping[str, Any]) -> None:
        """What does not fit is BadArguments, with a message of bounded length that names the tool."""
        bad = ["[]", "3", "{", "nonsense", '{"no_such_argument": 1}', "[" * 100_000, '{"a":' * 50_000]
        bad += [json.dumps({**good_arguments, name: {"no": []}}) for name in tool.spec.parameters["properties"]]
        bad += [
            json.dumps({k: v for k, v in good_arguments.items() if k != name})
            for name in tool.spec.parameters.get("required", ())
        ]
        for arguments in bad:
            with pytest.raises(BadArguments) as caught:
                tool.parse(arguments)
            assert tool.spec.name in caught.value.message
            assert len(caught.value.message) < 1_500

    @_HYPOTHESIS
    @given(arguments=st.one_of(st.text(max_size=60), _ANYTHING.map(json.dumps)))
    def test_parse_never_crashes(self, tool: Tool, arguments: str) -> None:
        """Any text either fits or is BadArguments."""
        try:
            checked = tool.parse(arguments)
        except BadArguments as error:
            assert error.message.strip()
        else:
            assert set(checked) <= set(tool.spec.parameters["properties"])

    @_HYPOTHESIS
    @given(data=st.data())
    def test_hostile_values_give_results(
        self, tool: Tool, workspace: Workspace, good_arguments: Mapping[str, Any], data: st.DataObject
    ) -> None:
        """Any value of the right type gives a result, never a crash."""
        if tool.spec.effects & {"exec", "net"}:
            return  # random commands are not run on anybody's machine
        arguments = dict(good_arguments)
        for name, schema in tool.spec.parameters["properties"].items():
            if schema.get("type") == "string":
                arguments[name] = data.draw(st.just(arguments.get(name, "")) | _TEXTS, label=name)
            elif schema.get("type") in ("integer", "number"):
                arguments[name] = data.draw(st.sampled_from([-1, 0, 1, 2, 10**9, 10**30]), label=name)
        self.call(tool, workspace, json.dumps(arguments))

    @pytest.mark.parametrize("escape", ESCAPES)
    def test_no_path_leads_out(
        self, tool: Tool, workspace: Workspace, root: Path, good_arguments: Mapping[str, Any], escape: str
    ) -> None:
        """A path that leads out is an error; nothing outside is read or changed."""
        outside = root.parent / "outside"
        arguments = self.with_path(good_arguments, escape.replace("{outside}", str(outside)))
        if arguments is None:
            return
        outcome = self.call(tool, workspace, json.dumps(arguments))
        assert outcome.status == "error"
        assert SECRET not in outcome.for_model
        assert not outcome.edits
        assert {p.name: p.read_text() for p in outside.iterdir()} == {"secret": SECRET}
        assert sorted(os.listdir(root.parent)) == ["outside", "ws"]

    def test_cancellation_leaves_no_process(
        self, tool: Tool, workspace: Workspace, good_arguments: Mapping[str, Any]
    ) -> None:
        """Cancelled at any time, no process of the session is left."""

        async def cancelled(delay_s: float) -> None:
            checked = tool.parse(json.dumps(self.slow_arguments(good_arguments)))
            context = ToolContext(workspace, "call_1", services=self.services)
            task = asyncio.ensure_future(tool.run(context, checked))
            await asyncio.sleep(delay_s)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()

        for delay_s in (0.0, 0.02, 0.1):
            asyncio.run(cancelled(delay_s))
            assert kill_session(SESSION) == 0

    def with_path(self, good: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
        """Return arguments that are about another path; None for a tool that takes none."""
        return {**good, "path": path} if "path" in good else None

    def slow_arguments(self, good: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments with which the tool works for a while, where it can."""
        return good
