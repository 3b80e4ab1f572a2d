"""/rewind, /redo and /fork as they are typed, on an engine on memory."""

from collections.abc import Sequence

import pytest

from agentsh.base.errors import UsageProblem
from agentsh.events.session import RewindUndone, Rewound
from agentsh.models.scripted import Say
from agentsh.repl import commands
from agentsh.repl.commands import SlashContext
from agentsh.repl.terminal import ReplIO
from tests.engine import rig
from tests.repl.test_loop import NoScreen


async def test_a_turn_is_taken_back_with_its_prompt_and_comes_again() -> None:
    r = await rig.new([Say(("a",)), Say(("b",)), Say(("c",))])
    context = SlashContext(r.session, ReplIO(NoScreen()))
    for text in ("one", "two\nlines", "three"):
        await r.session.submit(text)
    rows = (await commands.run("rewind", "", context)).rows
    assert [row.split("·")[0].strip() for row in rows[:3]] == ["1  one", "2  two lines", "3  three"]
    assert all("no files changed" in row for row in rows[:3])
    outcome = await commands.run("rewind", "2", context)
    assert outcome.draft == "two\nlines"
    assert [i.seq for i in r.session.state.talk] == [i.seq for i in r.session.state.talk if i.seq < 10]
    assert len(r.session.state.talk) == 2
    (rewound,) = r.facts(Rewound)
    assert rewound.what == "both"
    assert (await commands.run("redo", "", context)).draft == ""
    assert len(r.session.state.talk) == 6
    assert len(r.facts(RewindUndone)) == 1
    assert (await commands.run("redo", "", context)).rows == ["  there is no rewind to undo"]
    assert (await commands.run("rewind", "1 files", context)).draft == "", "the talk stays"
    for wrong, said in (("9", "the turns are 1 to 3"), ("x", "name a turn"), ("2 everything", "name a turn")):
        with pytest.raises(UsageProblem, match=said):
            await commands.run("rewind", wrong, context)
    await r.session.close()


async def test_nothing_is_taken_back_under_a_running_turn() -> None:
    import asyncio

    from tests.engine.rig import CutModel

    r = await rig.new([], model=CutModel())
    r.session._idle.clear()
    with pytest.raises(UsageProblem, match="running"):
        await r.session.rewind(1, "both")
    r.session._idle.set()
    await asyncio.wait_for(r.session.close(), 30)


async def test_fork_says_how_to_go_there() -> None:
    r = await rig.new([])
    asked: list[int | None] = []

    async def fork(at: int | None) -> Sequence[str]:
        asked.append(at)
        return ["made"]

    io = ReplIO(NoScreen())
    io.fork = fork
    context = SlashContext(r.session, io)
    assert (await commands.run("fork", "", context)).rows == ["  made"]
    assert (await commands.run("fork", "12", context)).rows == ["  made"]
    assert asked == [None, 12]
    with pytest.raises(UsageProblem):
        await commands.run("fork", "here", context)
    await r.session.close()
