"""The contract of the port `Model`, as a test class: inherit from it, and an adapter is proved."""

import asyncio
import dataclasses
from contextlib import aclosing
from typing import Any, ClassVar

import pytest

from agentsh.events.signals import ReasoningDelta, Retrying, TextDelta
from agentsh.ports.model import Call, Message, Model, Prompt, Reply

TOOL: dict[str, Any] = {
    "name": "read",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
TALK: tuple[Message, ...] = (
    Message("system", "You are a test. ‹ü› \U0001f642"),
    Message("user", "first", seq=3),
    Message("user", "second, right after it\u2028\x00\x1b[0m", seq=4),
    Message("assistant", "", (Call("c1", "read", '{"path":"a"}'), Call("c2", "read", "{}")), seq=6),
    Message("tool", "saw a", call_id="c1", seq=8),
    Message("tool", "half of a pair: \ud83d", call_id="c2", seq=9),
    Message("assistant", "It is done.", seq=11),
    Message("user", "And now?", seq=13),
    Message("assistant", "Text beside a call.", (Call("c3", "no such/tool", "{}"),), seq=15),
    Message("tool", "there is no such tool", call_id="c3", seq=17),
)
"""A conversation with all that an encoder meets: parallel calls, controls, half a surrogate pair, odd names."""


class ModelContract:
    """What every adapter keeps to.

    Override `model` as a fixture whose model gives a whole answer with text to any prompt, and, where an answer
    can be made to hang after its first preview, `hanging`. closing_bytes: how many bytes of a body come after its
    last message (`]}` in Chat Completions).
    """

    closing_bytes: ClassVar[int] = 2

    @pytest.fixture
    def model(self) -> Model:
        """Return a model that answers."""
        raise NotImplementedError

    @pytest.fixture
    def hanging(self) -> Model:
        """Return a model whose answer begins and never ends."""
        pytest.skip("this adapter has no answer that hangs")

    def prompt(self, upto: int = len(TALK), **options: Any) -> Prompt:
        """Return the first `upto` messages of TALK as a prompt."""
        return Prompt("test-model", TALK[:upto], (TOOL,), options)

    def test_encode_is_pure(self, model: Model) -> None:
        """The same prompt gives the same bytes, and equal prompts do."""
        prompt = self.prompt(temperature=0.5)
        copy = Prompt(prompt.model, tuple(dataclasses.replace(m) for m in TALK), (dict(TOOL),), {"temperature": 0.5})
        assert model.encode(prompt) == model.encode(prompt) == model.encode(copy)

    def test_the_order_of_options_is_no_part_of_them(self, model: Model) -> None:
        """Options come out of the log, whose order of members says nothing."""
        forward: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "extra": {"a": 1, "b": 2}}
        backward: dict[str, Any] = {"extra": {"b": 2, "a": 1}, "top_p": 0.9, "temperature": 0.5}
        assert model.encode(self.prompt(**forward)) == model.encode(self.prompt(**backward))

    def test_seq_is_not_sent(self, model: Model) -> None:
        """Where a message lies in the log is no business of a provider."""
        moved = tuple(dataclasses.replace(m, seq=m.seq + 1000) for m in TALK)
        assert model.encode(dataclasses.replace(self.prompt(), messages=moved)) == model.encode(self.prompt())

    def test_the_bytes_of_a_message_do_not_depend_on_later_ones(self, model: Model) -> None:
        """What was sent is the start of what will be, up to the end of its last message."""
        whole = model.encode(self.prompt())
        for upto in range(1, len(TALK)):
            body = model.encode(self.prompt(upto))
            start = body[: len(body) - self.closing_bytes]
            assert whole.startswith(start), f"message {upto} is not where it was"

    def test_bodies_are_utf_8(self, model: Model) -> None:
        """Whatever is in a message."""
        model.encode(self.prompt()).decode("utf-8", "strict")

    async def test_the_reply_comes_last_and_once(self, model: Model) -> None:
        """And its text is that of the previews."""
        async with aclosing(model.stream(model.encode(self.prompt(2)))) as stream:
            items = [item async for item in stream]
        await model.close()
        *previews, reply = items
        assert isinstance(reply, Reply)
        assert all(isinstance(item, TextDelta | ReasoningDelta | Retrying) for item in previews)
        assert reply.text
        assert "".join(item.text for item in previews if isinstance(item, TextDelta)) == reply.text
        assert "".join(item.text for item in previews if isinstance(item, ReasoningDelta)) == (reply.reasoning or "")
        assert bool(reply.calls) == (reply.finish == "tool_calls")

    async def test_a_stream_can_be_closed_after_its_first_item(self, model: Model) -> None:
        """And the model used again."""
        for _ in range(2):
            async with aclosing(model.stream(model.encode(self.prompt(2)))) as stream:
                await anext(stream)
        await model.close()

    async def test_cancelling_ends_at_once(self, hanging: Model) -> None:
        """Nothing holds a cancelled task back; 2 s is far more than a closed connection takes."""
        begun = asyncio.Event()

        async def follow() -> None:
            async with aclosing(hanging.stream(hanging.encode(self.prompt(2)))) as stream:
                async for _ in stream:
                    begun.set()

        task = asyncio.create_task(follow())
        async with asyncio.timeout(10):
            await begun.wait()
        task.cancel()
        async with asyncio.timeout(2):
            with pytest.raises(asyncio.CancelledError):
                await task
        await hanging.close()

    async def test_closing_is_idempotent(self, model: Model) -> None:
        """Used or not."""
        await model.close()
        await model.close()
