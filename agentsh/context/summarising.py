"""The request for a summary, as a pure function of the state and what its `context_built` recorded; and its check.

The conversation is sent as the next step would send it, with one message behind it, so that the provider's prompt
cache serves the long part. See docs/adr/0007.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from agentsh.base.pattern import later
from agentsh.base.text import middle_cut
from agentsh.context.compaction import first_shown
from agentsh.context.images import images_of, too_many, without_images
from agentsh.context.items import encodable
from agentsh.context.mechanical import mechanical_summary, todo_lines, touched
from agentsh.context.messages import build, kept, messages_of
from agentsh.context.state import SessionState, TalkItem
from agentsh.context.view import RULES, View, view_of
from agentsh.events.compaction import SummaryAsk
from agentsh.ports.model import Call, Message, Reply
from agentsh.ports.texts import Texts

HEADINGS = ("Goal", "Decisions", "Files touched", "Open work", "Exact facts")
MAX_FILES = 30
"""In the list of changed files, of the newest."""
NEEDED = 3
"""So many of the headings make a summary; small models leave one out where they have nothing to say."""
ITEM_BYTES = (8_000, 4_000, 2_000, 1_000, 500)
"""To which the texts of a conversation that is too long for one request are cut, one after the other."""
LEFT_OUT_BYTES = 3_000
"""Of the account of what is too old and too much to be shown to the model."""

ASK = """\
[agentsh] The conversation above has grown long and is about to be replaced by a summary. Write that summary now. \
Whoever goes on will have your summary, the newest messages and the workspace, and nothing else of what stands above.

Use exactly these headings, in this order:

## Goal
What the user wants, in their own words where the wording matters, with every limit and preference they gave.
## Decisions
What was found out and decided, and why; what was tried and did not work.
## Files touched
One line for each: its path, and what was changed in it or learned from it.
## Open work
What is done, what is half done, what comes next.
## Exact facts
What must not be paraphrased: names, numbers, commands that work, error messages, identifiers, addresses.

Write at most {max_words} words. Write nothing but the summary, and call no tool."""
AGAIN = "\n\nAn earlier attempt could not be used. Keep to the headings and to the limit of {max_words} words."
WISHES = "\n\nThe user asks of this summary: {instructions}"

_HEADING = later(r"^[ \t]*#{1,6}[ \t]*\**([A-Za-z ]+)", re.MULTILINE)


def summary_messages(
    state: SessionState, texts: Texts, ask: SummaryAsk, *, rules: int = RULES
) -> tuple[Message, ...]:
    """Return the messages of a request for a summary: the context as the next step would send it, and the wish."""
    view = replace(view_of(state), rules=rules)
    if ask.from_seq is None:
        messages = messages_of(build(state, texts, view))
    else:
        messages = _without_the_oldest(state, texts, view, ask.from_seq)
    if too_many(images_of(messages)):
        messages = without_images(messages)
    if ask.item_bytes is not None:
        messages = tuple(_shortened(message, ask.item_bytes) for message in messages)
    text = ASK.format(max_words=ask.max_words)
    if ask.attempt > 1:
        text += AGAIN.format(max_words=ask.max_words)
    if ask.instructions:
        text += WISHES.format(instructions=encodable(texts.text(ask.instructions)))
    return (*messages, Message("user", text))


def _without_the_oldest(state: SessionState, texts: Texts, view: View, from_seq: int) -> tuple[Message, ...]:
    """The context from `from_seq` on, with a mechanical account of what is before it."""
    account = mechanical(state, texts, from_seq - 1, max_bytes=LEFT_OUT_BYTES)
    blocks = build(replace(state, compaction=None), texts, replace(view, from_seq=from_seq))
    system = [b for b in blocks if b.kind == "system"]
    rest = [b for b in blocks if b.kind != "system"]
    return (*messages_of(system), Message("user", account), *messages_of(rest))


def mechanical(state: SessionState, texts: Texts, upto_seq: int, *, max_bytes: int) -> str:
    """Return an account, made without a model, of what the context shows up to `upto_seq`."""
    earlier = texts.text(state.compaction.summary) if state.compaction is not None else ""
    old, todo = shown_upto(state, upto_seq), state.todo
    return encodable(mechanical_summary(old, texts, earlier=earlier, todo=todo, max_bytes=max_bytes))


def shown_upto(state: SessionState, upto_seq: int) -> list[TalkItem]:
    """Return what the context shows of the conversation up to `upto_seq`."""
    return [item for item in kept(state.talk, first_shown(state)) if item.seq <= upto_seq]


def _shortened(message: Message, max_bytes: int) -> Message:
    if message.role == "system":
        return message
    calls = tuple(Call(c.id, c.name, c.arguments if len(c.arguments) <= max_bytes else "{}") for c in message.calls)
    return replace(message, text=middle_cut(message.text, max_bytes), calls=calls, images=())


def ask_that_fits(
    state: SessionState, texts: Texts, weigh: Callable[[tuple[Message, ...]], int], ask: SummaryAsk, max_tokens: int
) -> SummaryAsk | None:
    """Return `ask` with as much cut as it takes to stay within `max_tokens`; None where nothing is enough.

    First the middle of long texts goes, then the oldest part of the conversation. weigh: tokens of a request.
    """
    smallest = ask
    for item_bytes in (None, *ITEM_BYTES):
        smallest = ask if item_bytes is None else ask.model_copy(update={"item_bytes": item_bytes})
        if weigh(summary_messages(state, texts, smallest)) <= max_tokens:
            return smallest
    starts = [item.seq for item in shown_upto(state, state.last_seq)][1:]
    low, high = 0, len(starts)  # the first start that fits; a later one never needs more
    while low < high:
        middle = (low + high) // 2
        shorter = smallest.model_copy(update={"from_seq": starts[middle]})
        if weigh(summary_messages(state, texts, shorter)) <= max_tokens:
            high = middle
        else:
            low = middle + 1
    return smallest.model_copy(update={"from_seq": starts[low]}) if low < len(starts) else None


def problem_of(reply: Reply) -> str | None:
    """Return why a reply cannot serve as a summary, in one line, or None."""
    if reply.calls:
        return "the model called a tool instead"
    if not reply.text.strip():
        return "the model's summary was empty"
    if reply.finish != "stop":
        return f"the model's summary did not come to its end ({reply.finish})"
    found = {match.strip().lower() for match in _HEADING.findall(reply.text)}
    if sum(any(f.startswith(heading.lower()) for f in found) for heading in HEADINGS) < NEEDED:
        return "the model's answer was no summary"
    return None


def with_log_facts(text: str, state: SessionState, texts: Texts, upto_seq: int) -> str:
    """Return a model's summary with what the log knows better: the todo list, and which files were changed."""
    parts = [text.strip()]
    if changed := touched(shown_upto(state, upto_seq), texts)[-MAX_FILES:]:
        parts.append("## Files changed, by the log\n" + "\n".join(f"- {path}" for path in changed))
    if todo := todo_lines(state.todo):
        parts.append("## The todo list, by the log\n" + todo)
    return "\n\n".join(parts)
