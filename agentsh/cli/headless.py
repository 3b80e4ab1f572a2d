"""One prompt without a terminal: signals, the turn, the exit code."""

import asyncio
import io
import signal
import sys

from agentsh.app.build import Running
from agentsh.app.paths import Home
from agentsh.app.plan import Screens
from agentsh.app.screens import final_renderer, json_renderer
from agentsh.app.stores import blob_store
from agentsh.app.texts import BlobTexts
from agentsh.base.text import plural
from agentsh.engine.session import Session
from agentsh.engine.turn import TurnOutcome
from agentsh.events.turn import Attachment
from agentsh.ports.renderer import Renderer

EXIT_LIMIT = 7
EXIT_UNASKED = 8
EXIT_INTERRUPTED = 130


class Interruption:
    """What SIGINT, SIGTERM and SIGHUP do, from before there is a session: the turn ends, and the log says so.

    output_lost: the turn went on, but what it printed did not arrive.
    """

    def __init__(self) -> None:
        self.requested = False
        self.output_lost = False
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


def screens(home: Home, interruption: Interruption, *, json: bool) -> Screens:
    """Return what watches a headless run: the answer or (json) each event's line on stdout, progress on stderr."""

    def gone(renderer: Renderer, error: Exception) -> None:
        """Whoever reads our output has left: stop as a signal would, so that all is recorded and closed."""
        if isinstance(error, BrokenPipeError):
            interruption.request()
        else:
            interruption.output_lost = True
            print(f"agentsh: the output failed and is off: {error}", file=sys.stderr)

    texts = BlobTexts(blob_store(home))
    if not json:
        return Screens((final_renderer(sys.stdout, sys.stderr, texts),), on_failure=gone)
    notices = final_renderer(io.StringIO(), sys.stderr, texts)
    return Screens((json_renderer(sys.stdout.buffer), notices), on_failure=gone)


async def run_once(
    running: Running, prompt: str, interruption: Interruption, along: tuple[Attachment, ...] = ()
) -> int:
    """Run one turn and close the session; return the exit code. along: goes with the prompt."""
    session, jobs = running.session, 0
    interruption.watch(session)
    try:
        if interruption.requested:
            return EXIT_INTERRUPTED
        outcome = await session.submit(prompt, along)
        jobs = sum(job.state == "running" for job in session.list_jobs())
    finally:
        await session.close()
    if jobs:
        print(f"agentsh: {plural(jobs, 'background job')} ended with the session", file=sys.stderr)
    code = exit_code(outcome, session.unasked)
    if code == EXIT_UNASKED:
        calls = plural(session.unasked, "call")
        print(f"agentsh: {calls} denied: nobody to ask (--mode auto or yolo asks less)", file=sys.stderr)
    if code == EXIT_LIMIT:
        print(f"agentsh: `agentsh resume {running.id}` goes on", file=sys.stderr)
    return code or int(interruption.output_lost)


def exit_code(outcome: TurnOutcome, unasked: int) -> int:
    """Return the documented exit code of a turn."""
    if outcome.error is not None:
        return outcome.error.exit_code
    if outcome.reason == "interrupted":
        return EXIT_INTERRUPTED
    if outcome.reason in ("max_steps", "max_cost"):
        return EXIT_LIMIT
    return EXIT_UNASKED if unasked else 0
