"""Background jobs: commands of the model that go on while it works, each a task of this process and facts of the log.

Nothing of them outlives the process: they are killed when the session is closed, and by the sandbox, or by the
watcher beside unsandboxed ones, when agentsh itself is killed.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from agentsh.base.clock import Clock
from agentsh.base.errors import LogError, ToolFailed
from agentsh.base.light import dataclass, field
from agentsh.base.text import clean, one_line, plural, tail_bytes
from agentsh.base.typed import some
from agentsh.base.waiting import to_the_end
from agentsh.context.jobs import RUNNING
from agentsh.context.state import JobState
from agentsh.engine.journal import Journal
from agentsh.events.tool import JobChanged
from agentsh.ports.jobs import Job, JobEnd
from agentsh.ports.texts import Texts
from agentsh.ports.workspace import ProcessResult, ShellState, Workspace

MAX_RUNNING = 16
MAX_NEWS_BYTES = 1_500
"""Of a job's last output, in what the model is told of its end."""
MAX_RECORDED_BYTES = 256 * 1024
"""Of its last output, in the log."""
MAX_COMMAND_CHARS = 200


class Output(Protocol):
    """Keeps what a job prints."""

    total_bytes: int

    @property
    def end(self) -> int:
        """A position behind all that can be read now."""
        ...

    def add(self, data: bytes) -> None:
        """Keep what there is room for."""
        ...

    def close(self) -> None:
        """The job has ended."""
        ...

    def read(self, begin: int, max_bytes: int) -> str:
        """Return what came from position `begin` on, the last `max_bytes`; of what is no text only the size."""
        ...


class Outputs(Protocol):
    """Where outputs are kept."""

    def make(self, job: str) -> Output:
        """Return a place for a new job's output."""
        ...

    def read(self, job: str, max_bytes: int) -> str:
        """Return the last of what a job of an earlier process printed."""
        ...


@dataclass(slots=True)
class _Live:
    """A job of this process. seen: how much of its output the model was shown.

    begun: its beginning is recorded, or could not be: refused. ended: its end is.
    """

    output: Output
    began_s: float
    task: "asyncio.Task[None] | None" = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    refused: LogError | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    seen: int = 0


class JobKeeper:
    """Implements `ports.jobs.Jobs` for one session.

    quiet: while it is held, no end of a job is recorded: a line of it in the middle of a reply that streams would not
    be there in a replay, in which replies are whole.
    """

    def __init__(self, journal: Journal, workspace: Workspace, outputs: Outputs, texts: Texts, clock: Clock) -> None:
        self._journal = journal
        self._workspace = workspace
        self._outputs = outputs
        self._texts = texts
        self._clock = clock
        self._live: dict[str, _Live] = {}
        self.quiet = asyncio.Lock()

    def list_jobs(self) -> list[Job]:
        """Return the jobs of the session, by id."""
        return [
            self._job(state) for _, state in sorted(self._journal.state.jobs.items(), key=lambda i: _number(i[0]))
        ]

    async def start(
        self, command: str, shell: ShellState, *, call: str, timeout_s: float, outside_sandbox: bool
    ) -> Job:
        """Start a command; see the port."""
        running = [job for job in self._journal.state.jobs.values() if job.state == RUNNING]
        if len(running) >= MAX_RUNNING:
            raise ToolFailed(f"{plural(len(running), 'job')} run already; kill one first")
        job = str(max((_number(name) for name in self._journal.state.jobs), default=0) + 1)
        try:
            output = await asyncio.to_thread(self._outputs.make, job)
        except OSError as error:
            raise ToolFailed(f"there is no place for its output: {error.strerror or error}") from None
        live = self._live[job] = _Live(output, self._clock.monotonic_s())
        begun = JobChanged(job=job, state=RUNNING, call=call, command=command)

        async def run() -> ProcessResult:
            return await self._workspace.run(
                command,
                timeout_s=timeout_s,
                max_bytes=MAX_NEWS_BYTES,
                on_bytes=output.add,
                outside_sandbox=outside_sandbox,
                shell=shell,
            )

        live.task = asyncio.create_task(self._follow(begun, live, command, run))
        try:
            await live.begun.wait()
        except asyncio.CancelledError:  # an interrupted call leaves no job behind
            live.task.cancel()
            live.output.close()
            raise
        if live.refused is not None:
            raise live.refused
        return self._job(self._state(job))

    async def wait(self, job: str, timeout_s: float) -> Job:
        """Return the job when it has ended, or after `timeout_s`."""
        self._state(job)
        if job in self._live:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._live[job].ended.wait()
        return self._job(self._state(job))

    async def kill(self, job: str) -> Job:
        """End a job and all that it started."""
        self._state(job)
        live = self._live.get(job)
        if live is not None and live.task is not None:
            live.task.cancel()
            await live.ended.wait()
        return self._job(self._state(job))

    async def output(self, job: str, max_bytes: int, *, whole: bool = False) -> str:
        """Return what a job printed since this was last asked, or (whole) from its start."""
        self._state(job)
        live = self._live.get(job)
        try:
            if live is None:
                return await asyncio.to_thread(self._outputs.read, job, max_bytes)
            begin, live.seen = 0 if whole else live.seen, live.output.end
            return live.output.read(begin, max_bytes)  # here, so that nothing comes between: a few kB of a warm file
        except OSError as error:
            raise ToolFailed(f"the output of job {job} is not there any more: {error.strerror or error}") from None

    async def close(self) -> None:
        """End all that runs, and record that. Idempotent."""
        tasks = [live.task for live in self._live.values() if live.task is not None and not live.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(
        self, begun: JobChanged, live: _Live, command: str, run: Callable[[], Coroutine[Any, Any, ProcessResult]]
    ) -> None:
        """Record a job's beginning, run it to its end, and record that."""
        state: JobEnd
        exit_code: int | None = None
        try:
            await self._journal.record(begun)
            live.begun.set()
            result = await run()
        except LogError as error:
            live.output.close()
            live.refused = error
            live.begun.set()
            live.ended.set()
            return
        except asyncio.CancelledError:
            state, how = "killed", "was killed"
        except ToolFailed as error:
            state, how = "failed", f"could not be started: {error.message}"
        else:
            exit_code = result.exit
            state, how = _end(result)
        ended = self._ended(begun.job, live, command, (state, how), exit_code)
        try:
            await to_the_end(asyncio.create_task(ended))
        finally:
            live.ended.set()

    async def _ended(
        self, job: str, live: _Live, command: str, end: tuple[JobEnd, str], exit_code: int | None
    ) -> None:
        state, how = end
        live.output.close()
        duration_s = self._clock.monotonic_s() - live.began_s
        shown = await asyncio.to_thread(live.output.read, 0, MAX_RECORDED_BYTES)
        fact = JobChanged(
            job=job,
            state=state,
            **some(exit=exit_code),
            output=shown,
            output_bytes=live.output.total_bytes,
            duration_ms=int(duration_s * 1000),
            for_model=_news(job, command, f"{how} after {duration_s:.0f} s", shown),
        )
        async with self.quiet:
            with suppress(LogError):  # it is held, and written when the disk has room
                await self._journal.record(fact, happened=True)
        known = self._journal.state.jobs
        for old in [name for name, each in self._live.items() if name not in known and each.ended.is_set()]:
            del self._live[old]

    def _state(self, job: str) -> JobState:
        found = self._journal.state.jobs.get(job)
        if found is None:
            known = ", ".join(sorted(self._journal.state.jobs, key=_number)) or "none"
            raise ToolFailed(f"there is no job {one_line(job, 40)!r}; jobs: {known}")
        return found

    def _job(self, state: JobState) -> Job:
        live = self._live.get(state.job)
        runs = state.state == RUNNING
        return Job(
            id=state.job,
            command=one_line(self._texts.text(state.command), MAX_COMMAND_CHARS),
            state=state.state,  # type: ignore[arg-type]
            exit=state.exit,
            output_bytes=live.output.total_bytes if live is not None else state.output_bytes,
            duration_s=self._clock.monotonic_s() - live.began_s if live and runs else state.duration_ms / 1000,
        )


def _end(result: ProcessResult) -> tuple[JobEnd, str]:
    also = f" ({result.put_back.rstrip('.')})" if result.undone else ""
    if result.stopped:
        return "killed", f"was killed ({result.stopped})" + also
    if result.timed_out:
        return "timed_out", "was killed at its time limit" + also
    return "ended", f"has ended with exit {result.exit}" + also


def _news(job: str, command: str, how: str, output: str) -> str:
    said = f"Job {job} (`{one_line(command, MAX_COMMAND_CHARS)}`) {how}."
    last = tail_bytes(clean(output), MAX_NEWS_BYTES).strip("\n")
    return f"{said} Its last output:\n{last}" if last else f"{said} It printed nothing."


def _number(job: str) -> int:
    return int(job) if job.isdecimal() else 0
