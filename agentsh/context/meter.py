"""What the provider has counted of this session, folded from its log, so that nothing is counted twice. Pure.

Each reply reports the tokens of the whole request before it. So the tokens of what two requests differ by are known,
to the token and for any tokeniser, and only what was not sent yet is estimated. What was reported for estimated parts
then corrects later estimates.
"""

from dataclasses import dataclass, field

from agentsh.events.base import Usage
from agentsh.events.turn import ContextBuilt

MAX_MARKS = 256
"""Kept of one context; beyond it every second one goes: two stretches become one of the same sum."""
BELIEVED = (0.2, 5.0)
"""A report outside these shares of what was estimated counts as wrong: some servers report only what is not cached."""
ENOUGH_HIGHER = 200
"""Estimated tokens behind a correction upwards, which is on the safe side."""
ENOUGH_LOWER = 4_000
"""Estimated tokens behind a correction downwards."""
FORGET_AT = 60_000
"""Estimated tokens of evidence, above which it is halved: newer replies tell more about the next."""
LOWER_MARGIN = 1.05
"""A correction downwards stays above what was reported by this factor."""
MOST = 4.0
LEAST = 0.5


@dataclass(frozen=True, slots=True)
class Mark:
    """The request at event `seq` had so many tokens, by the provider's count; it held all items before `seq`."""

    seq: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request on its way.

    counted: the part of its tokens that the provider had reported. raw: the rest as estimated; 0 where that teaches
    nothing.
    """

    seq: int
    tokens: int
    counted: int
    raw: int
    estimator: str


@dataclass(slots=True)
class Meter:
    """See the module.

    marks: of the context as it is now, oldest first; empty after a change that is not an addition.
    evidence: by estimator: tokens estimated, and tokens that the provider reported for the same text.
    newest: what the provider reported of the newest request that it reported on, and after which event it was built.
    """

    marks: list[Mark] = field(default_factory=list)
    asked: Asked | None = None
    evidence: dict[str, tuple[int, int]] = field(default_factory=dict)
    newest: Usage | None = None
    newest_seq: int = 0

    @property
    def known(self) -> Mark | None:
        """Return the newest mark: what it holds is not counted again."""
        return self.marks[-1] if self.marks else None

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
        if fact.cut is not None:
            self.marks.clear()
            raw = 0  # what is left of known parts was shared out: no estimate to learn from
        self.asked = Asked(seq, fact.tokens, fact.counted, raw, fact.estimator)

    def replied(self, usage: Usage | None, built_seq: int | None) -> None:
        """The reply to the request at `built_seq` is there."""
        asked, self.asked = self.asked, None
        if usage is None or asked is None or asked.seq != built_seq or usage.prompt <= 0:
            return
        self.newest, self.newest_seq = usage, asked.seq
        if not BELIEVED[0] * asked.tokens <= usage.prompt <= BELIEVED[1] * max(asked.tokens, 1):
            self.marks.clear()
            return
        self._learn(asked, usage.prompt)
        if self.marks and usage.prompt < self.marks[-1].tokens:  # counted otherwise than before: begin anew
            self.marks.clear()
        self.marks.append(Mark(asked.seq, usage.prompt))
        if len(self.marks) > MAX_MARKS:
            del self.marks[-2:0:-2]

    def changed(self) -> None:
        """The context is another than the one that was counted: a compaction, a rewind, other tools."""
        self.marks.clear()

    def another_model(self) -> None:
        """Another tokeniser counts from here on."""
        self.marks.clear()
        self.evidence.clear()

    def _learn(self, asked: Asked, prompt: int) -> None:
        reported = prompt - asked.counted
        # The first request is mostly schemas of tools, which providers write down in their own way: what it teaches
        # is taken only where it says that estimates are too low.
        if asked.raw <= 0 or reported < 0 or (asked.counted == 0 and reported < asked.raw):
            return
        estimated, before = self.evidence.get(asked.estimator, (0, 0))
        estimated, reported = estimated + asked.raw, before + reported
        if estimated > FORGET_AT:
            estimated, reported = estimated // 2, reported // 2
        self.evidence[asked.estimator] = estimated, reported
