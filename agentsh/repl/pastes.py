"""Pastes: a long one is shown as one word and sent whole; one whose end mark was lost is ended."""

import asyncio
import re
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.input import Input

from agentsh.base.text import plural

FOLD_LINES = 12
FOLD_CHARS = 2_000
"""A paste beyond either of these is shown as one word."""
QUIET_S = 1.4
"""A paste whose end mark does not come is taken as ended after this much silence."""
LOOK_S = 0.2
TYPING_CHARS = 16
"""No more than this between two looks is somebody typing, not a paste that goes on."""
_WORD = re.compile(r"\[Pasted #(\d+) [\d,]+ (?:lines?|characters)\]")


class Pastes:
    """Keeps what stands behind the words."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def shown(self, text: str) -> str:
        """Return what stands for a paste in the input."""
        if text.count("\n") < FOLD_LINES and len(text) <= FOLD_CHARS:
            return text
        self._texts.append(text)
        return self._word(len(self._texts))

    def whole(self, text: str) -> str:
        """Return a text with every word replaced by its paste. A word that was edited is a word."""

        def paste(match: re.Match[str]) -> str:
            n = int(match[1])
            known = self._texts[n - 1] if 0 < n <= len(self._texts) else ""
            return known if known and self._word(n) == match[0] else match[0]

        return _WORD.sub(paste, text)

    def _word(self, n: int) -> str:
        text = self._texts[n - 1]
        lines = text.removesuffix("\n").count("\n") + 1
        return f"[Pasted #{n} {plural(lines, 'line') if lines > 1 else f'{len(text):,} characters'}]"


async def watch_paste(session: PromptSession[Any]) -> None:
    """End a paste whose end mark was lost. Until it comes the parser takes every key as a part of the paste."""
    size, quiet_s = 0, 0.0
    while True:
        await asyncio.sleep(LOOK_S)
        now = _open_paste(session.input)
        if now is None:
            size, quiet_s = 0, 0.0
            continue
        quiet_s = 0.0 if now - size > TYPING_CHARS else quiet_s + LOOK_S
        size = now
        if quiet_s >= QUIET_S:
            _end_paste(session)


def _end_paste(session: PromptSession[Any]) -> None:
    session.input.vt100_parser.feed("\x1b[201~")  # type: ignore[attr-defined]
    app = session.app
    app.key_processor.feed_multiple(session.input.flush_keys())
    app.key_processor.process_keys()


def _open_paste(source: Input) -> int | None:
    """Return how much a parser holds of a paste that has not ended, or None."""
    parser = getattr(source, "vt100_parser", None)
    if parser is None or not getattr(parser, "_in_bracketed_paste", False):
        return None
    return len(getattr(parser, "_paste_buffer", ""))
