"""A session as Markdown and as HTML: all of it is there, and nothing in it is more than text."""

import io
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from agentsh.events.codec import decode, encode
from agentsh.events.event import Event
from agentsh.events.session import SessionInit, WorkspaceOrigin
from agentsh.events.tool import CodeEdit, ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, UserMessage
from agentsh.events.user import SideAnswer, SideQuestion, UserCommand, UserCommandEnded
from agentsh.log.frame import decode_event, encode_event
from agentsh.ports.texts import InlineTexts
from agentsh.render.html import HtmlRenderer
from agentsh.render.md import MarkdownRenderer, fenced

BAD = "x\x1b[2J\x9b1m<script>bad()</script> [a](javascript:bad()) ![i](http://127.0.0.1/i) ```` <b onclick=x>"


def events() -> list[Event]:
    origin = WorkspaceOrigin(kind="git", origin=f"/w/{BAD}", base=None)
    facts: list[tuple[Any, int | None]] = [
        (SessionInit(id="ID", title=BAD, cwd="/", project=None, model="m", mode="auto", workspace=origin), None),
        (UserMessage(text=f"Do it.\n# {BAD}\n> q", attachments=()), None),
        (AgentMessage(
            text=f"I **do** it. {BAD}\n\n```py\nprint('<i>')\n", reasoning=BAD, model=BAD, finish="tool_calls",
            usage=None, cost_usd=None,
        ), 2),
        (ToolCall(call="c", name="shell", arguments='{"command":"ls `x` <u>"}'), 3),
        (ToolStarted(call="c", effects=("exec",), sandbox="none", pid=None, decision="auto"), 4),
        (CodeEdit(call="c", path=BAD, diff=f"@@ -1 +1 @@\n-a\n+{BAD}\n", before=None, after=None, snapshot=None), 5),
        (ToolResult(call="c", status="ok", exit=0, for_model=BAD, for_user=BAD, duration_ms=5), 5),
        (UserCommand(command=f"echo {BAD}", joins=True, sandbox="none"), None),
        (UserCommandEnded(status="ok", exit=1, text=f"```\n{BAD}\n```", duration_ms=1), 8),
        (SideQuestion(text=BAD), None),
        (SideAnswer(text=f"Aside {BAD}"), 10),
    ]  # fmt: skip
    made = []
    for seq, (fact, cause) in enumerate(facts, 1):
        line = encode_event(encode(fact, ts="2026-11-29T16:20:00.000000Z", cause=cause), seq=seq, dur=0, salt=1)
        made.append(decode(decode_event(line, 1)))
    return made


def written(form: Any) -> str:
    out = io.BytesIO()
    renderer = form(out, InlineTexts())
    for event in events():
        renderer.on(event)
    renderer.close()
    renderer.close()
    return out.getvalue().decode()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


SAFE = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "details", "summary", "pre", "span",
    "strong", "code", "a",
}  # fmt: skip


@pytest.mark.parametrize("form", [MarkdownRenderer, HtmlRenderer])
def test_k173_controls_are_gone_and_all_is_there(form: Any) -> None:
    text = written(form)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    for said in ("Do it.", "shell ls", "print(", "Aside", "echo x", "exit 1", "+x"):
        assert said in text, said


def test_the_page_has_no_tags_but_its_own_and_asks_nobody_for_anything() -> None:
    page = written(HtmlRenderer)
    parser = Tags()
    parser.feed(page)
    assert parser.tags <= SAFE
    assert not any(name.startswith("on") or name == "src" for name, _ in parser.attributes)
    assert not any((value or "").startswith("javascript") for _, value in parser.attributes)
    assert "default-src 'none'" in page
    assert page.count("</html>") == 1


def test_markdown_shown_by_a_viewer_that_takes_html_has_none_of_theirs() -> None:
    parser = Tags()
    parser.feed(MarkdownIt("commonmark", {"html": True}).render(written(MarkdownRenderer)))
    assert not parser.tags & {"script", "b", "i", "u"}
    assert not any(name.startswith("on") for name, _ in parser.attributes)


def test_a_fence_is_longer_than_any_inside() -> None:
    assert fenced("a\n````\nb") == ["`````", "a", "````", "b", "`````"]
