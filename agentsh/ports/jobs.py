"""The port to the background jobs of a session."""

from typing import Literal, NamedTuple, Protocol

from agentsh.ports.workspace import ShellState

JobEnd = Literal["ended", "timed_out", "killed", "failed", "unknown"]
"""ended: by itself. failed: it could not be started. unknown: agentsh ended, was killed itself, while it ran."""


class Job(NamedTuple):
    """A command in the background. id: short, unique in the session. state: `running`, or how it came to its end.

    exit: its code, negative signal number, None while it runs or where it was killed. output_bytes: so far, of which
    the first 1 MiB and the last 64 KiB are kept. duration_s: so far.
    """

    id: str
    command: str
    state: Literal["running"] | JobEnd
    exit: int | None
    output_bytes: int
    duration_s: float


class Jobs(Protocol):
    """Runs commands in the background, for as long as this process has the session open."""

    def list_jobs(self) -> list[Job]:
        """Return the jobs of the session, oldest first: all that run, and the newest of those that ended."""
        ...

    async def start(
        self, command: str, shell: ShellState, *, call: str, timeout_s: float, outside_sandbox: bool
    ) -> Job:
        """Start a command. call: the id of the tool call that asks for it.

        Raises:
            ToolFailed: too many run already.
        """
        ...

    async def wait(self, job: str, timeout_s: float) -> Job:
        """Return the job when it has ended, or after `timeout_s`.

        Raises:
            ToolFailed: there is no such job.
        """
        ...

    async def kill(self, job: str) -> Job:
        """End a job and all that it started; return it. One that has ended stays as it is.

        Raises:
            ToolFailed: there is no such job.
        """
        ...

    async def output(self, job: str, max_bytes: int, *, whole: bool = False) -> str:
        """Return what a job printed since this was last asked, or (whole) from its start: the last `max_bytes` of it.

        Of output that is no text only the size is told.

        Raises:
            ToolFailed: there is no such job, or its output cannot be read.
        """
        ...
