"""From a tool call to its one result: find, check, hook, policy, ask, intent, run, record."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from agentsh.base.clock import Clock
from agentsh.base.errors import BadArguments, LogWriteFailed, ToolFailed
from agentsh.base.text import middle_cut, one_line, tail_bytes
from agentsh.base.waiting import to_the_end
from agentsh.context.jobs import untold
from agentsh.context.repairs import MAX_MODEL_BYTES
from agentsh.engine.gate import Gate, Refused
from agentsh.engine.journal import Journal
from agentsh.engine.keeping import Keeper
from agentsh.engine.policy import HARMLESS
from agentsh.engine.saver import Saver
from agentsh.engine.secret_stream import SeenOutput
from agentsh.engine.secrets import PLACEHOLDER, Secrets, UnknownSecret
from agentsh.events.event import Event, NewFact
from agentsh.events.signals import ToolProgress
from agentsh.events.tool import PartialOutput, ResultStatus, ToolCall, ToolResult, ToolStarted
from agentsh.ports.hook import Hook
from agentsh.ports.services import Services
from agentsh.ports.snapshots import NoSnapshots, Snapshots
from agentsh.ports.texts import Texts
from agentsh.ports.tool import Tool, ToolContext, ToolOutcome
from agentsh.ports.workspace import ShellState, Workspace

MAX_USER_BYTES = 4_000
MAX_SEEN_BYTES = 4_000
"""How much of the newest output is kept for a call that is interrupted, and for each partial_output."""


class Prepared(NamedTuple):
    """A call that may run. decision: why. notes: what hooks had to say, for the model."""

    event: Event
    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    decision: str
    notes: tuple[str, ...]


class Unrunnable(NamedTuple):
    """A call that will not run, with its result."""

    event: Event
    result: ToolResult


class ToolRunner:
    """Runs the calls of one step. Whatever happens, each call gets exactly one result."""

    def __init__(
        self,
        journal: Journal,
        tools: Mapping[str, Tool],
        workspace: Workspace,
        gate: Gate,
        hooks: Sequence[Hook],
        texts: Texts,
        clock: Clock,
        snapshots: Snapshots | None = None,
        services: Services | None = None,
    ) -> None:
        self._journal = journal
        self._keeper = Keeper(journal, snapshots or NoSnapshots())
        self._tools = tools
        self._workspace = workspace
        self._gate = gate
        self._hooks = hooks
        self._texts = texts
        self._clock = clock
        self._services = services or Services()

    async def run(self, calls: Sequence[Event]) -> None:
        """Run the calls in source order; neighbours that only read run together. Results keep source order.

        Cancellation ends a running command, records it as interrupted and is passed on; an edit of files that has
        begun is finished and recorded first. Calls that were not reached are left open for the turn to close.

        Raises:
            LogWriteFailed: the log cannot be written; nothing with effects is started after that.
        """
        together: list[Prepared | Unrunnable] = []
        if calls:
            self._keeper.begin()
        for event in calls:
            if together and not self._reads_only(event):
                await self._run_together(together)
                together = []
            prepared = await self._prepare(event)
            if isinstance(prepared, Unrunnable) or prepared.tool.spec.read_only:
                together.append(prepared)
            else:
                await self._run_one(prepared)
        await self._run_together(together)

    def _reads_only(self, event: Event) -> bool:
        assert isinstance(event.fact, ToolCall)
        tool = self._tools.get(event.fact.name)
        return tool is None or tool.spec.read_only

    async def _run_together(self, group: Sequence[Prepared | Unrunnable]) -> None:
        """Start all that can run, then record the results in source order."""
        runs: dict[int, tuple[Event, asyncio.Task[tuple[ToolOutcome, int]]]] = {}
        try:
            for p in group:
                if isinstance(p, Prepared):
                    start = await self._start(p)
                    outcome = self._outcome(
                        p, self._clock.monotonic_s(), SeenOutput(self._journal.secrets, MAX_SEEN_BYTES)
                    )
                    runs[p.event.seq] = (start, asyncio.create_task(outcome))
            for p in group:
                if isinstance(p, Unrunnable):
                    await self._journal.record(p.result, cause=p.event.seq)
                else:
                    start, task = runs[p.event.seq]
                    await self._finish(p, start, await task)
        finally:
            tasks = [task for _, task in runs.values()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _run_one(self, prepared: Prepared) -> None:
        """Run a call with effects. Once it has run, nothing keeps its result from being recorded."""
        began_s: float | None = None
        seen = SeenOutput(self._journal.secrets, MAX_SEEN_BYTES)
        try:
            await self._keeper.before(prepared.tool.spec.effects)
            start = await self._start(prepared)
            began_s = self._clock.monotonic_s()
            work = asyncio.create_task(self._work(prepared, start, began_s, seen))
            await to_the_end(work, pass_on=bool(prepared.tool.spec.effects & {"exec", "net"}))
        except asyncio.CancelledError:
            await self._journal.settled()
            await self._interrupted(prepared, began_s, seen)
            raise

    async def _work(self, prepared: Prepared, start: Event, began_s: float, seen: SeenOutput) -> None:
        saver = Saver(self._journal, self._clock, lambda text: self._partial(prepared, start, text))
        seen.saver = saver
        async with saver.running():
            outcome = await self._outcome(prepared, began_s, seen)
        # From here on the effects are there: a cancellation waits until they are recorded.
        await to_the_end(asyncio.create_task(self._finish(prepared, start, outcome)))

    def _partial(self, prepared: Prepared, start: Event, text: str) -> NewFact:
        return NewFact(PartialOutput(call=prepared.call.call, text=tail_bytes(text, MAX_SEEN_BYTES)), start.seq)

    async def _interrupted(self, prepared: Prepared, began_s: float | None, seen: SeenOutput) -> None:
        state = self._journal.state.calls.get(prepared.event.seq)
        if state is None:  # its result is recorded: it came to its end before the interruption
            return
        if began_s is None:
            text, duration_ms = "The user interrupted just before this ran. It had no effects.", 0
        else:
            text = "The user interrupted while this ran. It may have had effects: check before repeating it."
            duration_ms = int((self._clock.monotonic_s() - began_s) * 1000)
        if output := seen.end():
            text += f"\nOutput so far:\n{output}"
        result = _plain(prepared.call, "interrupted", text, "interrupted", duration_ms)
        cause = state.started_seq or state.seq
        effects = prepared.tool.spec.effects if began_s is not None else ()
        async with self._keeper.after(effects, prepared.call.call, cause) as changed:
            await self._journal.record_all([*changed, NewFact(result, cause)], happened=True)

    async def _prepare(self, event: Event) -> Prepared | Unrunnable:
        """Return the call ready to run, or the result that says why it will not."""
        call = event.fact
        assert isinstance(call, ToolCall)
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools)
            text = f"There is no tool {one_line(call.name, 80)!r}. Tools: {known}."
            return Unrunnable(event, _plain(call, "error", text, "no such tool"))
        try:
            arguments = self._journal.secrets.restore(tool.parse(self._texts.text(call.arguments)))
        except UnknownSecret as unknown:
            text = (
                f"{unknown} stands for a secret whose value is not known any more, so nothing was done. Reading "
                "where it is kept makes it known again; or leave the part of the file that holds it as it is."
            )
            return Unrunnable(event, _plain(call, "error", text, "a secret that is not known any more"))
        except BadArguments as error:
            about = f"bad arguments: {one_line(error.message, 80)}"
            return Unrunnable(event, _plain(call, "error", error.message, about))
        if not tool.spec.read_only and (reason := await self._journal.nearly_full()) is not None:
            text = f"Denied: {reason}, so nothing that has effects is started. The user has to free some space."
            return Unrunnable(event, _plain(call, "denied", text, f"denied: {reason}"))
        try:
            decision, notes = await self._gate.decide(event, tool, arguments)
        except Refused as refused:
            return Unrunnable(event, _plain(call, "denied", refused.for_model, f"denied: {refused.reason}"))
        return Prepared(event, call, tool, arguments, decision, notes)

    async def _start(self, prepared: Prepared) -> Event:
        spec = prepared.tool.spec
        intent = ToolStarted(
            call=prepared.call.call,
            effects=tuple(sorted(spec.effects)),
            sandbox=self._gate.sandbox_of(prepared.tool, prepared.arguments),
            pid=None,
            decision=prepared.decision,
        )
        return await self._journal.record(intent, cause=prepared.event.seq, durable=not spec.read_only)

    async def _outcome(self, prepared: Prepared, began_s: float, seen: SeenOutput) -> tuple[ToolOutcome, int]:
        def progress(text: str) -> None:
            if text := seen.add(text):
                self._journal.signal(ToolProgress(prepared.event.seq, text))

        context = ToolContext(self._workspace, prepared.call.call, progress, self._services_for(prepared))
        try:
            outcome = await prepared.tool.run(context, prepared.arguments)
        except ToolFailed as error:
            outcome = ToolOutcome(str(error), one_line(error.message, 200), status="error")
        except LogWriteFailed:
            raise
        except Exception as error:  # noqa: BLE001 - a tool's bug is a result, not a crash
            text = f"{type(error).__name__}: {error}"
            outcome = ToolOutcome(f"The tool itself failed: {text}", one_line(text, 200), status="error")
        return outcome, int((self._clock.monotonic_s() - began_s) * 1000)

    def _services_for(self, prepared: Prepared) -> Services:
        state = self._journal.state
        kept = state.shell.exports if state.shell is not None else {}
        # What the log has a placeholder for is not known any more, or should not be.
        exports = {name: value for name, value in kept.items() if value is None or not PLACEHOLDER.search(value)}
        shell = ShellState() if state.shell is None else ShellState(state.shell.directory, exports)
        held = state.mode == "auto" and self._workspace.sandbox != "none"
        bare = prepared.decision == HARMLESS and not held
        return self._services._replace(shell=shell, bare=bare, withheld=self._gate.withheld())

    def _with_news(self, outcome: ToolOutcome) -> ToolOutcome:
        """Return an outcome that tells of the background jobs whose end the model does not know of yet."""
        news = [job for job in untold(self._journal.state) if job.job not in outcome.jobs]
        if not news:
            return outcome
        texts = [f"[{self._texts.text(job.for_model)}]" for job in news if job.for_model is not None]
        return replace(
            outcome,
            for_model="\n".join([outcome.for_model, *texts]),
            jobs=(*outcome.jobs, *(job.job for job in news)),
        )

    async def _finish(self, prepared: Prepared, start: Event, finished: tuple[ToolOutcome, int]) -> None:
        outcome, duration_ms = finished
        notes = list(prepared.notes)
        for hook in self._hooks:
            note = await self._gate.after(hook, prepared.event, prepared.arguments, outcome)
            notes += [f"[{hook.name}: {note}]"] if note else []
        if notes:
            outcome = replace(outcome, for_model="\n".join([outcome.for_model, *notes]))
        # In a thread: megabytes of output take a while, and the screen must not stand still for it.
        outcome = await asyncio.to_thread(cleaned, self._with_news(outcome), self._journal.secrets)
        result = _result(prepared.call, outcome, duration_ms)
        effects, call = prepared.tool.spec.effects, prepared.call.call
        async with self._keeper.after(effects, call, start.seq, outcome.edits) as changed:
            said = [NewFact(fact, start.seq) for fact in outcome.facts]
            await self._journal.record_all([*changed, NewFact(result, start.seq), *said], happened=True)


def cleaned(outcome: ToolOutcome, secrets: Secrets) -> ToolOutcome:
    """Return an outcome without secrets, before any of it is cut: half a secret would not be known for one."""
    secrets.literal(outcome.for_model)
    output = outcome.output
    if output is not None and (text := output.decode("utf-8", "replace")) != (clean := secrets.clean(text)):
        output = clean.encode("utf-8", "replace")
    for_model, for_user = secrets.clean(outcome.for_model), secrets.clean(outcome.for_user)
    return replace(outcome, for_model=for_model, for_user=for_user, output=output)


def _plain(call: ToolCall, status: ResultStatus, for_model: str, for_user: str, duration_ms: int = 0) -> ToolResult:
    return ToolResult(
        call=call.call,
        status=status,
        for_model=middle_cut(for_model, MAX_MODEL_BYTES),
        for_user=middle_cut(for_user, MAX_USER_BYTES),
        duration_ms=duration_ms,
    )


def _result(call: ToolCall, outcome: ToolOutcome, duration_ms: int) -> ToolResult:
    for_model = middle_cut(outcome.for_model, MAX_MODEL_BYTES, "the whole is in the log")
    optional: dict[str, Any] = {}
    if outcome.exit is not None:
        optional["exit"] = outcome.exit
    if outcome.jobs:
        optional["jobs"] = outcome.jobs
    if outcome.output is not None:
        optional["output"] = outcome.output.decode("utf-8", "replace")
    elif for_model != outcome.for_model:
        optional["output"] = outcome.for_model
    if outcome.images:
        optional["images"] = outcome.images
    return ToolResult(
        call=call.call,
        status=outcome.status,
        for_model=for_model,
        for_user=middle_cut(outcome.for_user, MAX_USER_BYTES),
        duration_ms=duration_ms,
        **optional,
    )
