"""A session as a Markdown file: what people said and did, in fences that nothing inside can close."""

import re
from typing import BinaryIO

from agentsh.events.event import Event
from agentsh.events.signals import Signal
from agentsh.ports.texts import Texts
from agentsh.render.transcript import Entry, Transcript

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")
_HTML = re.compile(r"<(?=[A-Za-z/!?])")


class MarkdownRenderer:
    """Writes each part once it has ended. HTML that a model or a user wrote is shown as text."""

    def __init__(self, out: BinaryIO, texts: Texts) -> None:
        self._out = out
        self._transcript = Transcript(texts)
        self._said = ""

    def on(self, event: Event) -> None:
        """Write what a fact adds."""
        for entry in self._transcript.entries(event):
            self._write("\n".join(self._lines(entry)) + "\n\n")

    def signal(self, signal: Signal) -> None:
        """Nothing: previews are no part of the record."""

    def close(self) -> None:
        """Flush."""
        self._out.flush()

    def _lines(self, entry: Entry) -> list[str]:
        head, before, self._said = _escaped(entry.head), self._said, entry.kind
        match entry.kind:
            case "title":
                return [f"# {head}", "", f"*{_escaped(entry.text)}*"]
            case "user":
                return ["## You", "", *(f"> {_escaped(line)}".rstrip() for line in entry.text.split("\n"))]
            case "agent":
                lead = [] if before in ("agent", "thought", "call", "diff") else [f"## {head or 'Agent'}", ""]
                return [*lead, _without_tags(entry.text)]
            case "thought":
                return [f"> *{_escaped(line)}*" for line in entry.text.split("\n") if line.strip()]
            case "diff":
                return [f"**{head}**", "", *fenced(entry.text, "diff")]
            case "call" | "command":
                who = "**You ran**" if entry.kind == "command" else "**Tool**"
                return [f"{who} {_code(entry.head)}", *(["", *fenced(entry.text)] if entry.text.strip() else [])]
            case "aside":
                return [f"## Aside: {head}", "", _without_tags(entry.text)]
            case "remark":
                return [f"*{_escaped(line)}*  " for line in entry.text.split("\n")]

    def _write(self, text: str) -> None:
        self._out.write(text.encode("utf-8", "replace"))


def fenced(text: str, language: str = "") -> list[str]:
    """Return a text in a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}{language}", *text.rstrip("\n").split("\n"), fence]


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    mark = "`" * (longest + 1)
    return f"{mark} {text} {mark}" if longest else f"`{text}`"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)


def _without_tags(text: str) -> str:
    """Return Markdown as it is but for tags outside of fences, and with a fence that was left open closed."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        bare = line.strip()
        if not fence and bare[:3] in ("```", "~~~"):
            fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
        elif fence and bare.startswith(fence) and not bare.strip(fence[0]):
            fence = ""
        elif not fence:
            line = _HTML.sub("&lt;", line)
        lines.append(line)
    return "\n".join([*lines, fence] if fence else lines)
