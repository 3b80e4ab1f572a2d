"""One prompt without a terminal: signals, the turn, the exit code."""

import asyncio
import io
import signal
import sys
from dataclasses import dataclass

from agentsh.app.build import Running, Screens
from agentsh.app.paths import Home
from agentsh.app.texts import BlobTexts
from agentsh.app.wiring import RENDERERS, load
from agentsh.base.errors import UsageProblem
from agentsh.engine.session import Session
from agentsh.engine.turn import TurnOutcome
from agentsh.ports.renderer import Renderer

EXIT_LIMIT = 7
EXIT_UNASKED = 8
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Output:
    """Where a headless run writes. json: each event's line instead of the final answer."""

    json: bool


class Interruption:
    """What SIGINT, SIGTERM and SIGHUP do, from before there is a session: the turn ends, and the log says so."""

    def __init__(self) -> None:
        self.requested = False
        self._session: Session | None = None

    def install(self) -> None:
        """Take the signals of this process; call it on the event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.request)

    def watch(self, session: Session) -> None:
        """From here on it is this session that is interrupted."""
        self._session = session

    def request(self) -> None:
        """Interrupt what runs, or what is about to."""
        self.requested = True
        if self._session is not None:
            self._session.interrupt()


def screens(output: Output, home: Home, interruption: Interruption) -> Screens:
    """Return what watches a headless run: the answer or the events on stdout, progress on stderr."""
    from agentsh.app.build import blob_store

    def gone(renderer: Renderer, error: Exception) -> None:
        """Whoever reads our output has left: stop as a signal would, so that all is recorded and closed."""
        if isinstance(error, BrokenPipeError):
            interruption.request()
        else:
            print(f"agentsh: the output failed and is off: {error}", file=sys.stderr)

    texts = BlobTexts(blob_store(home))
    if not output.json:
        return Screens((load(RENDERERS["final"])(sys.stdout, sys.stderr, texts),), on_failure=gone)
    notices = load(RENDERERS["final"])(io.StringIO(), sys.stderr, texts)
    return Screens((load(RENDERERS["json"])(sys.stdout.buffer), notices), on_failure=gone)


def piped_prompt(prompt: str | None) -> str | None:
    """Return the prompt with what a pipe brings: alone for None or `-`, else below the words of the command."""
    if prompt != "-" and sys.stdin.isatty():
        return prompt
    if prompt is not None and prompt != "-" and not _has_input():
        return prompt
    text = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    if prompt is None or prompt == "-":
        return text or None
    return f"{prompt}\n\n{text}" if text else prompt


def _has_input() -> bool:
    """Tell whether stdin is a pipe or a file that says something, and not just left open by a caller."""
    import os
    import select
    import stat

    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):
        return True
    return stat.S_ISFIFO(mode) and bool(select.select([0], [], [], 0.2)[0])


async def run_once(running: Running, prompt: str, interruption: Interruption) -> int:
    """Run one turn and close the session; return the exit code."""
    session = running.session
    interruption.watch(session)
    try:
        if interruption.requested:
            return EXIT_INTERRUPTED
        outcome = await session.submit(prompt)
    finally:
        await session.close()
    return exit_code(outcome, session.unasked)


def exit_code(outcome: TurnOutcome, unasked: int) -> int:
    """Return the documented exit code of a turn."""
    if outcome.error is not None:
        return outcome.error.exit_code
    if outcome.reason == "interrupted":
        return EXIT_INTERRUPTED
    if outcome.reason in ("max_steps", "max_cost"):
        return EXIT_LIMIT
    return EXIT_UNASKED if unasked else 0


def need_prompt(prompt: str | None) -> str:
    """Return the prompt.

    Raises:
        UsageProblem: there is none.
    """
    if prompt is None or not prompt.strip():
        raise UsageProblem("there is no prompt", hint="give it as an argument or through a pipe")
    return prompt
