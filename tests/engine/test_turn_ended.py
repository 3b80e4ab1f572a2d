"""The store hears of the end of each turn, however it ended."""

from contextlib import suppress

import pytest

from agentsh.base.errors import ModelUnavailable
from agentsh.events.turn import TurnFinished
from agentsh.testing import FailingLog, Say
from tests.engine.rig import new


async def test_the_log_hears_of_the_end_of_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []

    async def turn_ended(log: FailingLog) -> None:
        heard.append(log.last_seq)

    monkeypatch.setattr(FailingLog, "turn_ended", turn_ended)
    rig = await new([Say(("one",)), ModelUnavailable("the server answered 500"), Say(("three",))])
    await rig.session.submit("a")
    with suppress(ModelUnavailable):
        await rig.session.submit("b")
    await rig.session.submit("c")
    assert heard == [e.seq for e in rig.screen.events if isinstance(e.fact, TurnFinished)]
    assert len(heard) == 3
    await rig.session.close()
