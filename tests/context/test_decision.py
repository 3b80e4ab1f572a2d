"""What is done about the size of a request, and what it leaves."""

import pytest

from agentsh.base.errors import ContextOverflow
from agentsh.context.budget import WHOLE_STEPS, Prepared, Scale, decide, fit
from agentsh.context.items import NO_RESULT
from agentsh.context.marks import MAX_ITEM_BYTES, Marks
from agentsh.context.messages import build, messages_of
from agentsh.context.view import View, view_of
from agentsh.events.tool import ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, Attachment, ContextBuilt, Cut, UserMessage
from tests.context.driver import Driver


def step(driver: Driver, output: str, *, calls: int = 1) -> int:
    """One reply with calls and their results; return the seq of the first call."""
    said = AgentMessage(text="", reasoning=None, model="m", finish="tool_calls", usage=None, cost_usd=None)
    agent = driver.add(said)
    asked = [driver.add(ToolCall(call=f"c{n}", name="look", arguments="{}"), agent.seq) for n in range(calls)]
    for call in asked:
        started = driver.add(
            ToolStarted(call="c", effects=("read",), sandbox="none", pid=None, decision="yolo"), call.seq
        )
        result = ToolResult(call="c", status="ok", for_model=output, for_user="", duration_ms=0)
        driver.add(result, started.seq)
    return asked[0].seq


def user(driver: Driver, text: str = "go on") -> int:
    return driver.add(UserMessage(text=text, attachments=())).seq


def fitted(driver: Driver, budget: int) -> Prepared:
    driver.budget = budget
    return driver.fitted()


def reason(found: Prepared) -> str:
    assert found.cut is not None
    return found.cut.reason


def test_old_outputs_are_pruned_first_and_the_newest_steps_stay_whole() -> None:
    driver = Driver(1)
    user(driver)
    calls = [step(driver, f"head {n}\n" + "y" * 6_000) for n in range(30)]
    found = fitted(driver, 64_000)
    assert found.kind == "prune"
    assert found.cut == Cut(
        from_seq=0, reason="high-water mark: old outputs of tools pruned", pruned_before=calls[-WHOLE_STEPS[0]]
    )
    results = [m for m in found.messages if m.role == "tool"]
    assert len(results) == 30, "no call loses its result"
    whole = [m for m in results if len(m.text) > 6_000]
    assert [m.seq for m in whole] == calls[-WHOLE_STEPS[0] :]
    stub = results[0].text
    assert stub.startswith("head 0\n")
    assert f"the whole is in event {calls[0]} of the log" in stub
    assert len(stub.encode()) < 400
    assert found.tokens <= Marks(64_000).enough_tokens


def test_a_recorded_prune_holds_and_is_not_taken_back() -> None:
    driver = Driver(1)
    user(driver)
    for _ in range(30):
        step(driver, "y" * 6_000)
    first = fitted(driver, 64_000)
    assert first.cut is not None
    driver.add(
        ContextBuilt(request_sha256="", bytes=0, estimator="", tokens=0, budget=0, cut=first.cut, rules=1)
    )  # fmt: skip
    assert view_of(driver.state) == first.view
    again = fitted(driver, 64_000)
    assert (again.kind, again.messages) == ("keep", first.messages)
    larger = fitted(driver, 128_000)
    assert larger.messages == first.messages, "a larger budget changes nothing of the start"


def test_short_results_are_left_whole() -> None:
    driver = Driver(1)
    user(driver)
    step(driver, "short")
    view = View(pruned_before=driver.state.last_seq + 1)
    assert [m.text for m in messages_of(build(driver.state, driver.texts, view)) if m.role == "tool"] == ["short"]


def test_turns_are_cut_where_pruning_is_not_enough() -> None:
    driver = Driver(1)
    turns = []
    for n in range(20):
        turns.append(user(driver, f"turn {n} " + "z" * 9_000))
        step(driver, "short")
        driver.state.turn = None
    found = fitted(driver, 64_000)
    assert (found.kind, reason(found)) == ("cut", "high-water mark")
    assert found.view.from_seq in turns
    assert found.tokens <= Marks(64_000).low_tokens


def test_a_step_that_is_too_much_by_itself_is_shown_as_stubs_and_the_turn_goes_on() -> None:
    """G127: never a dead end."""
    driver = Driver(1)
    user(driver)
    step(driver, "w" * 29_000, calls=6)
    found = fitted(driver, 20_000)
    assert found.kind == "prune"
    assert "over budget" in reason(found)
    assert sum("old output left out" in m.text for m in found.messages) == 6
    assert found.tokens <= 20_000


def test_what_cannot_fit_is_refused_with_what_to_do() -> None:
    driver = Driver(1)
    user(driver, "x" * 29_000)
    with pytest.raises(ContextOverflow) as caught:
        fitted(driver, 4_000)
    assert "the budget is 4,000" in caught.value.message
    assert "--budget" in (caught.value.hint or "")


def test_compaction_is_asked_for_before_anything_is_cut() -> None:
    driver = Driver(1)
    for n in range(20):
        user(driver, f"turn {n} " + "z" * 9_000)
        driver.state.turn = None
    scale = Scale(driver.state, driver.texts, driver.counter)
    marks = Marks(64_000)
    assert decide(scale, marks, can_compact=True).kind == "compact"
    assert decide(scale, marks).kind == "cut"
    assert decide(scale, Marks(1_000_000), can_compact=True).kind == "keep"


def test_no_item_is_above_its_cap_and_what_is_cut_names_where_the_whole_is() -> None:
    driver = Driver(1)
    driver.add(
        UserMessage(
            text="u" * 100_000,
            attachments=(
                Attachment(name="a.txt", media_type="text/plain", content="a" * 50_000),
                Attachment(name="shot.png", media_type="image/png", content="raw"),
            ),
        )
    )
    step(driver, "r" * 200_000)
    step(driver, "漢" * 20_000)
    said = AgentMessage(text="s" * 90_000, reasoning=None, model="m", finish="stop", usage=None, cost_usd=None)
    driver.add(said)
    messages = messages_of(build(driver.state, driver.texts, View()))
    first, *others = messages[1:]
    assert len(first.text) < 2 * MAX_ITEM_BYTES + 200
    assert "[image: shot.png, image/png; not shown: it cannot be read]" in first.text
    for message in others:
        assert len(message.text.encode()) <= MAX_ITEM_BYTES
    assert sum("the whole is sha256:" in m.text for m in messages) == 4, "long texts are in blobs"
    assert build(driver.state, driver.texts, View(rules=0)) != build(driver.state, driver.texts, View())
    old = messages_of(build(driver.state, driver.texts, View(rules=0)))
    assert len(old[-1].text) == 90_000, "logs from before the cap are built as they were"


def test_an_open_call_has_a_result_too() -> None:
    driver = Driver(1)
    user(driver)
    said = AgentMessage(text="", reasoning=None, model="m", finish="tool_calls", usage=None, cost_usd=None)
    agent = driver.add(said)
    driver.add(ToolCall(call="c", name="look", arguments="{}"), agent.seq)
    found = fit(driver.state, driver.texts, driver.counter, marks=Marks(10_000))
    assert found.messages[-1].text == NO_RESULT
