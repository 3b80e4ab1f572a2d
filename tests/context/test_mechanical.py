"""The account that needs no model: what it says, and that it stays within its room."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.context.mechanical import FROM_LOG, MAX_TODO, mechanical_summary, todo_lines, touched
from agentsh.context.state import AgentItem, SessionState, UserItem
from agentsh.context.summarising import problem_of, with_log_facts
from agentsh.events.event import Event
from agentsh.events.session import EnvironmentChanged
from agentsh.events.tool import ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, TodoChanged, UserMessage
from agentsh.ports.model import Call, Reply
from agentsh.ports.texts import InlineTexts
from tests.context.strategies import logs
from tests.context.test_properties import add, reopened

TEXTS = InlineTexts()


def worked(*calls: tuple[str, dict[str, str], str, int | None]) -> SessionState:
    """A session of one turn with these calls: name, arguments, status, exit."""
    state = SessionState()
    reply = {"reasoning": None, "model": "m", "finish": "stop", "usage": None, "cost_usd": None}
    effects = {"shell": ("exec",), "write": ("write",), "edit": ("write",)}
    add(state, [(EnvironmentChanged(system_prompt="s", tools="[]", instructions=()), None)])
    add(state, [(UserMessage(text="Mend the cart,\nplease", attachments=()), None)])
    for n, (name, arguments, status, exit_code) in enumerate(calls):
        add(state, [(AgentMessage.model_validate({"text": f"step {n}", **reply}), None)])
        add(state, [(ToolCall(call=f"c{n}", name=name, arguments=json.dumps(arguments)), state.last_seq)])
        started = {"call": f"c{n}", "effects": effects.get(name, ("read",)), "sandbox": "none", "pid": None}
        add(state, [(ToolStarted.model_validate({**started, "decision": "auto"}), state.last_seq)])
        result = {"call": f"c{n}", "status": status, "for_model": "o", "for_user": "o", "duration_ms": 0}
        more = {} if exit_code is None else {"exit": exit_code}
        add(state, [(ToolResult.model_validate({**result, **more}), state.last_seq)])
    add(state, [(AgentMessage.model_validate({"text": "It is mended.", **reply}), None)])
    return state


CALLS = (
    ("read", {"path": "cart.py"}, "ok", None),
    ("shell", {"command": "pytest -q"}, "ok", 1),
    ("edit", {"path": "cart.py"}, "ok", None),
    ("write", {"path": "gone.py"}, "error", None),
    ("read", {"path": "notes.md"}, "ok", None),
    ("shell", {"command": "sleep 99"}, "timed_out", None),
)


def test_it_says_what_was_asked_touched_run_and_said() -> None:
    state = worked(*CALLS)
    todo = ({"text": "ship it", "status": "in_progress"}, "plain")
    text = mechanical_summary(state.talk, TEXTS, earlier="What was before.", todo=todo, max_bytes=4_000)
    for line in (
        FROM_LOG, "What was before.", "- Mend the cart, please", "- cart.py (changed)", "- notes.md (read)",
        "- `pytest -q`: exit 1", "- `sleep 99`: timed_out", "- ship it (in_progress)", "- plain", "It is mended.",
    ):  # fmt: skip
        assert line in text
    assert "gone.py" not in text, "that write failed"
    assert touched(state.talk, TEXTS) == ["cart.py"]


def test_an_account_of_accounts_does_not_grow() -> None:
    state = worked(*CALLS)
    text = ""
    for _ in range(40):
        text = mechanical_summary(state.talk, TEXTS, earlier=text, max_bytes=2_000)
        assert len(text.encode()) <= 2_000
        assert text.count(FROM_LOG) == 1
    assert "Mend the cart" in text


@given(logs(), st.integers(400, 5_000), st.text(max_size=2_000))
@settings(deadline=None, max_examples=50)
def test_of_any_log_it_stays_within_its_room(events: list[Event], room: int, earlier: str) -> None:
    state = reopened(events)
    text = mechanical_summary(state.talk, TEXTS, earlier=earlier, max_bytes=room)
    assert 0 < len(text.encode("utf-8", "surrogatepass")) <= room
    assert text == mechanical_summary(state.talk, TEXTS, earlier=earlier, max_bytes=room)


def test_the_newest_of_many_is_kept() -> None:
    state = worked(*(("shell", {"command": f"command {n}"}, "ok", 0) for n in range(400)))
    text = mechanical_summary(state.talk, TEXTS, max_bytes=3_000)
    assert "command 399" in text
    assert "older left out)" in text
    assert "(20 more)" in todo_lines([f"item {n}" for n in range(MAX_TODO + 20)])


def test_what_the_log_knows_is_added_to_what_the_model_wrote() -> None:
    state = worked(*CALLS)
    add(state, [(TodoChanged(items=({"title": "ship it"},)), None)])
    text = with_log_facts("## Goal\nx", state, TEXTS, state.last_seq)
    assert text.startswith("## Goal\nx\n\n")
    assert "- cart.py" in text
    assert "- ship it" in text
    assert isinstance(state.talk[0], UserItem)
    assert isinstance(state.talk[1], AgentItem)


def test_what_is_a_summary() -> None:
    def reply(text: str, finish: str = "stop", calls: tuple[Call, ...] = ()) -> Reply:
        return Reply(text, None, calls, finish, None, "m")  # type: ignore[arg-type]

    good = "# **Goal**\nx\n### Open work:\ny\n## exact facts\nz"
    assert problem_of(reply(good)) is None
    assert problem_of(reply(good, "length")) is not None
    assert problem_of(reply(good, calls=(Call("1", "look", "{}"),))) is not None
    assert problem_of(reply(" \n")) is not None
    assert problem_of(reply("Goal, open work and exact facts were not what I would write about.")) is not None
