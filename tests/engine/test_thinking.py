"""How long a model reasoned: measured once, told by a signal, recorded by the fact that follows."""

from collections.abc import AsyncGenerator

from agentsh.events.signals import ReasoningDelta, ReasoningEnded, TextDelta
from agentsh.events.turn import AgentMessage, Thought
from agentsh.ports.model import Reply, Streamed
from agentsh.testing import FakeClock, ScriptedModel
from tests.engine.rig import new


class Thinker(ScriptedModel):
    """Reasons for two and a half seconds of the clock that it is given, says something, and reasons on."""

    clock: FakeClock

    def __init__(self, *, says: str = "so", later: str = "") -> None:
        super().__init__([])
        self._says, self._later = says, later

    async def stream(self, body: bytes) -> AsyncGenerator[Streamed, None]:
        for text in ("one two ", "three ", "four "):
            yield ReasoningDelta(text)
            self.clock.advance(1.25 if text != "four " else 0.0)
        if self._says:
            yield TextDelta(self._says)
        if self._later:
            self.clock.advance(9.0)
            yield ReasoningDelta(self._later)
        yield Reply(self._says, "one two three four " + self._later, (), "stop", None, "thinker")


async def test_the_signal_says_what_the_fact_will_say() -> None:
    for model in (Thinker(), Thinker(later="five six")):
        rig = await new([], model=model)
        model.clock = rig.clock
        async with rig.session:
            await rig.session.submit("go")
            (said,) = rig.facts(AgentMessage)
        assert said.thought == Thought(ms=2_500, words=4)
        ended = [s for s in rig.screen.signals if isinstance(s, ReasoningEnded)]
        assert ended == [ReasoningEnded(2_500, 4)]
        text = next(n for n, s in enumerate(rig.screen.signals) if isinstance(s, TextDelta))
        assert rig.screen.signals[text - 1] == ended[0]


async def test_reasoning_without_an_answer_and_an_answer_without_reasoning() -> None:
    model = Thinker(says="")
    rig = await new([], model=model)
    model.clock = rig.clock
    async with rig.session:
        await rig.session.submit("go")
        assert [m.thought for m in rig.facts(AgentMessage)] == [Thought(ms=2_500, words=4)]
    from agentsh.models.scripted import Say

    rig = await new([Say(("plain",))])
    async with rig.session:
        await rig.session.submit("go")
        (said,) = rig.facts(AgentMessage)
    assert said.thought is None
    assert "thought" not in said.model_dump(exclude_unset=True)  # the line in the log is what it was
