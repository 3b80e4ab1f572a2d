"""No attempt of the table gets out of its sandbox; without one they do, so they are worth something."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentsh.ports.workspace import ProcessResult
from agentsh.workspace.sandbox import probe
from tests.workspace.escape.attempts import ATTEMPTS, Attempt
from tests.workspace.escape.world import Kind, World

ROOT_USER = os.geteuid() == 0
WITH_BWRAP = pytest.mark.skipif(not probe("bwrap").works, reason=f"no bubblewrap: {probe('bwrap').why}")
WITH_LANDLOCK = pytest.mark.skipif(not probe("landlock").works, reason=f"no Landlock: {probe('landlock').why}")
NOBODY = pytest.mark.skipif(not ROOT_USER or shutil.which("setpriv") is None, reason="only root can be somebody else")
WAYS = [
    pytest.param("bwrap", False, marks=WITH_BWRAP, id="bwrap"),
    pytest.param("bwrap", True, marks=[WITH_BWRAP, NOBODY], id="bwrap-as-nobody"),
    pytest.param("landlock", False, marks=WITH_LANDLOCK, id="landlock"),
    pytest.param("landlock", True, marks=[WITH_LANDLOCK, NOBODY], id="landlock-as-nobody"),
]
Make = Callable[[bool], World]


@pytest.fixture(scope="module")
def worlds() -> Iterator[dict[bool, World]]:
    made: dict[bool, World] = {}
    yield made
    for world in made.values():
        world.close()


@pytest.fixture
def world(worlds: dict[bool, World], monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a world, or take the one of an attempt before that left it as it was."""

    def make(as_nobody: bool) -> World:
        if as_nobody not in worlds:
            worlds[as_nobody] = World(as_nobody=as_nobody)
        made = worlds[as_nobody]
        monkeypatch.setenv("HOME", str(made.user))
        monkeypatch.setenv("OPENAI_API_KEY", "canary-of-somebody-else")
        monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        return made

    return make


async def attempted(world: World, kind: Kind, attempt: Attempt) -> tuple[ProcessResult, list[str]]:
    workspace = world.workspace(kind)
    result = await workspace.run(world.line(attempt), timeout_s=20, max_bytes=200_000)
    return result, world.harm(result)


CASES = [
    pytest.param(*way.values, attempt, marks=way.marks, id=f"{attempt.name}-{way.id}")
    for attempt in ATTEMPTS
    for way in WAYS
    if not attempt.root or (ROOT_USER and not way.values[1])  # of others file modes keep it before any sandbox does
]


@pytest.mark.parametrize(("kind", "as_nobody", "attempt"), CASES)
async def test_no_attempt_gets_out(
    world: Make, worlds: dict[bool, World], kind: Kind, as_nobody: bool, attempt: Attempt
) -> None:
    here = world(as_nobody)
    result, harm = await attempted(here, kind, attempt)
    if harm or attempt.name in LEAVES_TRACES:
        worlds.pop(as_nobody).close()
    stopped_by = attempt.bwrap if kind == "bwrap" else attempt.landlock
    if stopped_by is None:
        assert harm, f"the table says that this goes through: {result.output[-500:]}"
    else:
        assert not harm, f"{harm}\n{result.output[-500:]}"


LEAVES_TRACES = {"another .git in its place", "move the workspace itself"}
"""These change the workspace itself, as they may."""


@pytest.mark.parametrize("attempt", [a for a in ATTEMPTS if a.control], ids=lambda attempt: attempt.name)
async def test_without_a_sandbox_it_gets_out(world: Make, worlds: dict[bool, World], attempt: Attempt) -> None:
    """Else nothing would be shown by its being stopped."""
    if attempt.root and not ROOT_USER:
        pytest.skip("only root can try it")
    here = world(False)
    try:
        result, harm = await attempted(here, "none", attempt)
        assert harm, result.output[-500:]
    finally:
        worlds.pop(False).close()


def test_the_table_is_large_enough() -> None:
    assert len(ATTEMPTS) >= 60
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)


PAGE = Path(__file__).parents[3] / "docs" / "sandbox.md"


def table() -> str:
    """The table of docs/sandbox.md."""
    rows = ["| attempt | bubblewrap | Landlock |", "|---|---|---|"]
    rows += [f"| {a.name} | {a.bwrap} | {a.landlock or '**goes through**'} |" for a in ATTEMPTS]
    return "\n".join(rows)


def test_the_page_says_what_the_tests_show() -> None:
    """`python -m tests.workspace.escape.page` writes the table anew."""
    assert table() in PAGE.read_text(encoding="utf-8")
