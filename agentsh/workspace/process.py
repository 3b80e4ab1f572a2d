"""Runs one process so that it always comes back: within its time, with bounded memory, leaving nothing behind.

No child watcher and no signal handler of asyncio is used (a pidfd, or a waiting thread where there is none), so it
works in any thread. The child is reaped only after its group was killed: until then its number cannot be reused, so
that no signal can reach a stranger.
"""

import asyncio
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from agentsh.base.errors import ToolFailed
from agentsh.base.ids import random_hex
from agentsh.base.waiting import to_the_end
from agentsh.ports.workspace import ProcessResult, ShellState
from agentsh.workspace import strays
from agentsh.workspace.environ import RUN_MARK
from agentsh.workspace.launching import with_limits
from agentsh.workspace.sandbox_port import Launch, Limits, Sandbox
from agentsh.workspace.shell_state import Report, exports_of, has_bash, kept_by
from agentsh.workspace.sink import Sink
from agentsh.workspace.strays import Birth, kill_marked
from agentsh.workspace.watcher import Gate, Watcher

TERM_GRACE_S = 1.0
"""From SIGTERM to SIGKILL at the time limit."""
CANCEL_GRACE_S = 0.2
"""The same on cancellation: the prompt must be back within half a second."""
QUIET_S = 0.15
"""After the direct child ended: how long a descendant may say nothing before the pipe is closed."""
MAX_DRAIN_S = 1.0
"""After the direct child ended: how long a descendant is listened to at all."""
WATCH_S = 0.05
"""How often processes are counted, where there is a limit: one short read as long as there are few."""
_KILLED_S = 2.0


class Ended(NamedTuple):
    """How a process ended. exit: code, negative signal number, None at the time limit.

    left_running: descendants were left when the direct child ended; they were killed. stopped: why it was killed.
    """

    exit: int | None
    timed_out: bool
    left_running: bool
    duration_ms: int
    stopped: str | None = None


async def run_shell(
    command: str,
    *,
    cwd: str,
    environment: Mapping[str, str],
    timeout_s: float,
    max_bytes: int,
    on_output: Callable[[str], None] | None = None,
    on_bytes: Callable[[bytes], None] | None = None,
    sandbox: Sandbox | None = None,
    limits: Limits | None = None,
    exported: Mapping[str, str | None] | None = None,
    watcher: Watcher | None = None,
    look: Callable[[], str | None] | None = None,
) -> ProcessResult:
    """Run a shell line with /dev/null as its input, stdout and stderr in one pipe; see `Workspace.run`.

    limits: for a command that no sandbox holds; a sandbox has its own. exported: variables that the shell sets first.
    Of what it leaves to the next one the directory is absolute. watcher: is told of it. look: see `supervise`.
    """
    sink = Sink(max_bytes, on_output, on_bytes)
    report = Report() if has_bash() else None
    argv = ["/bin/sh", "-c", command] if report is None else kept_by(command, exported or {}, report.fd)
    launch = Launch(with_limits(limits, argv) if limits else argv)
    try:
        if sandbox is not None:
            launch = sandbox.launch(argv, cwd)
        ended = await supervise(
            launch.argv,
            cwd=cwd,
            environment={**environment, **launch.environment},
            stdin=subprocess.DEVNULL,
            sinks=[sink],
            timeout_s=timeout_s,
            pass_fds=[*launch.pass_fds, report.fd] if report is not None else launch.pass_fds,
            max_processes=limits.processes if limits is not None else 0,
            watcher=watcher,
            look=look,
        )
    finally:
        launch.started()
        left = launch.left_running()
        told = report.read() if report is not None else None
    capture = sink.capture
    exports, not_kept = exports_of(told.environment, {**environment, **launch.environment}) if told else ({}, ())
    return ProcessResult(
        exit=ended.exit,
        output=capture.text(),
        total_bytes=capture.total_bytes,
        whole=capture.whole() if capture.cut else None,
        timed_out=ended.timed_out,
        left_running=ended.left_running or (left and not ended.timed_out),
        duration_ms=ended.duration_ms,
        stopped=ended.stopped,
        shell=ShellState(told.directory, exports) if told else None,
        not_kept=not_kept,
    )


async def supervise(
    argv: Sequence[str],
    *,
    cwd: str | None,
    environment: Mapping[str, str],
    stdin: int,
    sinks: Sequence[Sink],
    timeout_s: float,
    pass_fds: Sequence[int] = (),
    max_processes: int = 0,
    watcher: Watcher | None = None,
    look: Callable[[], str | None] | None = None,
) -> Ended:
    """Run a program in a session and process group of its own until its direct child has ended.

    cwd: None for the current directory. sinks: one for stdout and stderr together, or one for each. pass_fds: further
    descriptors for it. max_processes: with more descendants than that at once all are killed; 0 for no limit.
    watcher: ends it when this process is killed; its input is then /dev/null. look: is asked every 50 ms for a
    reason to end it before its time.
    At the time limit the group gets SIGTERM, a second later SIGKILL. Whatever descendants are left then are killed,
    those too that left the group but not the mark in their environment. Cancellation does the same, faster, and is
    passed on afterwards.

    Raises:
        ToolFailed: it could not be started.
    """
    mark = random_hex(8)
    began_s = time.monotonic()
    environment = {**environment, RUN_MARK: mark}
    if watcher is None:
        child = _Child(_spawn(argv, cwd, environment, stdin, sinks, pass_fds), mark)
    else:
        child = _watched(argv, cwd, environment, sinks, pass_fds, mark, watcher)
    timed_out = held = False
    watch = asyncio.create_task(child.watch(max_processes, look)) if max_processes or look else None
    try:
        if not await _within(timeout_s, child.ended):
            timed_out = True
            await child.stop(TERM_GRACE_S, sinks)
        held = not await _drained(sinks)
    except asyncio.CancelledError:
        with suppress(asyncio.CancelledError):
            await to_the_end(asyncio.create_task(child.stop(CANCEL_GRACE_S, sinks)))
        raise
    finally:
        if watch is not None:
            watch.cancel()
        left = child.clear()
        for sink in sinks:
            sink.close()
    return Ended(
        exit=None if timed_out else child.exit,
        timed_out=timed_out,
        left_running=(left or held) and not timed_out and child.stopped is None,
        duration_ms=int((time.monotonic() - began_s) * 1000),
        stopped=child.stopped,
    )


def _watched(
    argv: Sequence[str],
    cwd: str | None,
    environment: Mapping[str, str],
    sinks: Sequence[Sink],
    pass_fds: Sequence[int],
    mark: str,
    watcher: Watcher,
) -> "_Child":
    """Start a program that begins only when the watcher knows of it."""
    gate = Gate()
    try:
        child = _Child(_spawn(Gate.before(argv), cwd, environment, gate.stdin, sinks, pass_fds), mark, watcher)
        gate.let_in()
    finally:
        gate.close()
    return child


def _spawn(
    argv: Sequence[str],
    cwd: str | None,
    environment: Mapping[str, str],
    stdin: int,
    sinks: Sequence[Sink],
    pass_fds: Sequence[int],
) -> "subprocess.Popen[bytes]":
    ends: list[int] = []
    try:
        ends.extend(sink.open() for sink in sinks)
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=ends[0],
            stderr=ends[-1],
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except (OSError, ValueError) as error:
        for sink in sinks:
            sink.close()
        raise ToolFailed(f"the command could not be started: {_why(error, cwd)}") from None
    finally:
        for end in ends:
            os.close(end)


def _why(error: OSError | ValueError, cwd: str | None) -> str:
    if not isinstance(error, OSError):
        return "it holds a character that no command line can hold"
    if error.errno == errno.E2BIG:
        return "it is too long; put it into a file and run that"
    if cwd is not None and isinstance(error, FileNotFoundError) and not os.path.isdir(cwd):
        return "the workspace directory is gone"
    return f"{error.filename or 'the system'}: {(error.strerror or 'refused').lower()}"


class _Child:
    """The direct child and its group. ended: it has; exit: its code, once it was reaped. stopped: killed for that."""

    def __init__(self, process: "subprocess.Popen[bytes]", mark: str, watcher: Watcher | None = None) -> None:
        self.ended = asyncio.Event()
        self.exit: int | None = None
        self.stopped: str | None = None
        self._process = process
        self._mark = mark
        self._watcher = watcher
        if watcher is not None:
            watcher.began(process.pid)
        self._birth = Birth.of(process.pid)
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Task[None] | None = None
        self._pidfd = -1
        try:
            self._pidfd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):  # not Linux, or an old one: a thread waits
            self._waiter = self._loop.create_task(self._wait_in_thread())
        else:
            self._loop.add_reader(self._pidfd, self._on_end)

    async def watch(self, most: int, look: Callable[[], str | None] | None) -> None:
        """Kill everything once there are more than `most` processes: the limit of the system spares root.

        look: names another reason.
        """
        before = strays.tasks()
        while self.stopped is None:
            await asyncio.sleep(WATCH_S)
            why = look() if look is not None else None
            if why is not None:
                self.stopped = why
                self._signal(signal.SIGTERM)  # the helper of Landlock ends all that it took in
                await _within(TERM_GRACE_S, self.ended)
                self._signal(signal.SIGKILL)
                kill_marked(RUN_MARK, self._mark)
                return
            if not most or strays.tasks() - before <= most:
                continue
            # Held still while they are counted: a bomb grows faster than anybody counts.
            self._signal(signal.SIGSTOP)
            if strays.more_marked(RUN_MARK, self._mark, self._birth.pid, most):
                self.stopped = f"it had more than {most:,} processes"
                self._signal(signal.SIGKILL)
                kill_marked(RUN_MARK, self._mark)
            self._signal(signal.SIGCONT)

    async def stop(self, grace_s: float, sinks: Sequence[Sink]) -> None:
        """End the group: SIGTERM, and SIGKILL unless it lets go of the child and the pipes within the grace."""
        self._signal(signal.SIGTERM)
        await _within(grace_s, self.ended, *(sink.ended for sink in sinks))
        self._signal(signal.SIGKILL)
        await _within(_KILLED_S, self.ended)

    def clear(self) -> bool:
        """Reap the child and kill what is left of it; return whether anything was."""
        if not self.ended.is_set():
            self._signal(signal.SIGKILL)
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        # By the mark first: it tells the living from those that ended just now and wait to be reaped by init.
        left = kill_marked(RUN_MARK, self._mark, self._birth) > 0
        grouped = self._signal(signal.SIGKILL)
        if self._watcher is not None:
            self._watcher.ended(self._process.pid)
        with suppress(subprocess.TimeoutExpired):  # only a process that hangs in the kernel does not die of SIGKILL
            self.exit = self._process.wait(timeout=_KILLED_S)
        return left if strays.AVAILABLE else grouped

    def _signal(self, number: signal.Signals) -> bool:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # PermissionError: macOS, where only zombies are left
            return False
        return True

    def _on_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.ended.set()

    async def _wait_in_thread(self) -> None:
        await asyncio.to_thread(self._process.wait)
        self.ended.set()


async def _drained(sinks: Sequence[Sink]) -> bool:
    """Read on until the pipes end; False if whoever still holds them was quiet for a while or spoke for too long."""
    start_s = time.monotonic()
    while not all(sink.ended.is_set() for sink in sinks):
        quiet_since_s = max(start_s, *(sink.heard_s for sink in sinks))
        left_s = min(quiet_since_s + QUIET_S, start_s + MAX_DRAIN_S) - time.monotonic()
        if left_s <= 0:
            return False
        await _within(left_s, *(sink.ended for sink in sinks))
    return True


async def _within(seconds: float, *events: asyncio.Event) -> bool:
    """Wait for all of the events; tell whether they came in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
    return all(event.is_set() for event in events)
