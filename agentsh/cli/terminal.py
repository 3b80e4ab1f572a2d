"""A session on a terminal: the scrollback renderer, the approver, the prompt."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, TextIO, cast

from agentsh.app.backend import AppBackend
from agentsh.app.build import Running
from agentsh.app.past import Past
from agentsh.app.paths import Home
from agentsh.app.plan import Screens
from agentsh.app.screens import colours, screen_renderer
from agentsh.app.settings import Settings
from agentsh.app.stores import blob_store
from agentsh.app.texts import BlobTexts
from agentsh.base.text import plural
from agentsh.cli.behind import load_behind
from agentsh.cli.stage import Stage as SessionStage
from agentsh.engine.turn import Limits
from agentsh.events.turn import Attachment
from agentsh.repl.ask import TerminalApprover
from agentsh.repl.looks import looks_of
from agentsh.repl.loop import run_repl
from agentsh.repl.outputs import Outputs
from agentsh.repl.stage import Stage
from agentsh.repl.terminal import Onward, ReplIO, keep_typed, quiet

if TYPE_CHECKING:
    from agentsh.repl.plain_stage import PlainStage


class Terminal:
    """Puts the parts of a terminal together before there is a session, and runs it."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        *,
        remarks: Sequence[str] = (),
        trouble: bool = False,
        plain: bool = False,
    ) -> None:
        """Take the terminal. remarks: said when the prompt comes up, the first of them loud where `trouble`.

        plain: talk line by line, whatever terminal it is.
        """
        self.settings = settings
        texts = BlobTexts(blob_store(home))
        lines = _line_mode() if plain or dumb() or settings.ui.screen_reader else None
        stage = Stage(sys.stdout)
        region = lines or stage
        looks = looks_of(settings.ui.theme, os.environ, possible=lines is None and colours(sys.stdout))
        self.renderer = screen_renderer(
            cast(TextIO, region),
            texts,
            live=lines is None,
            plain=not looks.colour,
            region=region,
            palette=looks.palette,
        )
        self._outputs = Outputs(texts.text)
        self._io = ReplIO(
            screen=self.renderer,
            stage=stage,
            text=texts.text,
            history_file=home.root / "history",
            vi=settings.ui.keys == "vi",
            private=not settings.ui.history,
            outputs=self._outputs,
            notify=settings.ui.notify,
            title=settings.ui.title,
            models=tuple(dict.fromkeys([*settings.models, "demo"])),
            looks=looks,
            menus=lines is None,
            plain=lines,
            remarks=remarks,
            trouble=trouble,
        )
        self.approver = TerminalApprover(self._io)

    @property
    def onward(self) -> Onward | None:
        """Where to go on once `run` has returned; None to leave."""
        return self._io.onward

    def stage(self, limits: Limits) -> SessionStage:
        """Return what a session that is about to be opened has around it."""
        screens = Screens((self.renderer, self._outputs), self.approver, self.approver)
        return SessionStage(screens, limits, self.show_past)

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

    def show_past(self, past: Past) -> None:
        """Show the beginning and the newest turns of a session again; the whole of it is what `replay` is for."""
        shown = past.shown()
        self.renderer.suspend()  # so that all of it is one write
        if shown.first is not None:
            self.renderer.on(shown.first)
        if shown.left_out:
            left_out = plural(shown.left_out, "earlier event")
            self.renderer.remark(f"… {left_out} not shown here: `agentsh replay {past.session}` shows all")
        for event in shown.newest:
            self.renderer.on(event)
            self._outputs.on(event)
        self.renderer.resume()

    async def run(self, running: Running, prompt: str | None, along: tuple[Attachment, ...] = ()) -> int:
        """Talk until the user leaves; return the exit code. along: goes with the first message."""
        self._io.along = along
        self._io.workspace, self._io.sandbox = running.workspace, running.workspace.sandbox
        self._io.clean = running.clean
        self._io.context = partial(_context_rows, running)
        self._io.fork = partial(_forked, running)
        self._io.backend = AppBackend(running, self.settings)
        self._io.first_typed = prompt is None
        self._io.behind = partial(load_behind, model=running.session.state.model != "demo")
        with quiet(self._io):  # an Enter that is typed before the prompt reads is one for it too
            self._io.first_text = prompt if prompt is not None else self._typed_before()
            return await run_repl(running.session, self._io)


async def _context_rows(running: Running, columns: int) -> list[str]:
    from agentsh.cli.context import newest_rows

    return await asyncio.to_thread(newest_rows, running.home, running.id, columns)


async def _forked(running: Running, at: int | None) -> list[str]:
    from agentsh.app.forking import fork

    made = await fork(running.home, running.id, at)
    return [f"{made.id} goes on from event {made.upto_seq}: agentsh resume {made.id}", *made.notes]


def _line_mode() -> "PlainStage":
    from agentsh.repl.plain_stage import PlainStage

    return PlainStage(sys.stdout)


def dumb() -> bool:
    """Tell whether the terminal knows no more than to print."""
    return os.environ.get("TERM", "") in ("dumb", "")
