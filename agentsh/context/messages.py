"""State to the messages of a request. Pure; every call gets exactly one result, whatever the log lacks."""

import json
from collections.abc import Iterator

from agentsh.context.state import AgentItem, CallState, SessionState, TalkItem, UserItem
from agentsh.ports.model import Call, Message
from agentsh.ports.texts import Texts

NO_RESULT = "No result was recorded for this call; whether it had effects is not known."


def is_json_object(text: str) -> bool:
    """Tell whether `text` is a JSON object, as providers demand of tool arguments."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


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
    """Yield the items of the context, oldest first."""
    start = next((n for n, item in enumerate(talk) if item.seq >= from_seq), len(talk))
    if start < len(talk) and start and isinstance(talk[start], AgentItem):
        prompt = next((i for i in reversed(talk[:start]) if isinstance(i, UserItem)), None)
        if prompt is not None:
            yield prompt
    for n in range(start, len(talk)):
        yield talk[n]


def user_text(item: UserItem, texts: Texts) -> str:
    """Return what the model is sent for a user message: its text, then its attachments, each under its name."""
    parts = [texts.text(item.fact.text)]
    parts += [f'<file name="{a.name}">\n{texts.text(a.content)}\n</file>' for a in item.fact.attachments]
    return "\n\n".join(p for p in parts if p) or "(empty message)"


def _reply(item: AgentItem, texts: Texts, seen: set[str]) -> Iterator[Message]:
    text = texts.text(item.fact.text)
    if not text and not item.calls:
        return
    ids = [_fresh_id(call, seen) for call in item.calls]
    calls = tuple(_call(call, id_, texts) for call, id_ in zip(item.calls, ids, strict=True))
    yield Message("assistant", text, calls=calls, seq=item.seq)
    for call, id_ in zip(item.calls, ids, strict=True):
        result = texts.text(call.result.for_model) if call.result is not None else NO_RESULT
        yield Message("tool", result or "(no output)", call_id=id_, seq=call.seq)


def _fresh_id(call: CallState, seen: set[str]) -> str:
    """Models repeat ids, or send none; in a request each must be there once."""
    id_ = call.call if call.call and call.call not in seen else f"{call.call or 'call'}_{call.seq}"
    seen.add(id_)
    return id_


def _call(call: CallState, id_: str, texts: Texts) -> Call:
    arguments = texts.text(call.arguments)
    return Call(id_, call.name, arguments if is_json_object(arguments) else "{}")
