"""Commands of the user's own, typed as `!command`: run in the workspace, recorded, and told to the model or not.

What they change in the workspace is the user's: the next snapshot takes it in as coming from outside, and a rewind
leaves it alone.
"""

import asyncio
import contextlib

from agentsh.base.clock import Clock
from agentsh.base.errors import LogWriteFailed, ToolFailed, UsageProblem
from agentsh.base.text import as_seen, middle_cut, tail_bytes
from agentsh.base.waiting import to_the_end
from agentsh.context.repairs import MAX_MODEL_BYTES
from agentsh.context.state import SessionState
from agentsh.engine.journal import Journal
from agentsh.engine.saver import Saver
from agentsh.engine.secret_stream import SeenOutput
from agentsh.engine.secrets import UnknownSecret
from agentsh.events.event import Event, NewFact
from agentsh.events.signals import ToolProgress
from agentsh.events.tool import PartialOutput
from agentsh.events.user import CommandStatus, UserCommand, UserCommandEnded
from agentsh.ports.workspace import ProcessResult, Workspace

LIMIT_S = 24 * 3600.0
"""The user is there and can interrupt; this only ends what was forgotten."""
MAX_SEEN_BYTES = 4_000
"""How much of the newest output each partial_output keeps."""
NOT_RUN = "It did not run: it had no effects."
WHOLE_NOTE = "the whole is in the log"


class UserCommands:
    """Runs them, one at a time."""

    def __init__(self, journal: Journal, workspace: Workspace, clock: Clock) -> None:
        self._journal = journal
        self._workspace = workspace
        self._clock = clock

    async def run(self, command: str, *, joins: bool, cause: int | None = None) -> UserCommandEnded:
        """Run a command to its end, and record how it ended. A cancellation kills it, and is passed on after that.

        Raises:
            LogError: the log cannot be written; before it has started nothing was run.
            UsageProblem: it names a secret whose value is not known any more.
        """
        line = self._restored(command)
        intent = UserCommand(command=command, joins=joins, sandbox=self._workspace.sandbox)
        start = await self._begin(intent, cause)
        began_s, seen = self._clock.monotonic_s(), SeenOutput(self._journal.secrets, MAX_MODEL_BYTES)
        saver = Saver(self._journal, self._clock, lambda text: self._partial(start, text))

        def progress(text: str) -> None:
            if shown := seen.add(as_seen(text)):
                saver.add(shown)
                self._journal.signal(ToolProgress(start.seq, shown))

        try:
            async with saver.running():
                result = await self._workspace.run(
                    line, timeout_s=LIMIT_S, max_bytes=MAX_MODEL_BYTES, on_output=progress
                )
        except asyncio.CancelledError:
            fact = self._ended("interrupted", seen.end(), began_s)
            recording = asyncio.create_task(self._journal.record(fact, cause=start.seq, happened=True))
            with contextlib.suppress(LogWriteFailed):  # it is held, and written first when that can be done
                await to_the_end(recording)
            raise
        except ToolFailed as error:
            fact = self._ended("error", str(error), began_s)
        else:
            fact = self._of(result, began_s)
        await to_the_end(asyncio.create_task(self._journal.record(fact, cause=start.seq, happened=True)))
        return fact

    async def _begin(self, intent: UserCommand, cause: int | None) -> Event:
        """Record that it begins; where that is interrupted, or cannot be synced, also that it did not run."""
        try:
            return await self._journal.record(intent, cause=cause, durable=True)
        except (asyncio.CancelledError, LogWriteFailed) as error:
            interrupted = isinstance(error, asyncio.CancelledError)
            await to_the_end(asyncio.create_task(self._not_run("interrupted" if interrupted else "error")))
            raise

    async def _not_run(self, status: CommandStatus) -> None:
        def close(state: SessionState) -> list[NewFact]:
            if state.command is None:  # not even the intent is in the log
                return []
            return [
                NewFact(UserCommandEnded(status=status, exit=None, text=NOT_RUN, duration_ms=0), state.command.seq)
            ]

        with contextlib.suppress(LogWriteFailed):  # it is held, and written first when that can be done
            await self._journal.record_from(close, happened=True)  # behind the intent, which may be on its way

    def _of(self, result: ProcessResult, began_s: float) -> UserCommandEnded:
        text = as_seen(result.output)
        if result.stopped:
            text = f"{text.rstrip()}\n[killed: {result.stopped}]".lstrip()
        if result.undone:
            text = f"{text.rstrip()}\n[{result.put_back}]".lstrip()
        if result.left_running:
            text = f"{text.rstrip()}\n[A process was still running in the background and was killed.]".lstrip()
        fact = self._ended("timed_out" if result.timed_out else "ok", text, began_s)
        more: dict[str, object] = {} if result.exit is None else {"exit": result.exit}
        if result.whole is not None:
            more["output"] = self._journal.secrets.clean(result.whole.decode("utf-8", "replace"))
        return fact.model_copy(update=more) if more else fact

    def _ended(self, status: CommandStatus, text: str, began_s: float) -> UserCommandEnded:
        duration_ms = int((self._clock.monotonic_s() - began_s) * 1000)
        cut = middle_cut(self._journal.secrets.clean(text), MAX_MODEL_BYTES, WHOLE_NOTE)
        return UserCommandEnded(status=status, exit=None, text=cut, duration_ms=duration_ms)

    def _restored(self, command: str) -> str:
        """Return the command with the values of the secrets that it names."""
        try:
            return str(self._journal.secrets.restore({"command": command})["command"])
        except UnknownSecret as unknown:
            text = f"{unknown} stands for a secret whose value is not known any more, so nothing was run"
            hint = "reading where it is kept makes it known again; or type what it stands for"
            raise UsageProblem(text, hint=hint) from None

    def _partial(self, start: Event, text: str) -> NewFact:
        return NewFact(PartialOutput(call="", text=tail_bytes(text, MAX_SEEN_BYTES)), start.seq)
