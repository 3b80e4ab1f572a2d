"""A session on a terminal: the scrollback renderer, the approver, the prompt."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from agentsh.app.build import Running, blob_store
from agentsh.app.paths import Home
from agentsh.app.screens import screen_renderer
from agentsh.app.settings import Settings
from agentsh.app.texts import BlobTexts
from agentsh.events.event import Event
from agentsh.repl.ask import TerminalApprover
from agentsh.repl.loop import run_repl
from agentsh.repl.terminal import ReplIO, quiet

SHOWN_TURNS = 3
"""How many of the newest turns `resume` shows again."""


class Terminal:
    """Puts the parts of a terminal together before there is a session, and runs it."""

    def __init__(self, home: Home, settings: Settings) -> None:
        screen: Any = screen_renderer(sys.stdout, BlobTexts(blob_store(home)), live=True)
        self.renderer = screen
        self._io = ReplIO(
            screen=screen,
            history_file=home.root / "history",
            models=tuple(dict.fromkeys([*settings.models, "demo"])),
        )
        self.approver = TerminalApprover(self._io)

    def starting(self) -> AbstractContextManager[None]:
        """While the session is made or opened: keys that are typed already go to the first prompt."""
        return quiet(self._io)

    def show_past(self, events: Sequence[Event]) -> None:
        """Show the beginning and the newest turns of a session again; the whole of it is what `replay` is for."""
        starts = [n for n, e in enumerate(events) if e.fact.type == "user_message" and _opens_turn(events, n)]
        from_ = starts[-SHOWN_TURNS] if len(starts) > SHOWN_TURNS else 0
        self.renderer.suspend()  # so that all of it is one write
        for event in [*events[:1], *events[max(from_, 1) :]]:
            self.renderer.on(event)
        self.renderer.resume()

    async def run(self, running: Running, prompt: str | None) -> int:
        """Talk until the user leaves; return the exit code."""
        self._io.sandbox = running.workspace.sandbox
        self._io.first_text = prompt
        if running.session.state.model != "demo":
            from agentsh.models.openai_chat import preload

            preload()
        return await run_repl(running.session, self._io)


def _opens_turn(events: Sequence[Event], n: int) -> bool:
    """Whether the user message at `n` is the first of its turn: only finished turns and quiet facts before it."""
    for event in reversed(events[:n]):
        if event.fact.type in ("turn_finished", "session_init"):
            return True
        if event.fact.type in ("user_message", "agent_message"):
            return False
    return True
