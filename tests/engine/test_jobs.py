"""Background jobs in one process: a real shell, a real file of output, facts on a memory store."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentsh.base.clock import SystemClock
from agentsh.base.errors import ToolFailed
from agentsh.context.state import SessionState
from agentsh.context.state_codec import decode_state, encode_state
from agentsh.engine.bus import Bus
from agentsh.engine.jobs import MAX_RUNNING, JobKeeper
from agentsh.engine.journal import Journal
from agentsh.engine.secret_stream import SecretStream
from agentsh.events.tool import JobChanged
from agentsh.ports.services import Services
from agentsh.ports.texts import InlineTexts
from agentsh.ports.tool import ToolContext
from agentsh.ports.workspace import ShellState
from agentsh.testing import KeepingRenderer, MemoryStore
from agentsh.tools.job import TOOL as JOB
from agentsh.workspace.job_output import MAX_KEPT_BYTES, MAX_TAIL_BYTES, JobOutputs
from agentsh.workspace.local import LocalWorkspace
from agentsh.workspace.strays import kill_session

ID = "20261129-k3v9qd"
SESSION = f"test-jobs-{os.getpid()}"  # tests run in several processes; each looks for its own strays


class Rig:
    def __init__(self, journal: Journal, screen: KeepingRenderer, jobs: JobKeeper, workspace: LocalWorkspace) -> None:
        self.journal, self.screen, self.jobs, self.workspace = journal, screen, jobs, workspace

    async def start(self, command: str, *, timeout_s: float = 60) -> str:
        job = await self.jobs.start(command, ShellState(), call="call_1", timeout_s=timeout_s, outside_sandbox=False)
        return job.id

    async def printed(self, job: str) -> None:
        """Wait until it has printed something."""
        while not await self.jobs.output(job, 10_000, whole=True):  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.01)

    async def look(self, **arguments: object) -> str:
        """What the tool says."""
        context = ToolContext(self.workspace, "call_2", services=Services(jobs=self.jobs))
        return (await JOB.run(context, JOB.parse(json.dumps(arguments)))).for_model

    @property
    def facts(self) -> list[JobChanged]:
        return [e.fact for e in self.screen.events if isinstance(e.fact, JobChanged)]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    (tmp_path / "ws").mkdir()
    log, screen, bus = await MemoryStore().create(ID, by="test"), KeepingRenderer(), Bus()
    bus.subscribe(screen)
    journal = Journal(log, SessionState(), bus, SystemClock())
    workspace = LocalWorkspace(tmp_path / "ws", session=SESSION)
    secrets = journal.secrets
    outputs = JobOutputs(tmp_path / "jobs", lambda: SecretStream(secrets), secrets.clean)
    jobs = JobKeeper(journal, workspace, outputs, InlineTexts(), SystemClock())
    yield Rig(journal, screen, jobs, workspace)
    await jobs.close()
    await log.close()
    assert kill_session(SESSION) == 0
    assert all(job.state != "running" for job in jobs.list_jobs())
    state = journal.state
    assert decode_state(encode_state(state)).jobs == state.jobs


async def test_output_is_given_as_it_comes_and_once(rig: Rig) -> None:
    job = await rig.start("echo one; until [ -e go ]; do sleep 0.02; done; echo two")
    await rig.printed(job)
    assert "one" not in await rig.look(action="output", id=job)
    (Path(rig.workspace.root) / "go").touch()
    said = await rig.look(action="wait", id=job, timeout_s=20)
    assert said.split("\n")[1:] == ["two"]
    assert "ended with exit 0" in said
    assert (await rig.look(action="output", id=job)).endswith("(no new output)")
    assert [fact.state for fact in rig.facts] == ["running", "ended"]
    assert rig.facts[1].output == "one\ntwo\n"


async def test_a_job_is_killed_with_all_that_it_started(rig: Rig) -> None:
    job = await rig.start("setsid sleep 300 & (sleep 300 &) ; trap '' TERM; echo on; sleep 300")
    await rig.printed(job)
    said = await rig.look(action="kill", id=job)
    assert said.startswith(f"Job {job} killed after ")
    assert await rig.workspace.kill_strays() == 0
    assert (await rig.look(action="kill", id=job)).startswith(f"Job {job} killed after "), "again changes nothing"
    assert [fact.state for fact in rig.facts] == ["running", "killed"]


async def test_a_flood_is_capped_on_disk_and_in_memory(rig: Rig, tmp_path: Path) -> None:
    job = await rig.start("yes abcdefghi | head -c 30000000; echo; echo the end")
    await rig.jobs.wait(job, 60)
    kept = (tmp_path / "jobs" / f"{job}.out").read_bytes()
    assert MAX_KEPT_BYTES < len(kept) < MAX_KEPT_BYTES + MAX_TAIL_BYTES + 100
    assert kept.endswith(b"the end\n")
    assert b"bytes left out" in kept
    (found,) = rig.jobs.list_jobs()
    assert found.output_bytes == 30_000_009
    said = await rig.look(action="output", id=job)
    assert said.endswith("the end")
    assert len(said) < 30_000


async def test_its_own_time_limit_ends_it(rig: Rig) -> None:
    job = await rig.start("echo on; sleep 300", timeout_s=0.2)
    found = await rig.jobs.wait(job, 20)
    assert (found.state, found.exit) == ("timed_out", None)
    assert "at its time limit" in str(rig.facts[1].for_model)


async def test_what_cannot_be_done_is_said(rig: Rig) -> None:
    for action in ("output", "wait", "kill"):
        with pytest.raises(ToolFailed, match="needs an id"):
            await rig.look(action=action)
        with pytest.raises(ToolFailed, match="no job '7'; jobs: none"):
            await rig.look(action=action, id="7")
    assert await rig.look(action="list") == "(no jobs)"
    for _ in range(MAX_RUNNING):
        await rig.start("sleep 300")
    with pytest.raises(ToolFailed, match="run already"):
        await rig.start("sleep 300")
    assert len((await rig.look(action="list")).split("\n")) == MAX_RUNNING
    begun = asyncio.get_running_loop().time()
    await rig.jobs.close()
    assert asyncio.get_running_loop().time() - begun < 10


async def test_only_the_newest_of_those_that_ended_are_remembered(rig: Rig) -> None:
    for _ in range(25):
        await rig.jobs.wait(await rig.start("true"), 20)
    known = [job.id for job in rig.jobs.list_jobs()]
    assert known == [str(n) for n in range(6, 26)]
    assert await rig.start("true") == "26"


async def test_ids_go_on_after_a_kill_in_any_order(rig: Rig) -> None:
    first, second = await rig.start("sleep 300"), await rig.start("sleep 300")
    await asyncio.gather(rig.jobs.kill(second), rig.jobs.kill(first), rig.jobs.kill(first))
    assert {job.state for job in rig.jobs.list_jobs()} == {"killed"}
    assert len(rig.facts) == 4


async def test_binary_output_does_not_reach_the_model_raw(rig: Rig) -> None:
    job = await rig.start("head -c 3000 /dev/urandom; printf '\\033]0;title\\007'")
    await rig.jobs.wait(job, 20)
    said = await rig.look(action="output", id=job)
    assert "binary output" in said
    assert "binary output" in str(rig.facts[1].for_model)


async def test_o206_secrets_are_in_no_file_of_the_session(rig: Rig, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    rig.journal.secrets.clean(secret)
    first = f"printf 'token {secret[:12]}'; sleep 0.2; echo {secret[12:]}"
    flood = f"yes {secret} | head -c 40000; yes | head -c 1100000; echo; echo {secret}"
    job = await rig.start(f"{first}; {flood}")
    await rig.jobs.wait(job, 60)
    kept = (tmp_path / "jobs" / f"{job}.out").read_text()
    assert kept.startswith("token ‹secret:")
    assert secret not in kept
    assert secret not in await rig.look(action="output", id=job)
    assert secret not in str(rig.facts)


async def test_an_interrupted_start_leaves_no_job(rig: Rig) -> None:
    for ticks in range(6):
        starting = asyncio.create_task(rig.start("sleep 300"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting])
        await rig.jobs.close()
        assert all(job.state != "running" for job in rig.jobs.list_jobs())
    assert await rig.workspace.kill_strays() == 0
