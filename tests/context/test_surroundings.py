"""What a session started with is sent word for word for ever; what changed since is told once, and is never lost."""

import json
from dataclasses import replace

from agentsh.context.messages import build, messages_of
from agentsh.context.state import Compacted
from agentsh.context.surroundings import (
    MAX_INSTRUCTIONS_BYTES,
    Instruction,
    Surroundings,
    capped,
    changes,
    entries,
    readable,
)
from agentsh.context.view import RULES, View, view_of
from agentsh.events.base import NO_USAGE, BlobRef
from agentsh.events.session import EnvironmentChanged
from agentsh.events.turn import ContextBuilt, Cut, TurnFinished, UserMessage
from agentsh.ports.texts import InlineTexts
from tests.context.driver import MORE_TOOLS, TOOLS, Driver

TEXTS = InlineTexts()


def say(driver: Driver, text: str) -> list[str]:
    """Look around and say something, as a session does; return the messages that would be sent."""
    if driver.state.turn is not None:
        driver.add(TurnFinished(reason="done", steps=1, usage=NO_USAGE, cost_usd=None, duration_ms=0))
    driver.look()
    driver.add(UserMessage(text=text, attachments=()))
    return [m.text for m in messages_of(build(driver.state, driver.texts, View()))]


def test_nothing_is_told_where_nothing_changed() -> None:
    driver = Driver(1)
    first = say(driver, "one")
    assert first[0].startswith("You are a test in /x.")
    assert '<instructions file="AGENTS.md">\nBe kind.\n</instructions>' in first[0]
    assert first[1:] == ["one"]
    assert say(driver, "two") == [*first, "two"]


def test_a_day_later_the_date_is_told_and_the_start_is_the_same() -> None:
    """H139."""
    driver = Driver(1)
    before = say(driver, "one")
    driver.day += 1
    after = say(driver, "two")
    assert after[:2] == before
    assert after[2].startswith("<changes>\n")
    assert "The date is 2026-12-02." in after[2]
    assert after[2].endswith("</changes>\n\ntwo")
    assert say(driver, "three") == [*after, "three"], "it is told once"


def test_instructions_that_are_edited_added_or_removed_are_told() -> None:
    driver = Driver(1)
    before = say(driver, "one")
    driver.files = {"AGENTS.md": "Be brief.", "web/AGENTS.md": "No jQuery."}
    after = say(driver, "two")
    assert after[:2] == before
    assert "Be brief." in after[2]
    assert '<instructions file="web/AGENTS.md">\nNo jQuery.' in after[2]
    del driver.files["web/AGENTS.md"]
    gone = say(driver, "three")
    assert "web/AGENTS.md do not hold any more" in gone[3]
    assert "Be brief." not in gone[3]


def test_tools_change_only_where_an_event_says_so() -> None:
    driver = Driver(1)
    say(driver, "one")
    assert driver.state.environment is not None
    driver.tools = json.dumps(json.loads(TOOLS), indent=2)
    say(driver, "two")
    assert driver.state.environment.tools == TOOLS, "another way to write the same is no change (H140)"
    driver.tools = MORE_TOOLS
    assert "new: new" in say(driver, "three")[-1]
    assert driver.state.environment.tools == MORE_TOOLS


def test_what_was_told_survives_a_cut_and_a_compaction() -> None:
    """G129: instructions, as they are now, are in every request."""
    driver = Driver(1)
    say(driver, "one")
    for day in (2, 3):
        driver.day = day
        driver.files["AGENTS.md"] = f"Be brief on day {day}."
        say(driver, f"on day {day}")
    for n in range(3):
        say(driver, f"later {n}")
    later = next(i.seq for i in driver.state.talk if driver.texts.text(i.fact.text) == "later 1")
    system, first, *rest = messages_of(build(driver.state, driver.texts, View(from_seq=later)))
    assert "Be kind." in system.text
    assert first.text.count("<changes>") == 1
    assert "2026-12-03" in first.text
    assert "2026-12-02" not in first.text, "only the newest of each kind"
    assert "Be brief on day 3." in first.text
    assert first.text.endswith("later 1")
    assert [m.text for m in rest] == ["later 2"]

    driver.state.compaction = Compacted(9, 1, later - 1, "They talked.")
    system, summary, first, *rest = messages_of(build(driver.state, driver.texts, View()))
    assert "Be kind." in system.text
    assert "Be brief on day 3." in summary.text
    assert "They talked." in summary.text
    assert first.text == "later 1"


def test_what_was_told_anew_a_thousand_times_is_kept_once() -> None:
    """So that the state stays as small as the context, and the newest is told all the same."""
    driver = Driver(1)
    for n in range(30):
        driver.files["AGENTS.md"] = f"Rule {n}."
        driver.files["web/AGENTS.md"] = f"Web {n % 2}."
        say(driver, f"message {n}")
    assert len(driver.state.changes) > 50
    here = driver.state.talk[-1].seq
    cut = Cut(from_seq=here, reason="x")
    driver.add(ContextBuilt(request_sha256="", bytes=0, estimator="", tokens=0, budget=0, cut=cut, rules=RULES))
    assert [c.what for c in driver.state.changes if c.joins < here] == [
        "instructions AGENTS.md", "instructions web/AGENTS.md"
    ]  # fmt: skip
    (last,) = (m.text for m in messages_of(build(driver.state, driver.texts, view_of(driver.state))) if m.seq == here)
    assert "Rule 29." in last
    assert "Web 1." in last
    assert "Rule 27." not in last


def test_a_change_is_not_told_before_a_message_follows() -> None:
    driver = Driver(1)
    before = say(driver, "one")
    driver.day += 1
    driver.look()
    assert [m.text for m in messages_of(build(driver.state, driver.texts, View()))] == before
    assert driver.state.changes[0].joins == 0
    driver.look()
    assert len(driver.state.changes) == 1, "it is recorded once, also where the process died behind it"
    driver.add(UserMessage(text="two", attachments=()))
    assert driver.state.changes[0].joins == driver.state.last_seq


def test_a_log_from_before_dates_were_recorded() -> None:
    driver = Driver(1)
    now = Surroundings("2026-11-29", "/x", "[]")
    driver.state.created = "2026-11-29T16:20:00.000000Z"
    old = EnvironmentChanged(system_prompt="In /x.\nDate: 2026-11-29", tools="[]", instructions=())
    driver.state.environment = driver.state.surroundings = old
    assert changes(driver.state, TEXTS, now) == ()
    told = changes(driver.state, TEXTS, replace(now, date="2026-11-30", directory="/y"))
    assert [c.what for c in told] == ["date", "directory"]


def test_instructions_are_capped_and_say_so() -> None:
    small, large, last = capped([("a", "small"), ("b", "x" * 40_000), ("empty", " \n"), ("c", "late")])
    assert (small, last) == (Instruction("a", "small"), Instruction("c", "late")), "what is short is not crowded out"
    assert 30_000 < len(large.text) < MAX_INSTRUCTIONS_BYTES + 300
    assert "7,241 bytes left out" in large.text
    assert "read b when" in large.text
    two = capped([("a", "a" * 40_000), ("b", "b" * 20_000), ("c", "c" * 1_000)])
    assert [i.text.count(i.name) for i in two[1:]] == [15_888, 1_000], "the longest are cut to one length"
    many = capped([(f"d{n}/AGENTS.md", "x" * 5_000) for n in range(60)])
    assert sum(i.text.count("x") for i in many) <= MAX_INSTRUCTIONS_BYTES


def test_what_is_gone_is_told_in_one_order_whatever_the_seed_of_hashes() -> None:
    before = Surroundings("2026-11-29", "/x", "[]", capped([(f"d{n}/AGENTS.md", "x") for n in range(9)]))
    driver = Driver(1)
    driver.state.surroundings = EnvironmentChanged(
        system_prompt="s", tools="[]", date="2026-11-29", directory="/x",
        instructions=entries(before.instructions, texts=False),
    )  # fmt: skip
    told = changes(driver.state, TEXTS, replace(before, instructions=()))
    assert [c.what for c in told] == [f"instructions d{n}/AGENTS.md" for n in range(9)]


def test_an_environment_whose_blobs_are_gone_is_not_readable() -> None:
    whole = EnvironmentChanged(
        system_prompt="s", tools="[]", instructions=({"name": "AGENTS.md", "sha256": "0", "text": "t"},)
    )
    assert readable(whole, TEXTS)
    ref = BlobRef(blob="sha256:0", bytes=9, head="h", tail="t")
    assert not readable(whole.model_copy(update={"tools": ref}), TEXTS)
    lost = ({"name": "AGENTS.md", "sha256": "0", "text": ref.model_dump()},)
    assert not readable(whole.model_copy(update={"instructions": lost}), TEXTS)
    untold = ({"name": "AGENTS.md", "sha256": "0"},)
    assert not readable(whole.model_copy(update={"instructions": untold}), TEXTS), "only its hash was recorded"
    strange = ("old", {"path": "x"}, 5)
    assert readable(whole.model_copy(update={"instructions": strange}), TEXTS), "of another program"
