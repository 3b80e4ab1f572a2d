"""The tool that runs a command."""

import signal
from typing import Annotated

from agentsh.base.text import as_seen, ends_of, one_line
from agentsh.events.tool import ShellChanged
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.ports.workspace import ProcessResult, ShellState, Workspace
from agentsh.tools.job import jobs_of, shown
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_SHOWN_BYTES

DEFAULT_TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 600.0
USER_LINES = 20
"""Of the output, the last lines that the screen shows."""
MAX_NAMES = 10
MAX_JOB_S = 86_400.0
"""Of a job that names no limit."""
FIRST_LOOK_S = 1.0
"""How long a job that was just started is waited for: many a mistake shows by then."""

_UNASKED = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit"}
# Of a command that runs unasked. A directory with HEAD, config, objects and refs is a repository to git, and its
# configuration names programs (core.fsmonitor); plain edits can make one, where `.git` itself is guarded.


@tool("shell", effects={"exec"}, subject="command")
async def shell(
    ctx: ToolContext,
    command: Annotated[str, Field(description="shell line")],
    timeout_s: Annotated[float | None, Field(description="seconds; 120, at most 600; a job has none")] = None,
    background: Annotated[bool, Field(description="start it as a job and return at once; see the tool job")] = False,
    outside_sandbox: Annotated[bool, Field(description="ask the user to run it with network and all files")] = False,
) -> ToolOutcome:
    """Run a command with bash in the workspace; returns exit code, stdout and stderr (28 kB, the middle left out).

    The directory (inside the workspace) and exported variables are kept for the next call. No input, no terminal.
    Background processes are killed when it returns.
    """
    before = ctx.services.shell
    apart = ctx.services.bare or (outside_sandbox and ctx.workspace.sandbox != "none")
    begins_with = before._replace(exports=_UNASKED if ctx.services.bare else {}) if apart else before
    if background:
        limit_s = min(timeout_s, MAX_JOB_S) if timeout_s and timeout_s > 0 else MAX_JOB_S
        return await _begun(ctx, command, begins_with, limit_s, outside_sandbox=outside_sandbox)
    limit_s = min(timeout_s, MAX_TIMEOUT_S) if timeout_s and timeout_s > 0 else DEFAULT_TIMEOUT_S
    result = await ctx.workspace.run(
        command,
        timeout_s=limit_s,
        max_bytes=MAX_SHOWN_BYTES,
        on_output=lambda text: ctx.progress(as_seen(text)),
        outside_sandbox=outside_sandbox,
        shell=begins_with,
    )
    ending = _ending(result, limit_s)
    text = as_seen(result.output)
    parts = [ending, text.rstrip("\n") or "(no output)"]
    if result.left_running:
        parts.append("[A process was still running in the background and was killed.]")
    after = _after(before, result, apart=apart)
    parts += _told(ctx.workspace, before, result, apart=apart)
    return ToolOutcome(
        for_model="\n".join(parts),
        for_user=_for_user(command, result, limit_s, text),
        status="timed_out" if result.timed_out else "ok",
        exit=result.exit,
        output=result.whole,
        facts=() if after == before else (_fact(after),),
    )


TOOL = shell


async def _begun(
    ctx: ToolContext, command: str, shell: ShellState, limit_s: float, *, outside_sandbox: bool
) -> ToolOutcome:
    """Start a job; what fails at once is told at once."""
    jobs = jobs_of(ctx)
    begun = await jobs.start(command, shell, call=ctx.call_id, timeout_s=limit_s, outside_sandbox=outside_sandbox)
    return await shown(jobs, await jobs.wait(begun.id, FIRST_LOOK_S), lead=f"Started as job {begun.id}.")


def _after(before: ShellState, result: ProcessResult, *, apart: bool) -> ShellState:
    """Return what the next command starts with. A command that ran apart leaves the directory alone."""
    if result.shell is None:
        return before
    exports = before.exports if apart else result.shell.exports
    directory = result.shell.directory
    if before.directory is None and not exports and directory == result.began_in:
        return before
    return ShellState(directory, exports)


def _fact(state: ShellState) -> ShellChanged:
    return ShellChanged(directory=state.directory or ".", exports=dict(state.exports))


def _told(workspace: Workspace, before: ShellState, result: ProcessResult, *, apart: bool) -> list[str]:
    """Return remarks about what is not as the model may believe it to be."""
    lines = []
    if result.undone:
        lines.append(f"[{result.put_back}]")
    if result.left_workspace is not None:
        where, inside = one_line(result.left_workspace, 200), workspace.real(result.left_workspace) is not None
        how = "is gone" if inside else "is outside of the workspace"
        lines.append(f"[{where} {how}: the next command starts in its root.]")
    if result.not_kept and not apart:
        names = ", ".join(result.not_kept[:MAX_NAMES])
        if len(result.not_kept) > MAX_NAMES:
            names += f" and {len(result.not_kept) - MAX_NAMES} more"
        lines.append(f"[Exported for this call only, as secrets and very long values are: {one_line(names, 300)}.]")
    if apart and before.exports:
        lines.append("[Run without the variables that earlier commands exported.]")
    return lines


def _ending(result: ProcessResult, limit_s: float) -> str:
    if result.stopped:
        return f"Killed: {result.stopped}. Output until then:"
    if result.timed_out:
        return f"Killed at the time limit of {limit_s:g} s. Output until then:"
    if result.exit is not None and result.exit < 0:
        return f"killed by {_signal_name(-result.exit)}"
    return f"exit {result.exit}"


def _for_user(command: str, result: ProcessResult, limit_s: float, text: str) -> str:
    how = f"timed out after {limit_s:g} s" if result.timed_out else _ending(result, limit_s)
    first = f"{one_line(command, 120)} · {how}"
    if result.left_running:
        first += ", background process killed"
    lines = ends_of(text.rstrip("\n").split("\n"), USER_LINES) if text.strip() else []
    return "\n".join([first, *lines])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"
