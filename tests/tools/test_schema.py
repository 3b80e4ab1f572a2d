"""A tool is a typed function; what a model gets wrong is told so that it can be mended."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pytest

from agentsh.app.wiring import TOOLS, load
from agentsh.base.errors import BadArguments
from agentsh.ports.tool import Tool, ToolContext, ToolOutcome
from agentsh.tools.schema import Field, SchemaTool, tool
from agentsh.workspace.local import LocalWorkspace


@tool("sample", effects={"read"}, subject="path")
def sample(
    ctx: ToolContext,
    path: Annotated[str, Field(description="a path")],
    count: Annotated[int, Field(description="a number", ge=1)] = 3,
    flag: Annotated[bool, Field(description="a flag")] = False,
    ratio: Annotated[float | None, Field(description="a ratio")] = None,
    kind: Annotated[Literal["a", "b"], Field(description="a kind")] = "a",
    names: Annotated[list[str] | None, Field(description="names")] = None,
) -> ToolOutcome:
    """Do something, at most 3 times."""
    return ToolOutcome(repr((path, count, flag, ratio, kind, names)), "sample")


def test_schema_is_compact() -> None:
    port: Tool = sample
    assert port.spec.name == "sample"
    assert port.spec.description == "Do something, at most 3 times."
    assert port.spec.read_only
    assert port.spec.parameters == {
        "type": "object",
        "properties": {
            "path": {"description": "a path", "type": "string"},
            "count": {"default": 3, "description": "a number", "minimum": 1, "type": "integer"},
            "flag": {"default": False, "description": "a flag", "type": "boolean"},
            "ratio": {"type": "number", "description": "a ratio"},
            "kind": {"default": "a", "description": "a kind", "enum": ["a", "b"], "type": "string"},
            "names": {"type": "array", "items": {"type": "string"}, "description": "names"},
        },
        "required": ["path"],
    }


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"path":"a"}', {"path": "a"}),
        (' {"path":"a"}\n', {"path": "a"}),
        ('{"path":5}', {"path": "5"}),
        ('{"path":"a","count":"5"}', {"path": "a", "count": 5}),
        ('{"path":"a","count":5.0}', {"path": "a", "count": 5}),
        ('{"path":"a","count":null,"ratio":null,"names":null}', {"path": "a"}),
        ('{"path":"a","flag":"true"}', {"path": "a", "flag": True}),
        ('"{\\"path\\":\\"a\\"}"', {"path": "a"}),
        ('{"path":"a\\udcff"}', {"path": "a\udcff"}),
        ('{"flag":true,"path":"a"}', {"path": "a", "flag": True}),
    ],
)
def test_harmless_slips_are_taken(text: str, arguments: dict[str, Any]) -> None:
    parsed = sample.parse(text)
    assert parsed == arguments
    assert list(parsed) == list(arguments)


def test_no_text_is_no_arguments() -> None:
    @tool("bare", effects=set())
    def bare(ctx: ToolContext) -> ToolOutcome:
        """Do nothing."""
        return ToolOutcome("x", "x")

    for text in ("", " \n", "{}", "null"):
        if text == "null":
            with pytest.raises(BadArguments):
                bare.parse(text)
        else:
            assert bare.parse(text) == {}
    with pytest.raises(BadArguments, match="'path' is missing"):
        sample.parse("")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"path":"a","count":"many"}', "'count': input should be a valid integer"),
        ('{"path":"a","count":"many"}', 'not "many"'),
        ('{"path":"a","count":0}', "'count': input should be greater than or equal to 1, not 0"),
        ('{"path":null}', "'path': input should be a valid string, not null"),
        ('{"path":["a"]}', "'path': input should be a valid string, not [\"a\"]"),
        ('{"pth":"a"}', "there is no argument 'pth' (did you mean 'path'?)"),
        ('{"path":"a","kind":"c"}', "'kind': input should be 'a' or 'b', not \"c\""),
        ('{"path":"a","ratio":NaN}', "'ratio': input should be a finite number"),
        ('{"path":"a","count":1e400}', "'count'"),
        ('{"path":"a","names":["x",1,{}]}', "'names[2]'"),
        ('{"path":"a"', "the arguments are not JSON"),
        ('{"path":"a"} {"path":"b"}', "not JSON: Extra data"),
        ("[1,2]", "must be one JSON object, not [1,2]"),
        ("[" * 100_000, "not JSON"),
        ("9" * 10_000, "not JSON"),
    ],
)
def test_what_to_mend(text: str, message: str) -> None:
    with pytest.raises(BadArguments) as caught:
        sample.parse(text)
    assert message in caught.value.message
    assert caught.value.message.startswith("sample: ")
    assert len(caught.value.message) < 1_000
    if "JSON" not in message:
        assert "Arguments: path (string, required), count (integer)" in caught.value.message


def test_a_problem_inside_of_a_list_is_told_with_its_place() -> None:
    given = '{"items":[{"text":"x","status":"done"},{"text":"y","state":"done"},{"text":"z","status":"no"}]}'
    with pytest.raises(BadArguments) as raised:
        load(TOOLS["todo"]).parse(given)
    assert str(raised.value).startswith(
        "todo: 'items[1].status' is missing; there is no argument 'items[1].state'; 'items[2].status': input"
    )


def test_many_problems_are_cut_short() -> None:
    with pytest.raises(BadArguments, match="and 16 more problems"):
        sample.parse("{" + ",".join(f'"x{i}":{i}' for i in range(20)) + "}")


def _no_docstring(ctx: ToolContext) -> ToolOutcome:
    return ToolOutcome("", "")


def _no_context(path: Annotated[str, Field(description="x")]) -> ToolOutcome:
    """Do."""
    return ToolOutcome("", "")


def _nothing() -> ToolOutcome:
    """Do."""
    return ToolOutcome("", "")


def _no_annotation(ctx: ToolContext, path) -> ToolOutcome:  # type: ignore[no-untyped-def]
    """Do."""
    return ToolOutcome("", "")


def _no_description(ctx: ToolContext, path: str) -> ToolOutcome:
    """Do."""
    return ToolOutcome("", "")


def _star(ctx: ToolContext, *paths: Annotated[str, Field(description="x")]) -> ToolOutcome:
    """Do."""
    return ToolOutcome("", "")


def _double_star(ctx: ToolContext, **paths: Annotated[str, Field(description="x")]) -> ToolOutcome:
    """Do."""
    return ToolOutcome("", "")


def _no_kind(ctx: ToolContext, paths: Annotated[dict[str, int], Field(description="x")]) -> ToolOutcome:
    """Do."""
    return ToolOutcome("", "")


def _two_kinds(ctx: ToolContext, path: Annotated[str | int, Field(description="x")]) -> ToolOutcome:
    """Do."""
    return ToolOutcome("", "")


def _other_result(ctx: ToolContext) -> str:
    """Do."""
    return ""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_no_docstring, "docstring"),
        (_no_context, "first parameter"),
        (_nothing, "first parameter"),
        (_no_annotation, "no annotation"),
        (_no_description, "no description"),
        (_star, "cannot be told"),
        (_double_star, "cannot be told"),
        (_no_kind, "cannot be told"),
        (_two_kinds, "cannot be told"),
        (_other_result, "return a ToolOutcome"),
    ],
)
def test_a_wrong_definition_is_an_error_at_once(function: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        tool("wrong", effects=set())(function)


def test_a_wrong_subject_is_an_error_at_once() -> None:
    def fine(ctx: ToolContext, path: Annotated[str, Field(description="x")]) -> ToolOutcome:
        """Do."""
        return ToolOutcome("", "")

    with pytest.raises(TypeError, match="subject"):
        tool("wrong", effects=set(), subject="file")(fine)


async def _run(made: SchemaTool, text: str, root: Path) -> ToolOutcome:
    return await made.run(ToolContext(LocalWorkspace(root, session="s"), "call_1"), made.parse(text))


async def test_defaults_are_those_of_the_function(tmp_path: Path) -> None:
    assert (await _run(sample, '{"path":"a"}', tmp_path)).for_model == "('a', 3, False, None, 'a', None)"


async def test_async_functions_run_on_the_loop_and_others_in_a_thread(tmp_path: Path) -> None:
    where: list[threading.Thread] = []

    @tool("here", effects=set())
    async def here(ctx: ToolContext) -> ToolOutcome:
        """Do."""
        where.append(threading.current_thread())
        return ToolOutcome("x", "x")

    @tool("there", effects=set())
    def there(ctx: ToolContext) -> ToolOutcome:
        """Do."""
        where.append(threading.current_thread())
        return ToolOutcome("x", "x")

    await _run(here, "", tmp_path)
    await _run(there, "", tmp_path)
    assert where[0] is threading.current_thread()
    assert where[1] is not threading.current_thread()


async def test_cancellation_waits_for_the_thread(tmp_path: Path) -> None:
    """What is recorded as interrupted has stopped: it does not write a moment later."""
    started = threading.Event()
    done: list[str] = []

    @tool("slow", effects={"write"})
    def slow(ctx: ToolContext) -> ToolOutcome:
        """Do."""
        started.set()
        time.sleep(0.3)
        done.append("written")
        raise KeyError("nobody looks at this")

    task = asyncio.ensure_future(_run(slow, "", tmp_path))
    await asyncio.to_thread(started.wait)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["written"]


def test_parameters_are_plain_json() -> None:
    import json

    assert json.loads(json.dumps(cast(Any, sample.spec.parameters))) == sample.spec.parameters
