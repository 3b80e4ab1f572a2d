"""State to the prompt of a request, for sending and for building an old one again. Pure: log and blobs, nothing else.

What a request is made of: the recorded system prompt, instructions, tools, model and options; the conversation; and
the recorded decision of what of it is shown. The wire by whose name the bytes are made is recorded too.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agentsh.base.errors import BlobMissing
from agentsh.context.items import encodable, is_json_list
from agentsh.context.messages import build, messages_of
from agentsh.context.rendered import NotingTexts, RenderCache
from agentsh.context.state import SessionState
from agentsh.context.summarising import summary_messages
from agentsh.context.view import RULES, Block, View, view_of
from agentsh.events.compaction import SummaryAsk
from agentsh.events.turn import ContextBuilt
from agentsh.ports.model import Message, Prompt
from agentsh.ports.texts import Texts

ASIDE = """\
[agentsh] A question aside, which stays out of the conversation above. Answer it briefly and in words alone: call no \
tool, and do not go on with the work.

{question}"""
DEFAULT_WIRE = "chat"
"""Of logs that do not name one."""


class Rebuilt(NamedTuple):
    """A request of the past, before its wire puts it into bytes.

    missing: blobs that cannot be read now and could be then; where there are any, the bytes differ.
    """

    prompt: Prompt
    blocks: tuple[Block, ...]
    view: View
    wire: str
    missing: tuple[str, ...]


def wire_of(state: SessionState) -> str:
    """Return the name of the wire that requests go over."""
    return str((state.request or {}).get("wire") or DEFAULT_WIRE)


def tools_of(state: SessionState, texts: Texts) -> str:
    """Return the recorded tools, a JSON list.

    Raises:
        BlobMissing: they are gone with their blob.
    """
    tools = texts.text(state.environment.tools) if state.environment else "[]"
    if not is_json_list(tools):
        raise BlobMissing("the list of tools is gone with its blob", hint="`agentsh resume` records it anew")
    return tools


def prompt_of(state: SessionState, messages: Sequence[Message], tools: str) -> Prompt:
    """Return the prompt of a request. tools: as `tools_of` gives them."""
    request = state.request or {}
    said = _merged(messages) if request.get("merge_user_messages") else messages
    return Prompt(state.model, tuple(said), tuple(json.loads(tools)), request.get("options") or {})


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with neighbours of the user's as one: some servers refuse two in a row."""
    found: list[Message] = []
    for message in messages:
        before = found[-1] if found else None
        if before is not None and before.role == message.role == "user":
            text = f"{before.text}\n\n{message.text}"
            found[-1] = replace(before, text=text, images=before.images + message.images)
        else:
            found.append(message)
    return found


def summary_prompt(state: SessionState, texts: Texts, ask: SummaryAsk, *, rules: int = RULES) -> Prompt:
    """Return the prompt of a request for a summary. state: as it was just before its event.

    Raises:
        BlobMissing: the list of tools is gone.
    """
    prompt = prompt_of(state, summary_messages(state, texts, ask, rules=rules), tools_of(state, texts))
    return replace(prompt, options={**prompt.options, "tool_choice": "none"}) if ask.tools_off else prompt


def aside_prompt(state: SessionState, texts: Texts, question: int, blocks: Sequence[Block]) -> Prompt:
    """Return the prompt of a question aside. question: seq of the side_question. blocks: of the next request.

    Raises:
        BlobMissing: the list of tools is gone.
    """
    fact = state.asides.get(question)
    text = ASIDE.format(question=encodable(texts.text(fact.text)) if fact is not None else "")
    prompt = prompt_of(state, (*messages_of(blocks), Message("user", text)), tools_of(state, texts))
    return replace(prompt, options={**prompt.options, "tool_choice": "none"}) if prompt.tools else prompt


def view_at(state: SessionState, built: ContextBuilt) -> View:
    """Return what the request of `built` showed. state: as it was just before that event."""
    now = replace(view_of(state), rules=built.rules)
    if built.cut is None:
        return now
    pruned_before = max(state.pruned_before, built.cut.pruned_before or 0)
    images_from = max(state.images_from, built.cut.images_from or 0)
    return replace(now, from_seq=built.cut.from_seq, pruned_before=pruned_before, images_from=images_from)


def rebuild(state: SessionState, built: ContextBuilt, texts: Texts, cache: RenderCache | None = None) -> Rebuilt:
    """Return the request of `built` again. state: as it was just before that event.

    Raises:
        BlobMissing: the list of tools is gone.
    """
    gone = frozenset(built.missing)
    noting = NotingTexts(texts, gone)
    view = view_at(state, built)
    # What was rendered with other blobs gone would not be the same.
    blocks = build(state, noting, view, None if gone else cache)
    if built.aside is not None:
        prompt = aside_prompt(state, noting, built.aside, blocks)
    elif built.summary is not None:
        prompt = summary_prompt(state, noting, built.summary, rules=built.rules)
    else:
        prompt = prompt_of(state, messages_of(blocks), tools_of(state, noting))
    missing = {ref for block in blocks for ref in block.missing} - gone
    return Rebuilt(prompt, blocks, view, wire_of(state), tuple(sorted(missing)))
