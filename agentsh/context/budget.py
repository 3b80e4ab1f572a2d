"""How much of the conversation a request holds. Pure and deterministic.

The context only grows at its end until it passes the high-water mark. Then one recorded decision takes it back, so
that a provider's prompt cache is lost once and not at every step: older images are left out and old outputs of tools
pruned where that is enough, else older turns are compacted or cut.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

from agentsh.base.errors import ContextOverflow
from agentsh.context.images import KEPT, images_of, newest, newest_within, too_many
from agentsh.context.marks import Marks
from agentsh.context.messages import build, messages_of
from agentsh.context.rendered import RenderCache
from agentsh.context.state import AgentItem, SessionState, UserItem
from agentsh.context.view import Block, View, view_of
from agentsh.context.weights import Weighed, Weights
from agentsh.events.turn import Cut
from agentsh.ports.model import Message
from agentsh.ports.texts import Texts
from agentsh.ports.tokens import TokenCounter

MESSAGE_TOKENS = 4
"""Estimate of what the frame of one message costs (roles and separators), as OpenAI's cookbook gives it: 3 to 4."""
WHOLE_STEPS = (8, 4)
"""Newest steps whose results pruning leaves whole, what the model is working with right now; fewer if need be."""

Kind = Literal["keep", "prune", "compact", "cut"]


class Decision(NamedTuple):
    """What is done about the size of a request. `compact`: the engine is to compact first and to ask again."""

    kind: Kind
    view: View
    reason: str = ""


class Prepared(NamedTuple):
    """A request that fits: its blocks in order with the tokens of each, by the counter that was used.

    tokens: the whole, with fixed_tokens for what stands beside the messages (tools). cut: to be recorded by
    context_built where the view is another than before. kind: what was decided. counted, raw: see `Weighed`.
    """

    blocks: tuple[Block, ...]
    block_tokens: tuple[int, ...]
    tokens: int
    fixed_tokens: int
    view: View
    kind: Kind
    cut: Cut | None
    counted: int = 0
    raw: int = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages in order."""
        return messages_of(self.blocks)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the blobs that could not be read."""
        return tuple(sorted({ref for block in self.blocks for ref in block.missing}))


def count_message(message: Message, counter: TokenCounter) -> int:
    """Return the estimate for one message, its calls and images included."""
    calls = sum(counter.count(c.name) + counter.count(c.arguments) for c in message.calls)
    return MESSAGE_TOKENS + counter.count(message.text) + calls + sum(image.tokens for image in message.images)


class Scale:
    """Weighs what a view of a state would cost: by what is known of earlier requests, else by the counter.

    fixed_tokens: the counter's of what stands beside the messages (tools). cache: of the session, so that what was
    rendered and counted for earlier requests is not again. weights: of the state that this one might become of.
    """

    def __init__(
        self,
        state: SessionState,
        texts: Texts,
        counter: TokenCounter,
        *,
        fixed_tokens: int = 0,
        cache: RenderCache | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.state = state
        self._cache = cache or RenderCache()
        self._fixed = fixed_tokens
        self._texts = texts
        self._counter = counter
        self._weights = weights
        self._blocks: dict[View, tuple[Block, ...]] = {}
        self._weighed: dict[View, Weighed] = {}

    def with_state(self, state: SessionState) -> "Scale":
        """Return a scale for what the state of this one might become; what is known of this one holds there too."""
        return Scale(
            state, self._texts, self._counter, fixed_tokens=self._fixed, cache=self._cache, weights=self._known()
        )

    @property
    def fixed_tokens(self) -> int:
        """Return the tokens of what stands beside the messages."""
        return self.whole(view_of(self.state)).fixed

    def weigh(self, view: View) -> tuple[tuple[Block, ...], tuple[int, ...]]:
        """Return the blocks of a view, and the tokens of each."""
        return self._shown(view), self.whole(view).blocks

    def total(self, view: View) -> int:
        """Return the tokens of the whole request."""
        return self.whole(view).total

    def whole(self, view: View) -> Weighed:
        """Return all that is known and estimated of a view."""
        if view not in self._weighed:
            self._weighed[view] = self._known().weigh(self._shown(view))
        return self._weighed[view]

    def _known(self) -> Weights:
        if self._weights is None:
            now = self._shown(view_of(self.state))
            self._weights = Weights(self.state, now, self._fixed, self._count, self._counter.name)
        return self._weights

    def _shown(self, view: View) -> tuple[Block, ...]:
        if view not in self._blocks:
            self._blocks[view] = build(self.state, self._texts, view, self._cache)
        return self._blocks[view]

    def _count(self, block: Block) -> int:
        return self._cache.tokens(block, self._counter.name, self._uncached)

    def _uncached(self, block: Block) -> int:
        return sum(count_message(m, self._counter) for m in block.messages)


def fit(
    state: SessionState,
    texts: Texts,
    counter: TokenCounter,
    *,
    marks: Marks,
    fixed_tokens: int = 0,
    cache: RenderCache | None = None,
) -> Prepared:
    """Return the next request, with whatever it takes to fit but compaction. fixed_tokens, cache: see `Scale`.

    Raises:
        ContextOverflow: not even the newest step fits the budget.
    """
    scale = Scale(state, texts, counter, fixed_tokens=fixed_tokens, cache=cache)
    return prepared(scale, decide(scale, marks))


def floor_tokens(state: SessionState, texts: Texts, counter: TokenCounter, *, fixed_tokens: int = 0) -> int:
    """Return what every request of a session starts with: system prompt, instructions, tools; no message fits below.

    fixed_tokens: see `Scale`.
    """
    blocks = build(state, texts, view_of(state))
    start = (message for block in blocks if block.kind == "system" for message in block.messages)
    return fixed_tokens + sum(count_message(message, counter) for message in start)


def prepared(scale: Scale, decision: Decision) -> Prepared:
    """Return the request of a decision."""
    view, before = decision.view, view_of(scale.state)
    blocks, _ = scale.weigh(view)
    whole = scale.whole(view)
    cut = None
    if view != before:
        more = {}
        if view.pruned_before > before.pruned_before:
            more["pruned_before"] = view.pruned_before
        if view.images_from > before.images_from:
            more["images_from"] = view.images_from
        cut = Cut(from_seq=view.from_seq, reason=decision.reason, **more)
    return Prepared(
        blocks, whole.blocks, whole.total, whole.fixed, view, decision.kind, cut, whole.counted, whole.raw
    )


def decide(scale: Scale, marks: Marks, *, can_compact: bool = False) -> Decision:
    """Return what is done about the size of the next request: the one place where that is decided.

    can_compact: whether `compact` is an answer; without it older turns are cut instead.

    Raises:
        ContextOverflow: not even the newest step fits the budget.
    """
    before = view_of(scale.state)
    now = _within_limits(scale, before)
    total = scale.total(now)
    if total <= marks.high_tokens:
        return Decision("keep", now) if now == before else Decision("prune", now, "too many images for one request")
    plain = _fewer_images(scale, now, KEPT)
    if plain != now and scale.total(plain) <= marks.enough_tokens:
        return Decision("prune", plain, "high-water mark: older images left out")
    for steps in WHOLE_STEPS:
        pruned = _pruned(scale.state, plain, steps)
        if pruned != now and scale.total(pruned) <= marks.enough_tokens:
            return Decision("prune", pruned, "high-water mark: old outputs of tools pruned")
    if can_compact:
        return Decision("compact", now)
    for view in _cuts(scale, _pruned(scale.state, plain, WHOLE_STEPS[0]), marks):
        rest = scale.total(view)
        if rest < total and rest <= marks.budget_tokens:
            return Decision("cut" if view.from_seq > now.from_seq else "prune", view, "high-water mark")
    if total <= marks.budget_tokens:
        return Decision("keep", now) if now == before else Decision("prune", now, "too many images for one request")
    least = total
    for steps in (2, 1, 0):  # the newest steps alone are too much: better stubs than no way on
        for view in _cuts(scale, _pruned(scale.state, _fewer_images(scale, now, steps), steps), marks):
            least = min(least, scale.total(view))
            if least <= marks.budget_tokens:
                kind: Kind = "cut" if view.from_seq > now.from_seq else "prune"
                return Decision(kind, view, f"over budget: outputs pruned but for the newest {steps} steps")
    raise ContextOverflow(
        f"the newest message needs about {least:,} tokens with the tools and instructions before it; the budget is "
        f"{marks.budget_tokens:,}",
        hint="shorten the message or AGENTS.md, raise the budget (--budget N), or take a larger model (/model NAME)",
    )


def _within_limits(scale: Scale, view: View) -> View:
    """Return `view` with no more images than providers take in one request."""
    images = images_of(messages_of(scale.weigh(view)[0]))
    return replace(view, images_from=newest_within(images)) if too_many(images) else view


def _fewer_images(scale: Scale, view: View, count: int) -> View:
    """Return `view` with only the newest images, where there are more."""
    images = images_of(messages_of(scale.weigh(view)[0]))
    return replace(view, images_from=newest(images, count)) if len(images) > count else view


def _pruned(state: SessionState, view: View, whole_steps: int) -> View:
    """Return `view` with the results of all but the newest steps as stubs."""
    steps = [item for item in state.talk if isinstance(item, AgentItem) and item.calls]
    before = steps[-whole_steps].calls[0].seq if 0 < whole_steps <= len(steps) else 0
    if whole_steps == 0 and steps:
        before = steps[-1].calls[-1].seq + 1
    return replace(view, pruned_before=max(view.pruned_before, before))


def _cuts(scale: Scale, view: View, marks: Marks) -> Iterator[View]:
    """Yield what could be shown instead, best first: from a turn or else a reply on that frees enough, the last."""
    blocks, tokens = scale.weigh(view)
    surplus = sum(tokens) + scale.fixed_tokens - marks.low_tokens
    if surplus <= 0:
        yield view
    openers = {item.seq for item in scale.state.talk if isinstance(item, UserItem) and item.opens_turn}
    newest = max(openers, default=0)
    gone, turns, replies = 0, [], []
    for block, count in zip(blocks, tokens, strict=True):
        if block.kind in ("system", "summary"):
            continue
        if block.seq > view.from_seq and block.seq in openers:
            turns.append((block.seq, gone))
        elif block.seq > view.from_seq and block.kind == "reply":
            replies.append((block.seq, gone))
        gone += 0 if block.kind == "user" and block.seq == newest else count
    for starts in (turns, replies):
        yield from (replace(view, from_seq=seq) for seq, freed in starts if freed >= surplus)
    yield from (replace(view, from_seq=seq) for seq, _ in [*turns[-1:], *replies[-1:]])
    yield view
