"""A session as one page of HTML: everything escaped, no script, nothing fetched from anywhere."""

from html import escape
from typing import BinaryIO

from markdown_it import MarkdownIt

from agentsh.events.event import Event
from agentsh.events.signals import Signal
from agentsh.ports.texts import Texts
from agentsh.render.transcript import Entry, Transcript

POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
"""Were something to get through all the same, the browser would not run it, nor ask anybody for anything."""
STYLE = """\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
pre{overflow-x:auto;padding:.6rem;border-radius:.4rem;background:#8881;font-size:.85rem;white-space:pre-wrap}
.user{border-left:.25rem solid #08c;padding-left:.8rem;white-space:pre-wrap;overflow-wrap:anywhere}
.about,.remark,.thought{opacity:.7;font-size:.9rem;white-space:pre-wrap}
.thought{font-style:italic}
summary{cursor:pointer;font-family:ui-monospace,monospace;font-size:.9rem;overflow-wrap:anywhere}
.bad summary::after{content:" ✗";color:#c33}
.add{color:#187a18}.del{color:#c33}
table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.2rem .5rem}
@media(prefers-color-scheme:dark){.add{color:#5c5}.del{color:#f66}}
"""
_HEAD = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
{style}</style></head><body>
"""


class HtmlRenderer:
    """Writes the page as the facts come; `close` ends it."""

    def __init__(self, out: BinaryIO, texts: Texts) -> None:
        self._out = out
        self._transcript = Transcript(texts)
        # No HTML of its own, and links are checked; pictures are left as text: they would be fetched.
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
        self._began = self._ended = False

    def on(self, event: Event) -> None:
        """Write what a fact adds."""
        for entry in self._transcript.entries(event):
            self._begin(entry.head if entry.kind == "title" else "agentsh session")
            self._write(self._part(entry) + "\n")

    def signal(self, signal: Signal) -> None:
        """Nothing: previews are no part of the record."""

    def close(self) -> None:
        """End the page. Idempotent."""
        self._begin("agentsh session")
        if not self._ended:
            self._ended = True
            self._write("</body></html>\n")
        self._out.flush()

    def _begin(self, title: str) -> None:
        if not self._began:
            self._began = True
            self._write(_HEAD.format(policy=POLICY, title=escape(title), style=STYLE))

    def _part(self, entry: Entry) -> str:
        head, text = escape(entry.head), escape(entry.text)
        match entry.kind:
            case "title":
                return f'<h1>{head}</h1>\n<p class="about">{text}</p>'
            case "user":
                return f'<h2>You</h2>\n<div class="user">{text}</div>'
            case "agent":
                return f'<div class="agent">{self._markdown.render(entry.text)}</div>'
            case "aside":
                return f"<h2>Aside: {head}</h2>\n<div>{self._markdown.render(entry.text)}</div>"
            case "diff":
                return f"<details open><summary>{head}</summary><pre>{_diff(entry.text)}</pre></details>"
            case "call" | "command":
                bad = "" if entry.good else ' class="bad"'
                shown = " open" if entry.kind == "command" else ""
                return f"<details{bad}{shown}><summary>{head}</summary><pre>{text}</pre></details>"
            case "thought" | "remark":
                return f'<p class="{entry.kind}">{text}</p>'

    def _write(self, text: str) -> None:
        self._out.write(text.encode("utf-8", "replace"))


def _diff(text: str) -> str:
    rows = []
    for line in text.rstrip("\n").split("\n"):
        kind = {"+": "add", "-": "del"}.get(line[:1])
        rows.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    return "\n".join(rows)
