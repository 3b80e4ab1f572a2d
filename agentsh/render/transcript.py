"""A session as a document: its facts as entries, which Markdown and HTML pages are written from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from agentsh.base.text import clean, one_line
from agentsh.context.items import ending
from agentsh.events.base import Text
from agentsh.events.event import Event, Opaque
from agentsh.events.session import SessionInit
from agentsh.events.tool import CodeEdit, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, UserMessage
from agentsh.events.user import SideAnswer, SideQuestion, UserCommand, UserCommandEnded
from agentsh.ports.texts import Texts
from agentsh.render import theme
from agentsh.render.calls import subject_of
from agentsh.render.lines import LINES, Page, opaque
from agentsh.render.paint import Painter

WIDE = 4_000
"""Columns of a page that nothing is wrapped on."""

Kind = Literal["title", "user", "agent", "thought", "call", "diff", "command", "aside", "remark"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A part of the document, all its text clean. head: one line. text: Markdown of `agent` and `aside`, else plain.

    good: whether what it tells of went well.
    """

    kind: Kind
    head: str = ""
    text: str = ""
    good: bool = True


@dataclass(slots=True)
class _Open:
    name: str
    subject: str
    edits: list[CodeEdit] = field(default_factory=list)


class Transcript:
    """Turns facts into entries, in order; what has no end yet waits for it."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._page = Page(Painter(colour=False), texts, WIDE)
        self._open: dict[int, _Open] = {}
        self._started: dict[int, int] = {}

    def entries(self, event: Event) -> Iterator[Entry]:
        """Yield what a fact adds."""
        match event.fact:
            case Opaque() as fact:
                yield self._remark(opaque(self._page, fact))
            case SessionInit() as fact:
                place = fact.workspace
                about = f"{fact.id} · {fact.model} · mode {fact.mode} · {theme.moment(event.ts)} · {place.kind}"
                origin = f" of {place.origin}" if place.origin else ""
                yield Entry("title", one_line(fact.title or f"Session {fact.id}", 300), one_line(about + origin, 500))
            case UserMessage() as fact:
                along = [f"+ {one_line(a.name, 200)} ({one_line(a.media_type, 60)})" for a in fact.attachments]
                yield Entry("user", "", "\n".join([self._clean(fact.text), *along]))
            case AgentMessage() as fact:
                if fact.reasoning and (thought := self._clean(fact.reasoning).strip()):
                    yield Entry("thought", "", thought)
                if text := self._clean(fact.text).strip():
                    yield Entry("agent", one_line(fact.model, 100), text)
            case ToolCall() as fact:
                subject = subject_of(self._texts.text(fact.arguments))
                self._open[event.seq] = _Open(one_line(fact.name, 40), subject)
            case ToolStarted():
                self._started[event.seq] = event.cause or 0
            case CodeEdit() as fact:
                yield from self._edited(event, fact)
            case ToolResult() as fact:
                yield from self._finished(event, fact)
            case UserCommand() as fact:
                mark = "!" if fact.joins else "!!"
                self._open[event.seq] = _Open(mark, one_line(self._texts.text(fact.command), 1_000))
            case UserCommandEnded() as fact:
                own = self._open.pop(event.cause or 0, None) or _Open("!", "a command")
                good = fact.status == "ok" and not fact.exit
                yield Entry("command", f"{own.name} {own.subject} · {ending(fact)}", self._clean(fact.text), good)
            case SideQuestion() as fact:
                self._open[event.seq] = _Open("?", self._clean(fact.text))
            case SideAnswer() as fact:
                asked = self._open.pop(event.cause or 0, None) or _Open("?", "a question")
                yield Entry("aside", asked.subject, self._clean(fact.text) or one_line(fact.error or "", 300))
            case other:
                make = LINES.get(other.type)
                if make is not None and (rows := make(self._page, event, other)):
                    yield self._remark(rows)

    def _call(self, event: Event) -> _Open | None:
        return self._open.get(self._started.get(event.cause or 0, event.cause or 0))

    def _edited(self, event: Event, fact: CodeEdit) -> Iterator[Entry]:
        call = self._call(event)
        if call is None:
            yield Entry("diff", one_line(fact.path, 300), self._clean(fact.diff))
        else:
            call.edits.append(fact)

    def _finished(self, event: Event, fact: ToolResult) -> Iterator[Entry]:
        call = self._call(event) or _Open("tool", "")
        self._open.pop(self._started.pop(event.cause or 0, event.cause or 0), None)
        parts: list[str] = [fact.status] if fact.status != "ok" else []
        parts += [f"exit {fact.exit}"] if fact.exit is not None else []
        parts += [theme.duration(fact.duration_ms)] if fact.duration_ms else []
        head = " · ".join([f"{call.name} {call.subject}".strip(), *parts])
        text = "" if call.edits else self._clean(fact.for_model)
        yield Entry("call", head, text, fact.status == "ok" and not fact.exit)
        for edit in call.edits:
            yield Entry("diff", one_line(edit.path, 300), self._clean(edit.diff))

    def _remark(self, rows: list[str]) -> Entry:
        lines = [row.strip() for row in rows if row.strip()]
        return Entry("remark", "", "\n".join(clean(line) for line in lines))

    def _clean(self, value: Text) -> str:
        return clean(self._texts.text(value))
