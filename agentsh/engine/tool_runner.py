"""From a tool call to its one result: find, check, hook, policy, ask, intent, run, record."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentsh.base.clock import Clock
from agentsh.base.errors import BadArguments, LogError, ToolFailed
from agentsh.base.text import middle_cut, one_line, tail_bytes
from agentsh.engine.edits import code_edit
from agentsh.engine.gate import Gate, Refused
from agentsh.engine.journal import Journal
from agentsh.events.event import Event, NewFact
from agentsh.events.signals import ToolProgress
from agentsh.events.tool import ResultStatus, ToolCall, ToolResult, ToolStarted
from agentsh.ports.hook import Hook
from agentsh.ports.texts import Texts
from agentsh.ports.tool import Tool, ToolContext, ToolOutcome
from agentsh.ports.workspace import Workspace

MAX_MODEL_BYTES = 30_000
"""Cap of a result for the model: 10,000 tokens by the estimate of three bytes each."""
MAX_USER_BYTES = 8_000


class _Tail:
    """The newest output of a running tool, for the result of a call that is interrupted."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str) -> None:
        self.text = tail_bytes(self.text + text, MAX_USER_BYTES)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run."""

    event: Event
    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    decision: str


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
    ) -> None:
        self._journal = journal
        self._tools = tools
        self._workspace = workspace
        self._gate = gate
        self._hooks = hooks
        self._texts = texts
        self._clock = clock

    async def run(self, calls: Sequence[Event]) -> None:
        """Run the calls in source order; neighbours that only read run together.

        Cancellation ends the running call, records it as interrupted and is passed on; calls that were not
        reached are left open for the turn to close.

        Raises:
            LogError: the log cannot be written; nothing with effects was started after that.
        """
        together: list[Prepared] = []
        for event in calls:
            if together and not self._reads_only(event):
                await self._run_together(together)
                together = []
            prepared = await self._prepare(event)
            if prepared is None:
                continue
            if prepared.tool.spec.read_only:
                together.append(prepared)
            else:
                await self._run_one(prepared)
        await self._run_together(together)

    def _reads_only(self, event: Event) -> bool:
        assert isinstance(event.fact, ToolCall)
        tool = self._tools.get(event.fact.name)
        return tool is not None and tool.spec.read_only

    async def _run_together(self, group: Sequence[Prepared]) -> None:
        """Start all, then record the results in source order."""
        started = [await self._start(p) for p in group]
        tasks = [asyncio.create_task(self._outcome(p, self._clock.monotonic_s(), _Tail())) for p in group]
        try:
            for prepared, start, task in zip(group, started, tasks, strict=True):
                await self._finish(prepared, start, await task)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_one(self, prepared: Prepared) -> None:
        began_s: float | None = None
        seen = _Tail()
        try:
            start = await self._start(prepared)
            began_s = self._clock.monotonic_s()
            finished = await self._outcome(prepared, began_s, seen)
        except asyncio.CancelledError:
            await self._journal.settled()
            await self._interrupted(prepared, began_s, seen)
            raise
        await self._finish(prepared, start, finished)

    async def _interrupted(self, prepared: Prepared, began_s: float | None, seen: "_Tail") -> None:
        state = self._journal.state.calls.get(prepared.event.seq)
        if state is None:  # its result was on its way into the log when the interruption came
            return
        if began_s is None:
            text, duration_ms = "The user interrupted just before this ran. It had no effects.", 0
        else:
            text = "The user interrupted while this ran. It may have had effects: check before repeating it."
            duration_ms = int((self._clock.monotonic_s() - began_s) * 1000)
        if seen.text:
            text += f"\nOutput so far:\n{seen.text}"
        cause = state.started_seq or state.seq
        await self._result(prepared.call, cause, "interrupted", text, "interrupted", duration_ms)

    async def _prepare(self, event: Event) -> Prepared | None:
        """Return the call ready to run, or record why it will not and return None."""
        call = event.fact
        assert isinstance(call, ToolCall)
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools))
            text = f"There is no tool {call.name!r}. Tools: {known}."
            await self._result(call, event.seq, "error", text, "no such tool")
            return None
        try:
            arguments = tool.parse(self._texts.text(call.arguments))
        except BadArguments as error:
            await self._result(
                call, event.seq, "error", error.message, f"bad arguments: {one_line(error.message, 80)}"
            )
            return None
        try:
            decision = await self._gate.decide(event, tool, arguments)
        except Refused as refused:
            await self._result(call, event.seq, "denied", refused.for_model, f"denied: {refused.reason}")
            return None
        return Prepared(event, call, tool, arguments, decision)

    async def _start(self, prepared: Prepared) -> Event:
        spec = prepared.tool.spec
        intent = ToolStarted(
            call=prepared.call.call,
            effects=tuple(sorted(spec.effects)),
            sandbox=self._workspace.sandbox if spec.effects & {"exec", "net"} else "jail",
            pid=None,
            decision=prepared.decision,
        )
        return await self._journal.record(intent, cause=prepared.event.seq, durable=not spec.read_only)

    async def _outcome(self, prepared: Prepared, began_s: float, seen: "_Tail") -> tuple[ToolOutcome, int]:
        def progress(text: str) -> None:
            seen.add(text)
            self._journal.signal(ToolProgress(prepared.event.seq, text))

        context = ToolContext(self._workspace, prepared.call.call, progress)
        try:
            outcome = await prepared.tool.run(context, prepared.arguments)
        except ToolFailed as error:
            outcome = ToolOutcome(str(error), one_line(error.message, 200), status="error")
        except LogError:
            raise
        except Exception as error:  # noqa: BLE001 - one of the three edges: a tool's bug is a result, not a crash
            text = f"{type(error).__name__}: {error}"
            outcome = ToolOutcome(f"The tool itself failed: {text}", one_line(text, 200), status="error")
        return outcome, int((self._clock.monotonic_s() - began_s) * 1000)

    async def _finish(self, prepared: Prepared, start: Event, finished: tuple[ToolOutcome, int]) -> None:
        outcome, duration_ms = finished
        for hook in self._hooks:
            note = await self._gate.after(hook, prepared.event, prepared.arguments, outcome)
            if note:
                outcome = replace(outcome, for_model=f"{outcome.for_model}\n[{hook.name}: {note}]")
        edits = [NewFact(code_edit(prepared.call.call, edit), start.seq) for edit in outcome.edits]
        result = _result(prepared.call, outcome, duration_ms)
        await self._journal.record_all([*edits, NewFact(result, start.seq)])

    async def _result(
        self,
        call: ToolCall,
        cause: int,
        status: ResultStatus,
        for_model: str,
        for_user: str,
        duration_ms: int = 0,
    ) -> None:
        fact = ToolResult(
            call=call.call, status=status, for_model=for_model, for_user=for_user, duration_ms=duration_ms
        )
        await self._journal.record(fact, cause=cause)


def _result(call: ToolCall, outcome: ToolOutcome, duration_ms: int) -> ToolResult:
    for_model = middle_cut(outcome.for_model, MAX_MODEL_BYTES)
    optional: dict[str, Any] = {}
    if outcome.exit is not None:
        optional["exit"] = outcome.exit
    if outcome.output is not None:
        optional["output"] = outcome.output.decode("utf-8", "replace")
    elif for_model != outcome.for_model:
        optional["output"] = outcome.for_model
    return ToolResult(
        call=call.call,
        status=outcome.status,
        for_model=for_model,
        for_user=middle_cut(outcome.for_user, MAX_USER_BYTES),
        duration_ms=duration_ms,
        **optional,
    )
