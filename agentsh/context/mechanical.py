"""An account of a part of the conversation, made from the log without a model. Pure, bounded, deterministic.

It serves where no model is at hand, where it failed, and for what is too long to be shown to it.
"""

import json
from collections.abc import Iterable, Sequence

from agentsh.base.text import head_bytes, middle_cut, one_line, tail_bytes
from agentsh.context.items import ending
from agentsh.context.state import AgentItem, CallState, CommandItem, TalkItem, UserItem
from agentsh.events.base import JsonValue
from agentsh.ports.texts import Texts

MAX_PROMPT_CHARS = 500
MAX_LINE_CHARS = 160
MAX_TODO = 30
SHARES = {"earlier": 0.35, "asked": 0.25, "files": 0.12, "commands": 0.13, "answer": 0.15}
"""Of the room, so that no part crowds out another."""
FROM_LOG = "(This account was made from the log, without a model.)"


def mechanical_summary(
    items: Iterable[TalkItem], texts: Texts, *, earlier: str = "", todo: Sequence[JsonValue] = (), max_bytes: int
) -> str:
    """Return what was asked, which files were touched, which commands ran, what was said last; newest kept first.

    earlier: the summary that stood before. max_bytes: of UTF-8, at least 400.
    """
    talk = list(items)
    calls = [call for item in talk if isinstance(item, AgentItem) for call in item.calls]
    prompts = [one_line(texts.text(i.fact.text), MAX_PROMPT_CHARS) for i in talk if isinstance(i, UserItem)]
    answers = [text for i in talk if isinstance(i, AgentItem) if (text := texts.text(i.fact.text).strip())]
    room = {name: int(max_bytes * share) for name, share in SHARES.items()}
    parts = [
        ("Summary of what came before", middle_cut(_unmarked(earlier), room["earlier"]) if earlier else ""),
        ("Goal: what the user asked, oldest first", _asked([p for p in prompts if p], room["asked"])),
        ("Files touched", _newest(_files(calls, texts), room["files"])),
        ("Commands run, newest last", _newest(_commands(calls, texts) + _own(talk, texts), room["commands"])),
        ("Open work: the todo list", todo_lines(todo)),
        ("What the agent said last", tail_bytes(answers[-1], room["answer"]) if answers else ""),
    ]
    body = "\n\n".join(f"## {title}\n{text}" for title, text in parts if text)
    return middle_cut(f"{FROM_LOG}\n\n{body}".rstrip(), max_bytes)


def todo_lines(todo: Sequence[JsonValue]) -> str:
    """Return a todo list as lines, at most MAX_TODO; empty for none."""
    rows = []
    for item in todo[:MAX_TODO]:
        known = item if isinstance(item, dict) else {"text": item}
        text = known.get("text") or known.get("content") or known.get("title") or ""
        status = known.get("status")
        rows.append(
            f"- {one_line(str(text), MAX_LINE_CHARS)}" + (f" ({one_line(str(status), 20)})" if status else "")
        )
    if len(todo) > MAX_TODO:
        rows.append(f"({len(todo) - MAX_TODO:,} more)")
    return "\n".join(rows)


def touched(items: Iterable[TalkItem], texts: Texts) -> list[str]:
    """Return the files that calls of these items changed, each once, in order of the last change."""
    calls = [call for item in items if isinstance(item, AgentItem) for call in item.calls]
    return [path for path, changed in _paths(calls, texts).items() if changed]


def _unmarked(text: str) -> str:
    return text.removeprefix(FROM_LOG).strip()


def _asked(prompts: list[str], max_bytes: int) -> str:
    """Keep the first prompt, which says what it is all about, and the newest."""
    if not prompts:
        return ""
    first = f"- {head_bytes(prompts[0], max_bytes // 3)}"
    rest = _newest([f"- {prompt}" for prompt in prompts[1:]], max_bytes - len(first.encode("utf-8", "surrogatepass")))
    return f"{first}\n{rest}".rstrip()


def _newest(lines: list[str], max_bytes: int) -> str:
    """Return the newest lines that fit, and how many older ones do not."""
    size, kept = 0, 0
    for line in reversed(lines):
        size += len(line.encode("utf-8", "surrogatepass")) + 1
        if size > max_bytes - 30:
            break
        kept += 1
    left = len(lines) - kept
    return "\n".join([f"({left:,} older left out)"] * bool(left) + lines[left:])


def _files(calls: list[CallState], texts: Texts) -> list[str]:
    return [f"- {path} ({'changed' if changed else 'read'})" for path, changed in _paths(calls, texts).items()]


def _paths(calls: list[CallState], texts: Texts) -> dict[str, bool]:
    """Paths of calls that went well; whether one of them changed the file."""
    found: dict[str, bool] = {}
    for call in calls:
        path = _argument(call, texts, "path")
        if path and call.result is not None and call.result.status in ("ok", "unknown", "interrupted"):
            changed = "write" in call.effects
            found[path] = found.pop(path, False) or changed
    return found


def _commands(calls: list[CallState], texts: Texts) -> list[str]:
    lines = []
    for call in calls:
        command = _argument(call, texts, "command")
        if command and call.result is not None:
            end = call.result.status if call.result.exit is None else f"exit {call.result.exit}"
            lines.append(f"- `{command}`: {end}")
    return lines


def _own(talk: list[TalkItem], texts: Texts) -> list[str]:
    """Return the commands that the user ran."""
    own = [item for item in talk if isinstance(item, CommandItem)]
    return [f"- by the user: `{one_line(texts.text(i.command), MAX_LINE_CHARS)}`: {ending(i.fact)}" for i in own]


def _argument(call: CallState, texts: Texts, name: str) -> str:
    try:
        value = json.loads(texts.text(call.arguments))
    except (ValueError, RecursionError):
        return ""
    found = value.get(name) if isinstance(value, dict) else None
    return one_line(found, MAX_LINE_CHARS) if isinstance(found, str) else ""
