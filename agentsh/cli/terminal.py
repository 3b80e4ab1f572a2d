"""A session on a terminal: the scrollback renderer, the approver, the prompt."""

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TextIO, cast

from agentsh.app.build import Running
from agentsh.app.paths import Home
from agentsh.app.screens import screen_renderer
from agentsh.app.settings import Settings
from agentsh.app.stores import blob_store
from agentsh.app.texts import BlobTexts
from agentsh.events.event import Event
from agentsh.repl.ask import TerminalApprover
from agentsh.repl.loop import run_repl
from agentsh.repl.stage import Stage
from agentsh.repl.terminal import ReplIO, keep_typed, quiet

SHOWN_TURNS = 3
"""How many of the newest turns `resume` shows again."""


class Terminal:
    """Puts the parts of a terminal together before there is a session, and runs it."""

    def __init__(self, home: Home, settings: Settings) -> None:
        stage, texts = Stage(sys.stdout), BlobTexts(blob_store(home))
        self.renderer = screen_renderer(cast(TextIO, stage), texts, live=True, region=stage)
        self._io = ReplIO(
            screen=self.renderer,
            stage=stage,
            text=texts.text,
            history_file=home.root / "history",
            notify=settings.ui.notify and not dumb(),
            title=settings.ui.title and not dumb(),
            models=tuple(dict.fromkeys([*settings.models, "demo"])),
        )
        self.approver = TerminalApprover(self._io)

    def _typed_before(self) -> str | None:
        """Return a first message that was typed, Enter included, before there was a prompt; the rest stays typed."""
        keep_typed(self._io)
        line, enter, rest = "".join(self._io.typed).partition("\n")
        if not enter or not line.strip():
            return None
        self._io.typed[:] = [rest] if rest else []
        return line

    def starting(self) -> AbstractContextManager[None]:
        """While the session is made or opened: keys that are typed already go to the first prompt."""
        return quiet(self._io)

    def show_past(self, events: Sequence[Event]) -> None:
        """Show the beginning and the newest turns of a session again; the whole of it is what `replay` is for."""
        starts = turn_starts(events)
        from_ = starts[-SHOWN_TURNS] if len(starts) > SHOWN_TURNS else 0
        self.renderer.suspend()  # so that all of it is one write
        for event in [*events[:1], *events[max(from_, 1) :]]:
            self.renderer.on(event)
        self.renderer.resume()

    async def run(self, running: Running, prompt: str | None) -> int:
        """Talk until the user leaves; return the exit code."""
        self._io.workspace, self._io.sandbox = running.workspace, running.workspace.sandbox
        self._io.first_text = prompt if prompt is not None else self._typed_before()
        if running.session.state.model != "demo":
            from agentsh.models.openai_chat import preload

            preload()
        return await run_repl(running.session, self._io)


def dumb() -> bool:
    """Tell whether the terminal knows no more than to print."""
    return os.environ.get("TERM", "") in ("dumb", "")


def turn_starts(events: Sequence[Event]) -> list[int]:
    """Return the places of the user messages that open a turn; one that joins a running turn opens none."""
    starts, running = [], False
    for n, event in enumerate(events):
        match event.fact.type:
            case "session_init" | "turn_finished":
                running = False
            case "user_message":
                if not running:
                    starts.append(n)
                running = True
            case "agent_message":
                running = True
    return starts
