"""Random logs for hypothesis: any facts in any order, with causes that may or may not fit."""

from typing import Any

from hypothesis import strategies as st

from agentsh.events.base import Usage
from agentsh.events.codec import decode, encode
from agentsh.events.compaction import Compaction, CompactionUndone, SummaryTried
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged
from agentsh.events.tool import JobChanged, PartialOutput, ShellChanged, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import (
    AgentMessage,
    ContextBuilt,
    PartialMessage,
    TextQueued,
    TodoChanged,
    TurnFinished,
    UserMessage,
)  # fmt: skip
from agentsh.events.user import SideAnswer, SideQuestion, UserCommand, UserCommandEnded
from agentsh.log.frame import decode_event, encode_event
from agentsh.log.spill import spill
from agentsh.stores.memory import MemoryBlobs

TS = "2026-11-29T16:20:00.000000Z"
texts = st.text(max_size=40) | st.sampled_from(["", "\ud800", "a\u2028b", "\x00", "x" * 3000, "y" * 30_000])
ids = st.sampled_from(["call_1", "call_1", "a", "a_5", "", "x" * 300, "odd id!"])
names = st.sampled_from(["look", "change", "functions.shell", "", "n" * 100])
arguments = st.sampled_from(["{}", '{"path":"a"}', '{"a":', "[1]", '{"a":NaN}', "", "\ud800"])
costs = st.sampled_from([0.5, 0.25])
usage = Usage(prompt=1, cached=0, completion=1, reasoning=0)


def _facts() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(UserMessage, text=texts, attachments=st.just(())),
        st.builds(
            AgentMessage,
            text=texts,
            reasoning=st.none() | texts,
            model=st.just("m"),
            finish=st.sampled_from(["stop", "tool_calls", "cut"]),
            usage=st.none() | st.just(usage),
            cost_usd=st.none(),
        ),
        st.builds(ToolCall, call=ids, name=names, arguments=arguments),
        st.builds(ToolCall, call=ids, name=names, arguments=arguments),
        st.builds(
            ToolStarted,
            call=ids,
            effects=st.sampled_from([("read",), ("write",), ("exec",)]),
            sandbox=st.just("none"),
            pid=st.none(),
            decision=st.just("auto"),
        ),
        st.builds(
            ToolResult,
            call=ids,
            status=st.sampled_from(["ok", "denied", "unknown"]),
            for_model=texts,
            for_user=texts,
            duration_ms=st.just(0),
            jobs=st.sampled_from([(), ("1",), ("1", "2")]),
        ),
        st.builds(
            JobChanged,
            job=st.sampled_from(["1", "2", "x"]),
            state=st.sampled_from(["running", "ended", "unknown"]),
            for_model=st.none() | texts,
        ),
        st.builds(
            ShellChanged, directory=st.just("sub"), exports=st.dictionaries(names, st.none() | texts, max_size=2)
        ),
        st.builds(TodoChanged, items=st.just(({"text": "x", "status": "done"},))),
        st.builds(PartialMessage, text=texts),
        st.builds(PartialOutput, call=ids, text=texts),
        st.builds(TextQueued, text=texts, steer=st.booleans()),
        st.builds(TextQueued, text=texts, steer=st.just(False), command=st.booleans()),
        st.builds(
            ContextBuilt,
            request_sha256=st.just("0"),
            bytes=st.just(0),
            estimator=st.just("~"),
            tokens=st.just(0),
            budget=st.just(0),
            cut=st.none() | st.builds(dict, from_seq=st.integers(0, 30), reason=st.just("x")),
        ),
        st.builds(SummaryTried, error=st.just("no"), usage=st.none() | st.just(usage), cost_usd=st.none() | costs),
        st.builds(
            Compaction,
            from_seq=st.integers(0, 30),
            upto_seq=st.integers(0, 30),
            summary=texts,
            by=st.sampled_from(["auto", "user"]),
            usage=st.none() | st.just(usage),
            cost_usd=st.none() | costs,
        ),
        st.builds(CompactionUndone, compaction=st.integers(0, 30)),
        st.builds(UserCommand, command=texts, joins=st.booleans(), sandbox=st.just("none")),
        st.builds(
            UserCommandEnded,
            status=st.sampled_from(["ok", "interrupted", "unknown"]),
            exit=st.none() | st.just(-9),
            text=texts,
            duration_ms=st.just(0),
        ),
        st.builds(SideQuestion, text=texts),
        st.builds(SideAnswer, text=texts, usage=st.none() | st.just(usage), cost_usd=st.none() | costs),
        st.builds(
            TurnFinished,
            reason=st.just("done"),
            steps=st.just(1),
            usage=st.just(usage),
            cost_usd=st.none(),
            duration_ms=st.just(0),
        ),
    )


@st.composite
def logs(draw: st.DrawFn, *, sound: bool = False) -> list[Event]:
    """A log as read back. sound: causes point where the engine would point them."""
    blobs = MemoryBlobs()
    environment = EnvironmentChanged(system_prompt="You are a test.", tools="[]", instructions=())
    facts: list[Any] = [environment, *draw(st.lists(_facts(), max_size=30))]
    events: list[Event] = []
    newest: dict[str, int] = {}
    answers = {
        "tool_call": "agent_message", "tool_started": "tool_call", "tool_result": "tool_started",
        "user_command_ended": "user_command", "side_answer": "side_question",
    }  # fmt: skip
    for seq, fact in enumerate(facts, 1):
        cause = newest.get(answers.get(fact.type, ""))
        if not sound:
            cause = draw(st.none() | st.integers(1, max(seq - 1, 1)) | st.just(cause))
        line = encode_event(spill(encode(fact, ts=TS, cause=cause), blobs), seq=seq, dur=0, salt=1)
        events.append(decode(decode_event(line, 1)))
        newest[fact.type] = seq
    return events
