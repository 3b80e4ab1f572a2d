"""Questions aside on the screen: what waits for its answer, and the lines that an answer leaves."""

from rich.text import Text

from agentsh.base.text import one_line
from agentsh.events.event import Event
from agentsh.events.user import SideAnswer, SideQuestion
from agentsh.ports.texts import Texts
from agentsh.render import theme
from agentsh.render.lines import Page
from agentsh.render.markdown import Flow
from agentsh.render.paint import shown
from agentsh.render.split import split

MARK = "?"


class Asides:
    """The questions that have no answer yet, by the seq of their side_question, with since when they wait."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._open: dict[int, tuple[str, float]] = {}

    def asked(self, event: Event, fact: SideQuestion, now_s: float) -> None:
        """The user asked."""
        self._open[event.seq] = shown(self._texts.text(fact.text)).strip("\n"), now_s

    def answered(self, page: Page, event: Event, fact: SideAnswer) -> list[str]:
        """Return the question, the answer set in below it, and what it took."""
        question, _ = self._open.pop(event.cause or 0, ("a question", 0.0))
        rows = page.under(MARK, theme.USER_MARK, question, theme.USER)
        inner = Page(page.painter, page.texts, max(page.width - 2, 8))
        rows += [
            f"  {row}".rstrip() for row in Flow().rows(split(self._texts.text(fact.text)), inner.painter, inner.width)
        ]
        if fact.error:
            rows += page.line(f"  ✗ {fact.error}", theme.WARN)
        used = fact.usage
        spent = f" · {theme.count(used.prompt)} → {theme.count(used.completion)} tokens" if used is not None else ""
        if fact.cost_usd is not None:
            spent += f" · {theme.money(fact.cost_usd)}"
        return rows + page.line(f"— aside: not in the context{spent}")

    def waiting(self, page: Page, now_s: float) -> list[str]:
        """Return a row for each question that waits."""
        return [
            page.painter.row(
                Text(f"{MARK} {one_line(question, 200)} · {int(now_s - since_s)} s", theme.DIM), page.width
            )
            for question, since_s in self._open.values()
        ]
