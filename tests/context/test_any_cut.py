"""Random sessions, cut at every event: what is sent next is valid, within the budget, and can be built again."""

import json
from collections import Counter
from hashlib import sha256

import pytest

from agentsh.base.errors import ContextOverflow
from agentsh.context.fold import apply, fold
from agentsh.context.manifest import manifest
from agentsh.context.rendered import RenderCache
from agentsh.context.request import prompt_of, rebuild, tools_of
from agentsh.context.state import SessionState
from agentsh.context.validate import problems
from agentsh.events.turn import ContextBuilt, UserMessage
from agentsh.models.chat_body import encode as encode_body
from agentsh.testing import server_rules as rules
from tests.context.driver import Driver, count_body


def cut_everywhere(seed: int, found: Counter[str]) -> None:
    """Cut a session after each of its events, open it again, say something, and judge what would be sent."""
    whole = Driver(seed).write(4) if seed % 15 else Driver(seed, budget=40_000, mild=True).write(20)
    budget = whole.budget
    for keep in range(1, len(whole.events) + 1):
        again = Driver(seed)
        again.events, again.blobs, again.texts = whole.events[:keep], whole.blobs, whole.texts
        again.state, again.budget, again.mild = fold(again.events), budget, whole.mild
        again.resume()
        again.add(UserMessage(text="go on", attachments=()))
        found["cuts"] += 1
        try:
            fitted = again.fitted()
        except ContextOverflow:
            assert again.budget <= 12_000, "a budget of 30,000 tokens holds any step of these sessions"
            found["refused"] += 1
            continue
        body = json.loads(again.body(fitted))
        assert rules.problems(body) == [], f"seed {seed}, cut at {keep}"
        assert problems(fitted.messages) == []
        fixed = again.counter.count(tools_of(again.state, again.texts))
        assert count_body(body) + fixed <= again.budget, f"seed {seed}, cut at {keep}"
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        assert text.endswith("go on"), "the newest prompt is there"
        found[fitted.kind] += 1


def test_the_sessions_are_compacted_too() -> None:
    assert sum(Driver(seed).write(8).compactions for seed in range(40)) > 8


def test_any_cut_of_sixty_sessions() -> None:
    found: Counter[str] = Counter()
    for seed in range(60):
        cut_everywhere(seed, found)
    assert found["cuts"] > 2_000
    assert min(found[kind] for kind in ("keep", "prune", "cut")) > 10, found
    assert found["refused"] < found["cuts"] / 10


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_any_cut_of_a_thousand_sessions() -> None:
    found: Counter[str] = Counter()
    for seed in range(1_000):
        cut_everywhere(seed, found)
    valid = found["cuts"] - found["refused"]
    print(f"\n1,000 logs, {found['cuts']:,} cuts: {valid:,} requests, all valid, none over budget; {dict(found)}")


@pytest.mark.parametrize("seed", range(25))
def test_every_request_is_built_again_byte_for_byte(seed: int) -> None:
    """From log and blobs, with the recorded decision: no counter and no budget at hand, with a cache and without."""
    driver = Driver(seed).write(8)
    state, cache = SessionState(), RenderCache()
    for event in driver.events:
        if isinstance(event.fact, ContextBuilt):
            for used in (cache, None):
                again = rebuild(state, event.fact, driver.texts, used)
                body = encode_body(again.prompt)
                assert sha256(body).hexdigest() == event.fact.request_sha256, f"event {event.seq}"
        apply(state, event)
    assert driver.bodies


@pytest.mark.parametrize("seed", range(25))
def test_the_start_of_a_request_never_changes_unless_an_event_says_so(seed: int) -> None:
    driver = Driver(seed).write(8)
    before: bytes | None = None
    broken, merges = 0, False
    for event in driver.events:
        fact = event.fact
        if isinstance(fact, ContextBuilt):
            if fact.summary is not None:
                continue
            body = driver.bodies[event.seq]
            if before is not None and fact.cut is None:
                same = body.startswith(before.removesuffix(b"]}"))
                assert same, f"event {event.seq}"
            broken += fact.cut is not None
            before = None if merges else body
        elif fact.type == "model_changed":
            merges = "merge_user_messages" in str(fact)  # what the user says next joins the last message there
            before = None
        elif fact.type in ("image_dropped", "compaction", "compaction_undone") or (
            fact.type == "environment_changed" and "tools" in str(fact)
        ):
            before = None  # the model, or what it is offered, stands in front
    assert broken <= len(driver.bodies)


@pytest.mark.parametrize("seed", range(25))
def test_a_request_is_the_same_without_what_was_rendered_before(seed: int) -> None:
    driver = Driver(seed).write(6)
    if driver.state.turn is not None:
        driver.resume()
    driver.add(UserMessage(text="go on", attachments=()))
    try:
        cached = driver.fitted()
    except ContextOverflow:
        return
    driver.cache = RenderCache()
    fresh = driver.fitted()
    assert fresh == cached
    assert driver.body(fresh) == driver.body(cached)


@pytest.mark.parametrize("seed", range(25))
def test_a_manifest_names_every_event_and_adds_up_to_the_request(seed: int) -> None:
    driver = Driver(seed).write(6)
    state = SessionState()
    for n, event in enumerate(driver.events):
        if isinstance(event.fact, ContextBuilt) and event.fact.summary is None:
            again = rebuild(state, event.fact, driver.texts)
            assert state.environment is not None
            found = manifest(
                driver.events[:n], state, again.view, again.blocks, counter=driver.counter,
                prompt=driver.texts.text(state.environment.system_prompt), tools=tools_of(state, driver.texts),
            )  # fmt: skip
            assert [row.seq for row in found.rows] == list(range(1, event.seq))
            assert found.tokens == event.fact.tokens, f"event {event.seq}"
        apply(state, event)


def test_prompt_of_says_what_the_log_says() -> None:
    driver = Driver(1).write(3)
    prompt = prompt_of(driver.state, (), tools_of(driver.state, driver.texts))
    assert prompt.model == driver.state.model
    assert [tool["name"] for tool in prompt.tools][:1] == ["look"]
