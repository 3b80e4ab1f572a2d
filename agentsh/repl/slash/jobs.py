"""/jobs: what runs in the background; /jobs kill ID ends one."""

from agentsh.base.errors import ToolFailed
from agentsh.base.text import one_line
from agentsh.ports.jobs import Job
from agentsh.repl.commands import SlashContext, SlashOutcome

USAGE = "/jobs lists them; /jobs kill ID ends one"


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """List the jobs, or end one."""
    words = argument.split()
    if not words:
        rows = [_row(job) for job in context.session.list_jobs()]
        return SlashOutcome(rows or ["  nothing runs in the background"])
    if words[0] != "kill" or len(words) != 2:
        return SlashOutcome([f"  {USAGE}"])
    try:
        return SlashOutcome([_row(await context.session.kill_job(words[1]))])
    except ToolFailed as error:
        return SlashOutcome([f"  {error.message}"])


def _row(job: Job) -> str:
    ended = job.state if job.exit is None else f"{job.state}, exit {job.exit}"
    return (
        f"  {job.id}  {ended} · {job.duration_s:,.0f} s · {job.output_bytes:,} bytes · {one_line(job.command, 200)}"
    )
