"""The lines that each kind of fact leaves on the screen, apart from replies and tool calls."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.style import Style
from rich.text import Text

from agentsh.base.text import one_line, plural
from agentsh.events import compaction, session, tool, turn
from agentsh.events.event import Event, Opaque
from agentsh.ports.texts import Texts
from agentsh.render import theme, words
from agentsh.render.calls import fold
from agentsh.render.paint import Painter, shown

USER_LINES = 60


@dataclass(frozen=True, slots=True)
class Page:
    """What laying out needs: who paints, who knows the long texts, how wide."""

    painter: Painter
    texts: Texts
    width: int

    def line(self, text: str, style: Style = theme.DIM) -> list[str]:
        """Return one remark, wrapped."""
        return self.painter.rows(Text(one_line(text, 1_000), style), self.width)

    def under(self, mark: str, mark_style: Style, text: str, style: Style) -> list[str]:
        """Return text wrapped beside a mark of two columns."""
        rows: list[str] = []
        for line in text.split("\n"):
            for row in self.painter.rows(Text(line, style, overflow="fold"), max(self.width - 2, 8)) or [""]:
                lead = self.painter.row(Text(mark, mark_style), 8) + " " if not rows else "  "
                rows.append((lead + row).rstrip())
        return rows


def user_message(page: Page, event: Event, fact: turn.UserMessage) -> list[str]:
    """Return what the user said; the middle of a very long paste is only counted."""
    lines = shown(page.texts.text(fact.text)).strip("\n").split("\n")
    rows = page.under("›", theme.USER_MARK, "\n".join(fold(lines, USER_LINES, USER_LINES // 2)), theme.USER)
    for attachment in fact.attachments:
        size = f", {attachment.width} × {attachment.height}" if attachment.width and attachment.height else ""
        rows.extend(page.line(f"  + {attachment.name} ({attachment.media_type}{size})"))
    return rows


def reasoning(page: Page, text: str, thought: turn.Thought | None) -> list[str]:
    """Return one line in place of the model's reasoning. thought: None where nobody took the time."""
    if thought is None and not text.strip():
        return []
    words = len(text.split()) if thought is None else thought.words
    time = "" if thought is None else f" for {theme.duration(thought.ms)}"
    return page.line(f"∴ thought{time}, {plural(words, 'word')}")


def session_init(page: Page, event: Event, fact: session.SessionInit) -> list[str]:
    """Return the banner of a session."""
    place = fact.workspace
    where = {
        "git": f"clone of {place.origin}" + (f" at {place.base[:7]}" if place.base else ""),
        "copy": f"copy of {place.origin}",
        "empty": "empty workspace",
        "in-place": f"in place: {place.path or place.origin}",
    }[place.kind]
    # No parallel text is cut here: the id and the command stay whole at any width.
    head = Text.assemble(("agentsh", theme.BOLD), f" · session {one_line(fact.id, 100)}")
    about = f"{one_line(fact.model, 100)} · mode {fact.mode} · {one_line(where, 300)}"
    lines = [head, Text(about, theme.DIM), Text(f"resume with: agentsh resume {one_line(fact.id, 100)}", theme.DIM)]
    return [row for line in lines for row in page.painter.rows(line, page.width)]


def _opened(page: Page, event: Event, fact: session.Opened) -> list[str]:
    return page.line(f"— resumed (epoch {fact.epoch}, {theme.moment(event.ts)}) —")


def _recovered(page: Page, event: Event, fact: session.Recovered) -> list[str]:
    return page.line(words.recovered(fact), theme.WARN)


def _approval_answered(page: Page, event: Event, fact: tool.ApprovalAnswered) -> list[str]:
    word = {
        "yes": "✓ approved",
        "session": "✓ approved for this session",
        "project": "✓ approved for this project",
        "no": "✗ refused",
    }[fact.answer]
    reason = f": {fact.reason}" if fact.reason else ""
    return page.line(word + reason, theme.WARN if fact.answer == "no" else theme.DIM)


def _turn_finished(page: Page, event: Event, fact: turn.TurnFinished) -> list[str]:
    rows: list[str] = []
    ends: dict[str, tuple[str, Style]] = {
        "interrupted": ("■ interrupted", theme.WARN),
        "max_steps": (f"■ stopped at the limit of {plural(fact.steps, 'step')}", theme.WARN),
        "max_cost": ("■ stopped at the limit of cost", theme.WARN),
        "error": (f"✗ {fact.error or 'failed'}", theme.BAD),
        "crashed": ("✗ the session stopped in the middle of this turn", theme.BAD),
    }
    if fact.reason in ends:
        rows.extend(page.line(*ends[fact.reason]))
    usage = fact.usage
    parts = [plural(fact.steps, "step")]
    if usage.prompt or usage.completion:
        cached = f" ({usage.cached * 100 // usage.prompt} % cached)" if usage.cached and usage.prompt else ""
        parts.append(f"{theme.count(usage.prompt)}{cached} → {theme.count(usage.completion)} tokens")
    if fact.cost_usd is not None:
        parts.append(theme.money(fact.cost_usd))
    if fact.duration_ms:
        parts.append(theme.duration(fact.duration_ms))
    return rows + page.line("— " + " · ".join(parts))


def _context_built(page: Page, event: Event, fact: turn.ContextBuilt) -> list[str]:
    return (
        page.line(f"— older messages are left out of the context from here: {fact.cut.reason} —") if fact.cut else []
    )


def _compaction(page: Page, event: Event, fact: compaction.Compaction) -> list[str]:
    return page.line(f"— {words.compacted(fact)} —", theme.WARN if fact.error else theme.DIM)


def _renamed(page: Page, event: Event, fact: session.Renamed) -> list[str]:
    return page.line(f"— renamed: {fact.title} —") if fact.by == "user" else []


def _model(page: Page, event: Event, fact: session.ModelChanged) -> list[str]:
    host = (fact.request or {}).get("host")
    where = f" at {host}" if isinstance(host, str) and host else ""
    return page.line(f"— model: {fact.model}{where} —")


def _todo(page: Page, event: Event, fact: turn.TodoChanged) -> list[str]:
    rows = []
    for item in fact.items:
        known = item if isinstance(item, dict) else {"text": str(item)}
        mark = {"done": "☑", "completed": "☑", "in_progress": "▶"}.get(str(known.get("status")), "☐")
        text = known.get("text") or known.get("content") or known.get("title") or item
        rows.extend(page.under(mark, theme.DIM, one_line(str(text), 1_000), theme.DIM))
    return rows


def _job(page: Page, event: Event, fact: tool.JobChanged) -> list[str]:
    if fact.state == "running":  # the call that started it tells of it
        return []
    exit_code = f", exit {fact.exit}" if fact.exit is not None else ""
    after = f" after {theme.duration(fact.duration_ms)}" if fact.duration_ms is not None else ""
    return page.line(f"— job {fact.job}: {fact.state.replace('_', ' ')}{exit_code}{after} —")


def _hook(page: Page, event: Event, fact: tool.HookAnswered) -> list[str]:
    style = theme.WARN if fact.verdict == "deny" else theme.DIM
    why = f": {page.texts.text(fact.message)}" if fact.message else ""
    return page.line(f"hook {fact.hook}: {fact.verdict}{why}", style)


def _said(form: str) -> Callable[[Page, Event, Any], list[str]]:
    """Return a maker of one dim line, filled from the members of the fact."""
    return lambda page, event, fact: page.line(form.format(fact=fact))


def _note(page: Page, event: Event, fact: session.Note) -> list[str]:
    return page.under("·", theme.DIM, shown(page.texts.text(fact.text)), theme.DIM)


def _nothing(page: Page, event: Event, fact: Any) -> list[str]:
    return []


def _rewound(page: Page, event: Event, fact: session.Rewound) -> list[str]:
    said = f"— rewound to event {fact.to_seq} ({fact.what}){_taken_back(fact.files)} —"
    return page.line(said) + _conflicts(page, fact.conflicts)


def _rewind_undone(page: Page, event: Event, fact: session.RewindUndone) -> list[str]:
    return page.line(f"— the rewind was undone{_taken_back(fact.files)} —") + _conflicts(page, fact.conflicts)


def _taken_back(count: int | None) -> str:
    return f": {plural(count, 'path')} taken back" if count else ""


def _conflicts(page: Page, paths: tuple[str, ...] | None) -> list[str]:
    return [row for path in paths or () for row in page.line(f"  left alone, changed by somebody else too: {path}")]


def opaque(page: Page, fact: Opaque) -> list[str]:
    """Return the line for a fact that this version cannot read."""
    why = f"does not read: {fact.problem}" if fact.problem else "written by a newer version"
    return page.line(f"? {fact.type} ({why})")


LINES: dict[str, Callable[[Page, Event, Any], list[str]]] = {
    "session_init": session_init,
    "user_message": user_message,
    "opened": _opened,
    "recovered": _recovered,
    "approval_answered": _approval_answered,
    "turn_finished": _turn_finished,
    "context_built": _context_built,
    "renamed": _renamed,
    "todo_changed": _todo,
    "hook_answered": _hook,
    "note": _note,
    "model_changed": _model,
    "mode_changed": _said("— mode: {fact.mode} —"),
    "workspace_moved": _said("— workspace moved to {fact.path}: {fact.reason} —"),
    "rewound": _rewound,
    "rewind_undone": _rewind_undone,
    "compaction": _compaction,
    "summary_tried": _nothing,
    "compaction_undone": _said("— compaction undone: the context is what it was before it —"),
    "image_dropped": _said("— left out of the context from here: {fact.image}: {fact.reason} —"),
    "window_learned": _nothing,
    "job_changed": _job,
    "environment_changed": _nothing,
    "tagged": _nothing,
    "checkpoint": _nothing,
    "snapshot_taken": _nothing,
    "text_queued": _nothing,
    "text_withdrawn": _nothing,
    "partial_message": _nothing,
    "partial_output": _nothing,
    "approval_asked": _nothing,
    "user_command": _nothing,
    "side_question": _nothing,
    "shell_changed": _nothing,
}
"""Every kind of fact but agent_message and those of `calls` and `asides`; a test holds it against the vocabulary."""
