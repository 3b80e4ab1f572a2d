"""Rows of figures, as Markdown and as a picture: what was measured, against what, and what was wanted."""

from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH = 860
ROW = 26
LEFT = 430
BAR = 300


class Row(NamedTuple):
    """A figure. ratio: measured. wanted: its target, None where it is only told. at_most: whether smaller is better.

    note: what else is to be known.
    """

    what: str
    rival: str
    ratio: float
    wanted: float | None
    at_most: bool
    unit: str = "×"
    note: str = ""

    @property
    def met(self) -> bool:
        return self.margin >= 1

    @property
    def margin(self) -> float:
        """How many times better than wanted; under 1: worse."""
        if self.wanted is None:
            return 1.0
        return self.wanted / self.ratio if self.at_most else self.ratio / self.wanted

    @property
    def bound(self) -> str:
        return "" if self.wanted is None else f"{'≤' if self.at_most else '≥'} {self.said(self.wanted)}"

    @property
    def verdict(self) -> str:
        return "" if self.wanted is None else "met" if self.met else "MISSED"

    def said(self, value: float) -> str:
        digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
        return f"{value:,.{digits}f}{self.unit}"


def markdown(rows: list[Row]) -> str:
    """Return the table."""
    lines = ["| what | against | measured | wanted | |", "|---|---|--:|--:|---|"]
    for row in rows:
        verdict = "; ".join(text for text in (row.verdict, row.note) if text)
        lines.append(f"| {row.what} | {row.rival} | {row.said(row.ratio)} | {row.bound} | {verdict} |")
    return "\n".join(lines)


def svg(rows: list[Row], caption: str) -> str:
    """Return a picture: a bar for each row, as long as its margin over what was wanted, up to ten times."""
    height = ROW * (len(rows) + 2) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="20" font-weight="bold" fill="#222222">{escape(caption)}</text>',
    ]
    for n, row in enumerate(rows):
        y = ROW * (n + 1) + 14
        length = max(min(_log(row.margin) / _log(10.0), 1.0), -0.3) * BAR * 0.7
        colour = "#777777" if row.wanted is None else "#2a7f4f" if row.met else "#b3261e"
        bound = f"({row.bound} wanted)" if row.bound else "(no target)"
        at = LEFT + (0 if length >= 0 else length)
        parts += [
            f'<text x="{LEFT - 90}" y="{y + 12}" text-anchor="end" fill="#222222">{escape(row.what)}</text>',
            f'<rect x="{at:.1f}" y="{y}" width="{max(abs(length), 1.5):.1f}" height="16" fill="{colour}"/>',
            f'<text x="{LEFT + max(length, 0) + 8:.1f}" y="{y + 12}" fill="#222222">{row.said(row.ratio)} '
            f'<tspan fill="#777777">{escape(bound)}</tspan></text>',
        ]
    bottom = ROW * (len(rows) + 1) + 16
    parts += [
        f'<line x1="{LEFT}" y1="30" x2="{LEFT}" y2="{bottom}" stroke="#444444"/>',
        f'<text x="{LEFT}" y="{bottom + 16}" text-anchor="middle" fill="#777777">what was wanted</text>',
        f'<text x="{LEFT + BAR * 0.7:.0f}" y="{bottom + 16}" text-anchor="middle" fill="#777777">ten times</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _log(value: float) -> float:
    from math import log10

    return log10(max(value, 1e-6))
