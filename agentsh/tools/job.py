"""The tool that looks after background jobs."""

from typing import Annotated, Literal

from agentsh.base.errors import ToolFailed
from agentsh.base.text import clean, plural
from agentsh.ports.jobs import Job, Jobs
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool
from agentsh.tools.textfile import MAX_SHOWN_BYTES

MAX_WAIT_S = 600.0
DEFAULT_WAIT_S = 30.0
USER_LINES = 5


@tool("job", effects={"read"}, subject="id")
async def job(
    ctx: ToolContext,
    action: Annotated[
        Literal["list", "output", "wait", "kill"], Field(description="output: what is new since you last looked")
    ],
    id: Annotated[str | None, Field(description="of the job; not for list")] = None,
    timeout_s: Annotated[float, Field(description="for wait; at most 600")] = DEFAULT_WAIT_S,
) -> ToolOutcome:
    """Look after jobs that shell started: list them, show new output (28 kB), wait for the end, kill.

    You are told when one ends. They are killed when the session is closed.
    """
    jobs = jobs_of(ctx)
    if action == "list":
        return _listed(jobs.list_jobs())
    if id is None:
        raise ToolFailed(f"job: {action} needs an id; `list` shows them")
    if action == "wait":
        found = await jobs.wait(id, min(max(timeout_s, 0.0), MAX_WAIT_S))
    else:
        found = await (jobs.kill(id) if action == "kill" else jobs.wait(id, 0))
    return await shown(jobs, found)


TOOL = job


def jobs_of(ctx: ToolContext) -> Jobs:
    """Return the jobs of the session.

    Raises:
        ToolFailed: it has none.
    """
    if ctx.services.jobs is None:
        raise ToolFailed("there are no background jobs in this session")
    return ctx.services.jobs


async def shown(jobs: Jobs, found: Job, *, lead: str = "") -> ToolOutcome:
    """Return how a job stands, and what it printed since that was last asked. lead: said first, where it is new."""
    text = clean(await jobs.output(found.id, MAX_SHOWN_BYTES)).rstrip("\n")
    head = f"Job {found.id} {standing(found)}."
    last = text.split("\n")[-USER_LINES:] if text else []
    return ToolOutcome(
        for_model="\n".join(part for part in (lead, head, text or "(no new output)") if part),
        for_user="\n".join([f"{f'job {found.id} · ' if lead else ''}{standing(found)}", *last]),
        jobs=() if found.state == "running" else (found.id,),
    )


def standing(job: Job) -> str:
    """Return in a few words how a job stands."""
    if job.state == "running":
        return f"has been running for {job.duration_s:.0f} s"
    how = f"ended with exit {job.exit}" if job.state == "ended" else job.state.replace("_", " ")
    return f"{how} after {job.duration_s:.0f} s"


def _listed(jobs: list[Job]) -> ToolOutcome:
    rows = [f"{j.id}\t{standing(j)}\t{plural(j.output_bytes, 'byte')} of output\t{j.command}" for j in jobs]
    running = sum(j.state == "running" for j in jobs)
    ended = tuple(j.id for j in jobs if j.state != "running")
    return ToolOutcome("\n".join(rows) or "(no jobs)", f"{plural(running, 'job')} running", jobs=ended)
