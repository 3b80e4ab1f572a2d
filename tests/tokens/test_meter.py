"""What the provider said is the truth, what was counted is not counted again, and estimates learn."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh.context.fold import fold
from agentsh.context.meter import MAX_MARKS, Meter
from agentsh.context.size import size_of
from agentsh.events.base import Usage as Reported
from agentsh.events.compaction import Compaction, CompactionUndone
from agentsh.events.session import EnvironmentChanged, ModelChanged
from agentsh.events.turn import ContextBuilt
from tests.tokens.conversation import FIXED, Conversation, Counting, bytes_by

WORDS = ("the", "file", "holds", "a", "hundred", "lines", "of", "plain", "words", "that", "say", "nothing", "useful")


def prose(seed: int, words: int = 120) -> str:
    pick = random.Random(seed)
    return " ".join(pick.choice(WORDS) for _ in range(words))


def talk(truth: float | None, steps: int = 12, **more: int) -> Conversation:
    c = Conversation(bytes_by(truth) if truth else None, **more)
    c.say("Look at everything.")
    for n in range(steps):
        c.step(prose(n, 20), prose(n + 1_000), completion=len(prose(n, 20)) // 4)
    return c


def test_what_was_sent_counts_as_the_provider_said() -> None:
    c = talk(4.0)
    made = c.prepare()
    said = c.state.meter.newest
    assert said is not None
    reply = c.state.talk[-1].seq
    known = [t for b, t in zip(made.blocks, made.block_tokens, strict=True) if b.seq != reply]
    assert sum(known) + made.fixed_tokens == said.prompt, "to the token"
    assert made.counted == said.prompt + said.completion


def test_a_resume_counts_only_what_was_not_sent() -> None:
    c = talk(4.0, steps=40)
    c.say("And now this: " + prose(5_000))
    c.state = c.folded()
    c.counter = counting = Counting()
    made = c.prepare()
    newest = {m.text for b in made.blocks[-2:] for m in b.messages}
    asked = {t for t in counting.texts if len(t) > 30}
    assert asked <= newest, "texts that the provider has counted are not counted again"
    assert sum(map(len, counting.texts)) < sum(len(m.text) for m in made.messages) / 10


def test_without_reports_what_was_recorded_serves() -> None:
    """A server that reports no usage: the tokens of the newest context_built are not counted again either."""
    c = talk(None, steps=40)
    c.state = c.folded()
    c.counter = counting = Counting()
    made = c.prepare()
    assert sum(map(len, counting.texts)) < sum(len(m.text) for m in made.messages) / 10
    assert made.counted >= c.sent[-1].tokens
    fresh = Conversation(None)
    fresh.say("Look at everything.")
    for n in range(40):  # the same, never marked: all estimated
        fresh.step(prose(n, 20), prose(n + 1_000))
        fresh.state.meter = Meter()
    assert made.tokens == pytest.approx(fresh.prepare().tokens, rel=0.01)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), min_size=1, max_size=25),
    st.sampled_from([2.2, 3.3, 4.0, 5.5, None]),
    st.integers(900, 6_000),
)
@settings(deadline=None, max_examples=60)
def test_any_conversation(moves: list[tuple[int, int]], truth: float | None, budget: int) -> None:
    """Parts add up; replaying the log gives the same meter; the state never depends on the counter."""
    c = Conversation(bytes_by(truth) if truth else None, budget=budget + FIXED)
    c.say("begin")
    for kind, words in moves:
        if kind == 0:
            c.end()
            c.say(prose(words, words))
        elif kind == 1:
            c.step(prose(words, words), None, completion=words)
        else:
            c.step(prose(words, 5), prose(words, words), completion=5)
        made = c.prepare()
        assert made.tokens == sum(made.block_tokens) + made.fixed_tokens
        assert all(t >= 0 for t in made.block_tokens)
        assert made.tokens <= c.marks.budget_tokens
        assert 0 <= made.counted <= made.tokens
        meter = c.state.meter
        assert [m.tokens for m in meter.marks] == sorted(m.tokens for m in meter.marks)
        assert [m.seq for m in meter.marks] == sorted({m.seq for m in meter.marks})
    assert c.folded().meter == c.state.meter
    assert c.folded() == c.state


def test_marks_are_bounded_and_keep_their_sum() -> None:
    c = talk(4.0, steps=MAX_MARKS + 60)
    assert len(c.state.meter.marks) <= MAX_MARKS
    made, said = c.prepare(), c.state.meter.newest
    assert said is not None
    assert made.counted == said.prompt + said.completion


class TestCorrection:
    def test_an_estimate_that_is_too_low_is_corrected_at_once(self) -> None:
        c = talk(2.0, steps=4)
        assert c.state.meter.correction("~pieces") > 1.5
        c.say(prose(77, 500))
        made = c.prepare()
        seq = c.state.talk[-1].seq
        own = next(t for b, t in zip(made.blocks, made.block_tokens, strict=True) if b.seq == seq)
        assert own == pytest.approx(len(prose(77, 500)) / 2.0, rel=0.25)

    def test_one_that_is_too_high_only_after_much_evidence(self) -> None:
        few, many = talk(9.0, steps=5), talk(9.0, steps=60)
        assert few.state.meter.correction("~pieces") == 1.0
        assert many.state.meter.correction("~pieces") < 0.75
        estimated, reported = many.state.meter.evidence["~pieces"]
        assert many.state.meter.correction("~pieces") > reported / estimated, "it stays on the safe side"

    def test_no_evidence_no_change(self) -> None:
        assert Meter().correction("~pieces") == 1.0
        assert talk(None, steps=30).state.meter.evidence == {}

    def test_evidence_is_per_estimator_and_ends_with_the_model(self) -> None:
        c = talk(2.0, steps=6)
        assert c.state.meter.correction("o200k") == 1.0
        c.add(ModelChanged(model="another"))
        assert c.state.meter.correction("~pieces") == 1.0
        assert c.state.meter.marks == []

    def test_the_first_request_alone_lowers_nothing(self) -> None:
        """It is mostly tools, which providers write down shorter than we do."""
        c = Conversation(lambda made: made.tokens // 2)
        c.say("hello " + prose(1, 4_000))
        c.step("ok")
        assert c.state.meter.evidence == {}

    @pytest.mark.parametrize("wrong", [1, 10**9])
    def test_a_report_that_cannot_be_is_not_believed(self, wrong: int) -> None:
        """Some servers report only what was not cached, some report nonsense."""
        c = talk(4.0, steps=5)
        before = c.prepare().tokens
        c.truth = lambda made: wrong
        c.step("ok", prose(9))
        assert c.state.meter.evidence == talk(4.0, steps=5).state.meter.evidence
        assert before < c.prepare().tokens < before + 1_000

    def test_a_report_on_a_request_of_no_size_is_not_believed(self) -> None:
        """A damaged log: nothing to hold the report against."""
        meter = Meter()
        built = ContextBuilt(request_sha256="0", bytes=0, estimator="~", tokens=0, budget=0, cut=None)
        meter.built(2, built)
        meter.replied(Reported(prompt=1, cached=0, completion=1, reasoning=0), 2)
        assert meter.marks == []

    def test_reasoning_is_not_counted_into_the_context(self) -> None:
        c = talk(4.0, steps=3)
        before = c.prepare()
        c.step("short", completion=9_000, reasoning=8_996)
        assert c.prepare().tokens < before.tokens + 400
        c.step("short", completion=9_000)  # a server that does not tell reasoning apart
        assert c.prepare().tokens < before.tokens + 500


class TestChanges:
    def test_after_a_cut_the_rest_keeps_its_weight(self) -> None:
        c = talk(4.0, steps=20, budget=2_600)
        cuts = [f for f in c.sent if f.cut is not None]
        assert cuts
        assert all(f.tokens <= 2_600 for f in c.sent)
        at = c.sent.index(cuts[-1])
        assert c.sent[at].counted > 0.5 * c.sent[at].tokens, "what is left was shared out, not estimated"
        c.step("ok", completion=1)
        assert [m.reported for m in c.state.meter.marks][-1:] == [True]
        made, said = c.prepare(), c.state.meter.newest
        assert said is not None
        assert made.counted == said.prompt + said.completion

    def test_a_compaction_counts_as_it_was_recorded_and_its_undo_as_before(self) -> None:
        """G135: the meter is that of the new request."""
        c = talk(4.0, steps=10)
        c.end()
        before = c.prepare().tokens
        kept = list(c.state.meter.marks)
        upto = c.state.talk[6].seq
        seq = c.add(
            Compaction(
                from_seq=1, upto_seq=upto, summary="All is well.", by="user", made="mechanical", tokens_after=700,
                tokens_before=before, estimator="~pieces", budget=9, tries=0,
            )
        )  # fmt: skip
        assert size_of(c.state).tokens == 700
        assert not size_of(c.state).exact
        assert c.prepare().tokens == 700
        c.add(CompactionUndone(compaction=seq), seq)
        assert c.state.meter.marks == kept
        assert c.prepare().tokens == before

    def test_other_tools_or_another_system_prompt_are_counted_anew(self) -> None:
        c = talk(4.0, steps=4)
        c.add(EnvironmentChanged(system_prompt="Another.", tools="[]", instructions=()))
        assert c.state.meter.marks == []
        assert c.prepare().counted == 0

    def test_a_refused_request_is_known_by_what_was_said(self) -> None:
        from agentsh.events.model import WindowLearned

        c = talk(4.0, steps=4)
        c.say("more")
        seq, made = c.ask()
        c.add(WindowLearned(model="m", window=900, source="refusal", request_tokens=made.tokens * 2), seq)
        assert c.prepare().tokens == made.tokens * 2
        c.add(WindowLearned(model="m", window=900, source="refusal", request_tokens=9_999), 1)  # of no request
        assert c.prepare().tokens == made.tokens * 2


BUILT = st.builds(
    ContextBuilt,
    request_sha256=st.just("0"),
    bytes=st.just(1),
    estimator=st.sampled_from("abcdef"),
    tokens=st.integers(-5, 10**7),
    budget=st.just(1),
    cut=st.none(),
    counted=st.integers(-5, 10**7),
    raw=st.none() | st.integers(-5, 10**7),
)


@given(st.lists(BUILT, max_size=30), st.lists(st.integers(-5, 10**7), max_size=30))
def test_whatever_a_log_says_folds(builts: list[ContextBuilt], prompts: list[int]) -> None:
    meter = Meter()
    for seq, built in enumerate(builts, 1):
        meter.built(seq * 2, built)
        if prompts:
            prompt = prompts[seq % len(prompts)]
            meter.replied(Reported(prompt=prompt, cached=0, completion=0, reasoning=0), seq * 2)
        assert 0.5 <= meter.correction(built.estimator) <= 4.0
        assert len(meter.evidence) <= 4
        assert [m.tokens for m in meter.marks] == sorted(m.tokens for m in meter.marks)
    assert fold([]).meter == Meter()


class TestSize:
    def test_it_is_the_same_right_after_a_resume(self) -> None:
        """D82: not 0, and what a fresh count says."""
        c = talk(4.0, steps=6)
        c.step("done", completion=3)
        c.end()
        shown = size_of(c.state)
        assert shown == size_of(c.folded())
        assert shown.exact
        assert shown.tokens == c.prepare().tokens
        assert str(shown) == f"{shown.tokens:,}"

    def test_it_is_marked_where_it_is_estimated(self) -> None:
        c = talk(4.0, steps=2)
        assert str(size_of(c.state)).startswith("~"), "a result that was not sent yet"
        assert size_of(c.state).tokens == pytest.approx(c.prepare().tokens, rel=0.3)
        silent = talk(None, steps=6)
        silent.step("done")
        assert not size_of(silent.state).exact
        assert size_of(silent.state).tokens == pytest.approx(silent.prepare().tokens, rel=0.05)
        silent.add(ModelChanged(model="another"))
        assert size_of(silent.state).tokens > 0, "never 0 where there is something"

    def test_an_empty_session_has_none(self) -> None:
        assert size_of(Conversation(None).state).tokens == 0
