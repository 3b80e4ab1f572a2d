"""State to the messages of a request. Pure."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from agentsh.context.items import fresh_ids, reply_messages, summary_message, user_message
from agentsh.context.state import SessionState, TalkItem, UserItem
from agentsh.context.view import Block, View
from agentsh.ports.model import Message
from agentsh.ports.texts import Texts


def build(state: SessionState, texts: Texts, view: View) -> tuple[Block, ...]:
    """Return the system message, the summary of the compaction that holds, and the conversation of `view`.

    Where the conversation starts inside a turn, what the user said in that turn is kept in front of it.
    """
    return tuple(_blocks(state, texts, view))


def messages_of(blocks: Iterable[Block]) -> tuple[Message, ...]:
    """Return the messages of blocks, in order."""
    return tuple(message for block in blocks for message in block.messages)


def _blocks(state: SessionState, texts: Texts, view: View) -> Iterator[Block]:
    if state.environment is not None:
        system = texts.text(state.environment.system_prompt)
        if system:
            yield Block("system", 0, (Message("system", system),))
    start = view.from_seq
    if state.compaction is not None:
        yield Block("summary", state.compaction.seq, (summary_message(state.compaction, texts),))
        start = max(start, state.compaction.upto_seq + 1)
    seen: set[str] = set()
    for item in kept(state.talk, start):
        if isinstance(item, UserItem):
            yield Block("user", item.seq, (user_message(item, texts, view),))
            continue
        messages = tuple(reply_messages(item, fresh_ids(item, seen), texts, view))
        if messages:
            yield Block("reply", item.seq, messages)


def kept(talk: list[TalkItem], from_seq: int) -> Iterator[TalkItem]:
    """Yield the items of the context, oldest first; a turn that is cut into keeps what the user said in it."""
    start = bisect_left(talk, from_seq, key=lambda item: item.seq)
    if start == len(talk):  # a cut beyond the end: only a damaged log says so
        start = next((n for n in reversed(range(len(talk))) if _opens(talk[n])), len(talk))
    if start < len(talk) and not _opens(talk[start]):
        opener = next((n for n in reversed(range(start)) if _opens(talk[n])), start)
        yield from (item for item in talk[opener:start] if isinstance(item, UserItem))
    yield from talk[start:]


def _opens(item: TalkItem) -> bool:
    return isinstance(item, UserItem) and item.opens_turn
