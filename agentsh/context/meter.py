"""What is known of the tokens of a session's requests, folded from its log, so that nothing is counted twice. Pure.

Each reply reports the tokens of the whole request before it. So the tokens by which two requests differ are known, to
the token and for any tokeniser, and only what was not sent yet is estimated. Where nothing was reported, what
`context_built` recorded serves. What was reported for estimated parts corrects later estimates.
"""

from agentsh.base.light import dataclass, field
from agentsh.events.base import Usage
from agentsh.events.turn import ContextBuilt

MAX_MARKS = 256
"""Kept of one context; beyond it every second one goes: two stretches become one of the same sum."""
BELIEVED = (0.2, 5.0)
"""A report outside these shares of what was estimated counts as wrong: some servers leave out what is cached."""
ENOUGH_HIGHER = 200
"""Estimated tokens behind a correction upwards, which is on the safe side."""
ENOUGH_LOWER = 4_000
"""Estimated tokens behind a correction downwards."""
FORGET_AT = 60_000
"""Estimated tokens of evidence, above which it is halved: newer replies tell more about the next."""
LOWER_MARGIN = 1.05
"""A correction downwards stays above what was reported by this factor."""
MOST, LEAST = 4.0, 0.5
"""Of a correction."""
MAX_ESTIMATORS = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """The context had so many tokens at event `seq`, with all items before it. reported: by the provider."""

    seq: int
    tokens: int
    reported: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A request on its way.

    counted: the part of its tokens that was known before. raw: the rest as estimated; 0 where that teaches nothing.
    """

    seq: int
    tokens: int
    counted: int
    raw: int
    estimator: str


@dataclass(slots=True)
class Meter:
    """See the module.

    marks: of the context as it is now, oldest first, growing; empty where nothing is known of it.
    evidence: by estimator: tokens estimated, and tokens that the provider reported for the same text.
    newest: what the provider reported of the newest request that it reported on. replaced: the marks before the
    newest compaction, for its undo.
    """

    marks: list[Mark] = field(default_factory=list)
    asked: Asked | None = None
    evidence: dict[str, tuple[int, int]] = field(default_factory=dict)
    newest: Usage | None = None
    replaced: list[Mark] = field(default_factory=list)

    def correction(self, estimator: str) -> float:
        """Return what an estimate is multiplied by. 1 without evidence; below 1 only with much of it."""
        estimated, reported = self.evidence.get(estimator, (0, 0))
        if estimated < ENOUGH_HIGHER:
            return 1.0
        ratio = reported / estimated
        if ratio >= 1:
            return min(ratio, MOST)
        return 1.0 if estimated < ENOUGH_LOWER else min(max(ratio * LOWER_MARGIN, LEAST), 1.0)

    def built(self, seq: int, fact: ContextBuilt) -> None:
        """A request is about to be sent."""
        raw = max(fact.tokens - fact.counted, 0) if fact.raw is None else fact.raw
        if fact.cut is not None or (self.marks and not self.marks[-1].reported):
            raw = 0  # what was known was shared out or estimated itself: nothing to hold a report against
        if fact.cut is not None:
            self.marks.clear()
        self.asked = Asked(seq, fact.tokens, fact.counted, raw, fact.estimator)
        self._mark(Mark(seq, fact.tokens, reported=False))

    def replied(self, usage: Usage | None, built_seq: int | None) -> None:
        """The reply to the request at `built_seq` is there."""
        asked, self.asked = self.asked, None
        if usage is None or asked is None or asked.seq != built_seq or usage.prompt <= 0:
            return
        self.newest = usage
        if BELIEVED[0] * asked.tokens <= usage.prompt <= BELIEVED[1] * asked.tokens:
            self._learn(asked, usage.prompt)
            self._report(asked.seq, usage.prompt)

    def refused(self, tokens: int, built_seq: int | None) -> None:
        """The provider refused the request at `built_seq`, and said or showed that it has so many tokens."""
        if self.asked is not None and self.asked.seq == built_seq:
            self._report(self.asked.seq, tokens)

    def compacted(self, seq: int, tokens_after: int | None) -> None:
        """A summary stands for a part of the context from event `seq` on."""
        self.replaced, self.marks = self.marks, []
        if tokens_after:
            self._mark(Mark(seq, tokens_after, reported=False))

    def restored(self) -> None:
        """The newest compaction was taken back: what came after it was not counted with what came before."""
        self.marks, self.replaced = self.replaced, []

    def grown(self, seq: int) -> None:
        """The item at event `seq` became more. Where it was counted already (damaged logs), that holds no more."""
        if self.marks and seq < self.marks[-1].seq:
            self.changed()

    def changed(self) -> None:
        """The context is another than the one that was counted."""
        self.marks, self.replaced = [], []

    def another_model(self) -> None:
        """Another tokeniser counts from here on."""
        self.changed()
        self.evidence.clear()

    def _report(self, seq: int, tokens: int) -> None:
        """Put a reported mark in the place of the estimated ones since the last reported."""
        while self.marks and not self.marks[-1].reported:
            self.marks.pop()
        self._mark(Mark(seq, tokens, reported=True))

    def _mark(self, mark: Mark) -> None:
        if mark.tokens <= 0:
            return
        if self.marks and (mark.tokens < self.marks[-1].tokens or mark.seq <= self.marks[-1].seq):
            self.marks.clear()  # counted otherwise than before: begin anew
        self.marks.append(mark)
        if len(self.marks) > MAX_MARKS:
            del self.marks[-2:0:-2]

    def _learn(self, asked: Asked, prompt: int) -> None:
        reported = prompt - asked.counted
        # The first request is mostly schemas of tools, which providers write down in their own way: what it teaches
        # is taken only where it says that estimates are too low.
        if asked.raw <= 0 or reported < 0 or (asked.counted == 0 and reported < asked.raw):
            return
        if asked.estimator not in self.evidence and len(self.evidence) >= MAX_ESTIMATORS:
            self.evidence.clear()
        estimated, before = self.evidence.get(asked.estimator, (0, 0))
        estimated, reported = estimated + asked.raw, before + reported
        if estimated > FORGET_AT:
            estimated, reported = estimated // 2, reported // 2
        self.evidence[asked.estimator] = estimated, reported
