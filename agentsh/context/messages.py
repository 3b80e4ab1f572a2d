"""State to the messages of a request. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from agentsh.context.images import Sight, sight_of
from agentsh.context.items import command_message, encodable, fresh_ids, reply_messages, summary_message, user_message
from agentsh.context.jobs import SUBJECT
from agentsh.context.rendered import NotingTexts, RenderCache
from agentsh.context.state import AgentItem, CommandItem, Compacted, SessionState, TalkItem, Told, UserItem
from agentsh.context.surroundings import system_text
from agentsh.context.view import Block, View
from agentsh.ports.model import Message
from agentsh.ports.texts import Texts


def build(state: SessionState, texts: Texts, view: View, cache: RenderCache | None = None) -> tuple[Block, ...]:
    """Return the system message, the summary of the compaction that holds, and the conversation of `view`.

    Where the conversation starts inside a turn, what the user said in that turn is kept in front of it.
    cache: saves rendering again what has not changed; the result is the same without it.
    """
    return tuple(b for b in _blocks(state, texts, view, cache or RenderCache()) if b.messages)


def messages_of(blocks: Iterable[Block]) -> tuple[Message, ...]:
    """Return the messages of blocks, in order."""
    return tuple(message for block in blocks for message in block.messages)


def _blocks(state: SessionState, texts: Texts, view: View, cache: RenderCache) -> Iterator[Block]:
    noting = NotingTexts(texts)
    if state.environment is not None:
        system = system_text(state.environment, noting)
        system = encodable(system) if view.rules else system
        if system:
            yield Block("system", 0, (Message("system", system),), missing=_missing(noting))
    start = view.from_seq
    if state.compaction is not None:
        start = max(start, state.compaction.upto_seq + 1)
    items, sight = list(kept(state.talk, start)), sight_of(state, view)
    carried = _carried(state.changes, items)
    if state.compaction is not None:
        yield _summary(state.compaction, texts, carried)
        carried = ()
    seen: set[str] = set()
    for item in items:
        if isinstance(item, UserItem):
            if item.orphan and view.rules < 2:
                continue
            told = (*carried, *(c for c in state.changes if c.joins == item.seq))
            seen_with = sight if item.fact.attachments else None
            key = (view.rules, view.item_bytes, told, seen_with)
            yield cache.block(item.seq, False, key, partial(_user, item, texts, view, told, seen_with))
            carried = ()
        elif isinstance(item, CommandItem):
            yield cache.block(item.seq, False, (view.rules, view.item_bytes), partial(_command, item, texts, view))
        else:
            yield _reply(item, fresh_ids(item, seen), texts, view, cache, sight)


def _carried(changes: Sequence[Told], items: Sequence[TalkItem]) -> tuple[Told, ...]:
    """Return the changes whose message is not shown any more, the newest of each kind: they hold all the same."""
    shown = {item.seq for item in items}
    first = items[0].seq if items else 0
    gone = {c.what: c for c in changes if c.joins and c.joins not in shown and (c.joins < first or not first)}
    gone = {what: c for what, c in gone.items() if not what.startswith(SUBJECT)}  # news, and old by now
    return tuple(sorted(gone.values(), key=lambda c: c.seq))


def _summary(compaction: Compacted, texts: Texts, told: tuple[Told, ...]) -> Block:
    noting = NotingTexts(texts)
    message = summary_message(compaction, noting, told)
    return Block("summary", compaction.seq, (message,), missing=_missing(noting))


def _user(item: UserItem, texts: Texts, view: View, told: tuple[Told, ...], sight: Sight | None) -> Block:
    noting = NotingTexts(texts)
    message = user_message(item, noting, view, told, sight)
    return Block("user", item.seq, (message,), missing=_missing(noting))


def _command(item: CommandItem, texts: Texts, view: View) -> Block:
    noting = NotingTexts(texts)
    message = command_message(item, noting, view)
    return Block("user", item.seq, (message,), missing=_missing(noting))


def _reply(
    item: AgentItem, ids: tuple[str, ...], texts: Texts, view: View, cache: RenderCache, sight: Sight
) -> Block:
    pruned = bool(item.calls) and item.calls[0].seq < view.pruned_before
    # A call is added, and a result is, but neither is ever changed.
    answered = tuple((c.result is not None, c.seq < view.pruned_before) for c in item.calls)
    seen_with = sight if any(c.result is not None and c.result.images for c in item.calls) else None

    def make() -> Block:
        noting = NotingTexts(texts)
        messages = tuple(reply_messages(item, ids, noting, view, seen_with))
        return Block("reply", item.seq, messages, pruned, _missing(noting))

    return cache.block(item.seq, pruned, (view.rules, view.item_bytes, ids, answered, seen_with), make)


def _missing(noting: NotingTexts) -> tuple[str, ...]:
    return tuple(sorted(noting.missing))


def kept(talk: list[TalkItem], from_seq: int) -> Iterator[TalkItem]:
    """Yield the items of the context, oldest first; a turn that is cut into keeps what the user said in it."""
    start = bisect_left(talk, from_seq, key=lambda item: item.seq)
    if start == len(talk):  # a cut beyond the end: only a damaged log says so
        start = next((n for n in reversed(range(len(talk))) if _opens(talk[n])), len(talk))
    if start < len(talk) and not _opens(talk[start]) and not _is_between(talk[start]):
        opener = next((n for n in reversed(range(start)) if _opens(talk[n])), start)
        yield from (item for item in talk[opener:start] if isinstance(item, UserItem))
    yield from talk[start:]


def _opens(item: TalkItem) -> bool:
    return isinstance(item, UserItem) and item.opens_turn


def _is_between(item: TalkItem) -> bool:
    return isinstance(item, CommandItem) and item.between
