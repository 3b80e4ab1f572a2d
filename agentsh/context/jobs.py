"""Background jobs in the state: which run, how the others ended, and what of that the model does not know yet. Pure.

The end of a job is told with the next result of a tool, in its text; where none comes, at the start of the next user
message, as a change of the surroundings is.
"""

from collections.abc import Iterable
from dataclasses import replace

from agentsh.context.state import JobState, SessionState, Told
from agentsh.events.event import Event, NewFact
from agentsh.events.tool import JobChanged

RUNNING = "running"
KEPT_JOBS = 20
"""Of those that have ended, the newest."""
SUBJECT = "job "
"""What a change tells of: `job ID`."""
LOST = "Job {job} was running when agentsh itself ended, and ended with it; how far it came is not known."


def changed(state: SessionState, event: Event, fact: JobChanged) -> None:
    """Fold the beginning or the end of a job."""
    before = state.jobs.pop(fact.job, None)
    command = fact.command if fact.command is not None else (before.command if before else "")
    state.jobs[fact.job] = JobState(
        fact.job, event.seq, command, fact.state, fact.exit, fact.output_bytes or 0, fact.duration_ms or 0,
        fact.for_model, fact.for_model is None,
    )  # fmt: skip
    if fact.state != RUNNING and fact.for_model is not None:
        state.changes.append(Told(event.seq, SUBJECT + fact.job, fact.for_model))
    ended = [job.job for job in state.jobs.values() if job.state != RUNNING]
    for job in ended[:-KEPT_JOBS]:
        del state.jobs[job]


def told(state: SessionState, jobs: Iterable[str]) -> None:
    """Fold that the model knows of the end of these jobs."""
    known = {job for job in jobs if job in state.jobs and state.jobs[job].state != RUNNING}
    if not known:
        return
    state.changes = [c for c in state.changes if c.joins or c.what.removeprefix(SUBJECT) not in known]
    for job in known:
        if not state.jobs[job].told:
            state.jobs[job] = replace(state.jobs[job], told=True)


def untold(state: SessionState) -> list[JobState]:
    """Return the jobs whose end the model does not know of, in order."""
    return [job for job in state.jobs.values() if job.state != RUNNING and not job.told]


def lost(state: SessionState) -> list[NewFact]:
    """Return what has to be recorded of jobs that a dead process left running."""
    return [
        NewFact(JobChanged(job=job.job, state="unknown", for_model=LOST.format(job=job.job)))
        for job in state.jobs.values()
        if job.state == RUNNING
    ]


def trim(state: SessionState) -> None:
    """Forget what was told of jobs in messages that no request can hold any more."""
    first = state.talk[0].seq if state.talk else 0
    state.changes = [c for c in state.changes if not (c.what.startswith(SUBJECT) and 0 < c.joins < first)]
