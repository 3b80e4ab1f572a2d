"""One item of the conversation to messages. Pure; every call gets exactly one result, whatever the log lacks."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isfinite

from agentsh.base.pattern import later
from agentsh.base.text import head_bytes, middle_cut
from agentsh.context.images import RESULTS, Sight, is_image
from agentsh.context.state import AgentItem, CallState, CommandItem, Compacted, Told, UserItem
from agentsh.context.view import View
from agentsh.events.base import BlobRef, Text
from agentsh.events.turn import Attachment
from agentsh.events.user import UserCommandEnded
from agentsh.ports.model import Call, Image, Message
from agentsh.ports.texts import Texts

NO_RESULT = "No result was recorded for this call; whether it had effects is not known."
ORPHAN = "[The log has lost a call of a tool. This was its result:]\n{text}"
SUMMARY = "<summary>\nWhat came before in this session, in short; the whole is in its log.\n\n{text}\n</summary>"
COMMAND = "<user_command>\nThe user ran this in the workspace.\n\n$ {command}\n{ending}\n{output}\n</user_command>"
CHANGES = "<changes>\nWhat is no longer as it was told before; it holds from here on.\n\n{text}\n</changes>"

_NAME = later(r"[^a-zA-Z0-9_-]")
MAX_NAME_CHARS = 64
"""Of function names, as OpenAI documents them: letters, digits, underscores and dashes."""
MAX_ID_CHARS = 40
"""Of call ids: the shortest limit that a provider of this wire is known to have."""

MAX_DEPTH = 100
"""Of lists and objects in each other, in the arguments of a call. Whether deeper ones can be read depends on the
version of Python and on who asks, and a request has to be the same for ever; no tool takes any."""
BLIND = Sight(None)
SHORTEST_CUT_BYTES = 100
STUB_BYTES = 200
"""What is left of an old result that was pruned."""
STUB_MARK = "bytes of old output left out"
SHORTEST_PRUNED_BYTES = 600
"""Less than that is left whole: a stub would save nothing."""


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


_BRACKETS = later(r"[\[\]{}]")
_STRINGS = later(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_STRICT = json.JSONDecoder(parse_constant=_refuse)


def is_json_object(text: str) -> bool:
    """Tell whether `text` is a JSON object, as providers demand of tool arguments. NaN and Infinity are none."""
    try:
        return isinstance(_STRICT.decode(text), dict)
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


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def encodable(text: str) -> str:
    """Return `text` with lone surrogates, which have no UTF-8 form, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_text(value: Text, seq: int) -> str:
    """Return where the whole of a text is that the model is shown a part of: its blob, or the event that holds it."""
    return f"the whole is {value.blob}" if isinstance(value, BlobRef) else f"the whole is in event {seq} of the log"


def _shown(value: Text, seq: int, texts: Texts, view: View) -> str:
    """Return a text as the model is shown it: its middle cut where it is above the cap for one item."""
    text = encodable(texts.text(value))
    if view.rules >= 3 and not text.strip():
        return ""
    if view.rules < 1 or len(text) * 4 <= view.item_bytes:
        return text
    return middle_cut(text, view.item_bytes, whole_text(value, seq))


def summary_message(compaction: Compacted, texts: Texts, told: Sequence[Told] = ()) -> Message:
    """Return what stands in front of the newest turns for those that were compacted. told: as in `user_message`."""
    text = SUMMARY.format(text=encodable(texts.text(compaction.summary)))
    return Message("user", "\n\n".join([*_changes(told, texts), text]), seq=compaction.seq)


def user_message(
    item: UserItem, texts: Texts, view: View, told: Sequence[Told] = (), sight: Sight | None = None
) -> Message:
    """Return a user message: its text, then its attachments, each under its name; each capped for itself.

    told: changes of the surroundings, which stand in front. sight: of images.
    """
    said = _shown(item.fact.text, item.seq, texts, view)
    parts = [*_changes(told, texts), ORPHAN.format(text=said or "(no output)") if item.orphan else said]
    images: list[Image] = []
    for attachment in item.fact.attachments:
        if view.rules < 2 or not is_image(attachment):
            parts.append(_attachment(attachment, item.seq, texts, view))
            continue
        ((line, image),) = (sight or BLIND).see([attachment], item.seq, texts)
        parts.append(line)
        images += [image] if image is not None else []
    text = encodable("\n\n".join(p for p in parts if p)) or "(empty message)"
    return Message("user", text, seq=item.seq, images=tuple(images))


def ending(fact: UserCommandEnded) -> str:
    """Return in a few words how a command of the user's ended."""
    if fact.status == "ok" and fact.exit is not None:
        return f"exit {fact.exit}" if fact.exit >= 0 else f"killed by signal {-fact.exit}"
    return {
        "ok": "ended",
        "error": "it could not be run",
        "interrupted": "interrupted by the user",
        "timed_out": "killed at its time limit",
        "unknown": "it may have run: the session stopped meanwhile",
    }[fact.status]


def command_message(item: CommandItem, texts: Texts, view: View) -> Message:
    """Return what the model is told of a command that the user ran: the command, its end, its output."""
    command, output = _shown(item.command, item.seq, texts, view), _shown(item.fact.text, item.seq, texts, view)
    text = COMMAND.format(command=command, ending=ending(item.fact), output=output.rstrip("\n") or "(no output)")
    return Message("user", text, seq=item.seq)


def _changes(told: Sequence[Told], texts: Texts) -> list[str]:
    return [CHANGES.format(text="\n\n".join(encodable(texts.text(t.text)) for t in told))] if told else []


def _attachment(attachment: Attachment, seq: int, texts: Texts, view: View) -> str:
    if not attachment.media_type.startswith("text/"):
        return f"[{attachment.name}: {attachment.media_type}, not shown to the model]"
    return f'<file name="{attachment.name}">\n{_shown(attachment.content, seq, texts, view)}\n</file>'


def reply_messages(
    item: AgentItem, ids: tuple[str, ...], texts: Texts, view: View, sight: Sight | None = None
) -> Iterator[Message]:
    """Yield a reply and the results of its calls. ids: of the calls, as `fresh_ids` gave them. sight: of images.

    Nothing is yielded for a reply that said nothing and asked for nothing. Images of results follow in a user
    message, since providers take them nowhere else.
    """
    text = _shown(item.fact.text, item.seq, texts, view)
    if not text and not item.calls:
        return
    calls = tuple(_call(call, id_, texts, view) for call, id_ in zip(item.calls, ids, strict=True))
    yield Message("assistant", text, calls=calls, seq=item.seq)
    names, images = [], list[Image]()
    for call, id_ in zip(item.calls, ids, strict=True):
        result = _result(call, texts, view) or "(no output)"
        for line, image in _seen(call, texts, view, sight or BLIND):
            if image is None:
                result = f"{result}\n{encodable(line)}"
            else:
                names.append(line)
                images.append(image)
        yield Message("tool", result, call_id=id_, seq=call.seq)
    if images:
        yield Message("user", encodable(RESULTS.format(names=" ".join(names))), seq=item.seq, images=tuple(images))


def _seen(call: CallState, texts: Texts, view: View, sight: Sight) -> list[tuple[str, Image | None]]:
    """Return the images of a result as the model is shown them; a result that is a stub shows none."""
    if view.rules < 2 or call.result is None:
        return []
    if call.seq < view.pruned_before:
        sight = replace(sight, from_seq=view.pruned_before)
    return sight.see(call.result.images, call.seq, texts)


def _result(call: CallState, texts: Texts, view: View) -> str:
    if call.result is None:
        return NO_RESULT
    text = _shown(call.result.for_model, call.seq, texts, view)
    if call.seq >= view.pruned_before:
        return text
    size = len(text.encode())
    if size <= SHORTEST_PRUNED_BYTES:
        return text
    where = whole_text(call.result.for_model, call.seq)
    rest = f"[… {size - STUB_BYTES:,} {STUB_MARK}; {where}; call the tool again if you need it …]"
    return f"{head_bytes(text, STUB_BYTES)}\n{rest}"


def is_stub(text: str) -> bool:
    """Tell whether a result as it was sent is what pruning left of one."""
    return STUB_MARK in text[-300:]


def fresh_ids(item: AgentItem, seen: set[str]) -> tuple[str, ...]:
    """Return the ids of an item's calls for a request, and add them to `seen`.

    Models repeat ids, or send none, or strange ones; in a request each is there once and plain.
    """
    return tuple(_fresh_id(call, seen) for call in item.calls)


def _fresh_id(call: CallState, seen: set[str]) -> str:
    id_ = call.call
    if len(id_) > MAX_ID_CHARS or not id_ or _NAME.search(id_):
        id_ = f"call_{call.seq}"
    plain, n = id_, call.seq
    while id_ in seen:
        id_, n = f"{plain[:24]}_{n}", n + 1
    seen.add(id_)
    return id_


def _call(call: CallState, id_: str, texts: Texts, view: View) -> Call:
    arguments = encodable(texts.text(call.arguments))
    name = call.name if is_name(call.name) else _NAME.sub("_", call.name)[:MAX_NAME_CHARS] or "unnamed"
    if not is_json_object(arguments) or (view.rules >= 3 and _depth(arguments) > MAX_DEPTH):
        return Call(id_, name, "{}")
    return Call(id_, name, _shortened(arguments, view))


def _depth(text: str) -> int:
    """Return how deep lists and objects are in each other in a JSON text."""
    deepest = depth = 0
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return deepest
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _shortened(arguments: str, view: View) -> str:
    """Return the arguments of a call with the middle of their long texts cut, where they would crowd out the rest.

    The call was answered long ago; the whole is in the log, and a file that was written is in the workspace.
    """
    size: Callable[[str], int] = _size if view.rules >= 3 else len  # of characters before
    if size(arguments) <= view.item_bytes:
        return arguments
    try:
        value = json.loads(arguments, parse_float=_finite)
        room = view.item_bytes // 2
        while size(text := encodable(_dumps(_cut(value, room)))) > view.item_bytes:
            room //= 2
            if room < SHORTEST_CUT_BYTES:
                return "{}"
    except RecursionError:
        return "{}"
    return text


def _finite(digits: str) -> float | str:
    """Return a number; one that is too large for any, such as 1e400, as its digits: JSON has no infinity."""
    value = float(digits)
    return value if isfinite(value) else digits


def _cut(value: object, max_bytes: int) -> object:
    if isinstance(value, str):
        return middle_cut(value, max_bytes)
    if isinstance(value, dict):
        return {key: _cut(inner, max_bytes) for key, inner in value.items()}
    return [_cut(inner, max_bytes) for inner in value] if isinstance(value, list) else value
