"""State to the messages of a request. Pure; every call gets exactly one result, whatever the log lacks."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator

from agentsh.base.text import middle_cut
from agentsh.context.state import AgentItem, CallState, SessionState, TalkItem, UserItem
from agentsh.events.turn import Attachment
from agentsh.ports.model import Call, Message
from agentsh.ports.texts import Texts

NO_RESULT = "No result was recorded for this call; whether it had effects is not known."


_NAME = re.compile(r"[^a-zA-Z0-9_-]")
MAX_NAME_CHARS = 64
"""Of function names, as OpenAI documents them: letters, digits, underscores and dashes."""
MAX_ID_CHARS = 40
"""Of call ids: the shortest limit that a provider of this wire is known to have."""


MAX_ARGUMENTS_BYTES = 30_000
"""Of one call: 10,000 tokens by the estimate of three bytes each."""
SHORTEST_CUT_BYTES = 100


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def is_json_object(text: str) -> bool:
    """Tell whether `text` is a JSON object, as providers demand of tool arguments. NaN and Infinity are none."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def is_json_list(text: str) -> bool:
    """Tell whether `text` is a JSON list."""
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def is_name(text: str) -> bool:
    """Tell whether `text` may name a function."""
    return 0 < len(text) <= MAX_NAME_CHARS and _NAME.search(text) is None


def encodable(text: str) -> str:
    """Return `text` with lone surrogates, which have no UTF-8 form, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def build(state: SessionState, texts: Texts, *, from_seq: int) -> tuple[Message, ...]:
    """Return the system message and the conversation from event `from_seq` on.

    Where `from_seq` lies inside a turn, the user message of that turn is kept in front of it.
    """
    messages: list[Message] = []
    if state.environment is not None:
        system = texts.text(state.environment.system_prompt)
        if system:
            messages.append(Message("system", system))
    seen: set[str] = set()
    for item in kept(state.talk, from_seq):
        if isinstance(item, UserItem):
            messages.append(Message("user", user_text(item, texts), seq=item.seq))
        else:
            messages.extend(_reply(item, texts, seen))
    return tuple(messages)


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


def user_text(item: UserItem, texts: Texts) -> str:
    """Return what the model is sent for a user message: its text, then its attachments, each under its name."""
    parts = [texts.text(item.fact.text)]
    parts += [_attachment(a, texts) for a in item.fact.attachments]
    return encodable("\n\n".join(p for p in parts if p)) or "(empty message)"


def _attachment(attachment: Attachment, texts: Texts) -> str:
    if not attachment.media_type.startswith("text/"):
        return f"[{attachment.name}: {attachment.media_type}, not shown to the model]"
    return f'<file name="{attachment.name}">\n{texts.text(attachment.content)}\n</file>'


def _reply(item: AgentItem, texts: Texts, seen: set[str]) -> Iterator[Message]:
    text = encodable(texts.text(item.fact.text))
    if not text and not item.calls:
        return
    ids = [_fresh_id(call, seen) for call in item.calls]
    calls = tuple(_call(call, id_, texts) for call, id_ in zip(item.calls, ids, strict=True))
    yield Message("assistant", text, calls=calls, seq=item.seq)
    for call, id_ in zip(item.calls, ids, strict=True):
        result = encodable(texts.text(call.result.for_model)) if call.result is not None else NO_RESULT
        yield Message("tool", result or "(no output)", call_id=id_, seq=call.seq)


def _fresh_id(call: CallState, seen: set[str]) -> str:
    """Models repeat ids, or send none, or strange ones; in a request each is there once and plain."""
    id_ = call.call
    if len(id_) > MAX_ID_CHARS or not id_ or _NAME.search(id_):
        id_ = f"call_{call.seq}"
    plain, n = id_, call.seq
    while id_ in seen:
        id_, n = f"{plain[:24]}_{n}", n + 1
    seen.add(id_)
    return id_


def _call(call: CallState, id_: str, texts: Texts) -> Call:
    arguments = encodable(texts.text(call.arguments))
    name = call.name if is_name(call.name) else _NAME.sub("_", call.name)[:MAX_NAME_CHARS] or "unnamed"
    return Call(id_, name, _shortened(arguments) if is_json_object(arguments) else "{}")


def _shortened(arguments: str) -> str:
    """Return the arguments of a call with the middle of their long texts cut, where they would crowd out the rest.

    The call was answered long ago; the whole is in the log, and a file that was written is in the workspace.
    """
    if len(arguments) <= MAX_ARGUMENTS_BYTES:
        return arguments
    value = json.loads(arguments)
    room = MAX_ARGUMENTS_BYTES // 2
    while len(text := json.dumps(_cut(value, room), ensure_ascii=False, separators=(",", ":"))) > MAX_ARGUMENTS_BYTES:
        room //= 2
        if room < SHORTEST_CUT_BYTES:
            return "{}"
    return text


def _cut(value: object, max_bytes: int) -> object:
    if isinstance(value, str):
        return middle_cut(value, max_bytes)
    if isinstance(value, dict):
        return {key: _cut(inner, max_bytes) for key, inner in value.items()}
    return [_cut(inner, max_bytes) for inner in value] if isinstance(value, list) else value
