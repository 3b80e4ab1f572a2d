"""What stands before a call: hooks, the policy, and the user's answer."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentsh.base.text import one_line
from agentsh.context.state import SessionState
from agentsh.engine.calls import paths_of, what_it_does
from agentsh.engine.journal import Journal
from agentsh.engine.policy import Decision, Request, decide, withheld
from agentsh.engine.preview import preview
from agentsh.engine.rules import Rules, parse_rules, suggested
from agentsh.events.event import Event
from agentsh.events.tool import ApprovalAnswered, ApprovalAsked, HookAnswered, ToolCall
from agentsh.ports.approver import Approver, Question
from agentsh.ports.grants import Grants
from agentsh.ports.hook import Hook, HookVerdict
from agentsh.ports.tool import LEAVE, Tool, ToolOutcome
from agentsh.ports.workspace import Workspace

if TYPE_CHECKING:
    from agentsh.engine.shell.judge import Judgement

MAX_WHY_CHARS = 400


class Refused(Exception):
    """The call does not run. reason: for the screen. for_model: what the model is told."""

    def __init__(self, reason: str, for_model: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.for_model = for_model


class Gate:
    """Decides about calls, in the order hook, policy, question.

    preapproved: whether the model of this state is a script of ours, whose calls need no yes. rules: of the user's
    configuration. project: what was allowed for the project, None where nothing is kept. unasked: how often nobody
    could be asked. guarded: files of the workspace that are run outside of the sandbox. keys: places of it with keys.
    """

    def __init__(
        self,
        journal: Journal,
        workspace: Workspace,
        hooks: Sequence[Hook],
        approver: Approver | None,
        *,
        preapproved: Callable[[SessionState], bool],
        rules: Rules | None = None,
        project: Grants | None = None,
        guarded: frozenset[str] = frozenset(),
        keys: frozenset[str] = frozenset(),
    ) -> None:
        self.unasked = 0
        self._rules = rules or Rules()
        self._project = project
        self._guarded = guarded
        self._keys = keys
        self._journal = journal
        self._workspace = workspace
        self._hooks = hooks
        self._approver = approver
        self._preapproved = preapproved

    async def decide(self, event: Event, tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        """Return why the call may run, and what hooks had to say to the model.

        Raises:
            Refused: it may not.
        """
        notes = []
        for hook in self._hooks:
            verdict = await self._before(hook, event, tool.spec.name, arguments)
            if verdict.verdict == "annotate" and verdict.message:
                notes.append(f"[{hook.name}: {verdict.message}]")
            if verdict.verdict == "deny":
                message = verdict.message or "no reason given"
                raise Refused(f"hook {hook.name}", f"A hook of the user ({hook.name}) refused this: {message}")
        does = await asyncio.to_thread(what_it_does, tool, arguments, self._workspace, self._directory())
        decision = self._decision(tool, arguments, does)
        if decision.action == "deny":
            advice = "Describe the change instead of making it." if decision.label.startswith("plan") else ""
            raise Refused(decision.label, f"Denied: {decision.label}. {advice}".strip())
        if decision.action == "ask":
            return await self._ask(event, tool, arguments, does, decision), tuple(notes)
        return decision.label, tuple(notes)

    def _decision(self, tool: Tool, arguments: Mapping[str, Any], does: "Judgement") -> Decision:
        state = self._journal.state
        granted = parse_rules([*sorted(state.grants), *(self._project.rules if self._project else ())])
        effects = tool.spec.effects
        return decide(
            Request(
                effects=effects,
                mode=state.mode,
                sandboxed=self._workspace.sandbox != "none" and self._workspace.guards,
                rules=Rules(self._rules.allow + granted, self._rules.ask, self._rules.deny),
                parts=None if does.unreadable else does.parts,
                unreadable=does.unreadable or "",
                leaving=self._leaves(arguments),
                granted=bool(effects & {"exec", "net"}) and self._grant(tool, arguments) in state.grants,
                preapproved=self._preapproved(state),
                guarded=self._guarded,
                keys=self._keys,
            )
        )

    def _directory(self) -> str:
        """Return where the next command starts, relative to the root."""
        shell = self._journal.state.shell
        return self._workspace.starts_in(None if shell is None else shell.directory)

    def _grant(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        return grant(tool, self._journal.secrets.payload(arguments))  # a hash of a short secret would tell it

    def _leaves(self, arguments: Mapping[str, Any]) -> bool:
        return bool(arguments.get(LEAVE)) and self._workspace.sandbox != "none"

    def withheld(self) -> Callable[[str], bool] | None:
        """Return what tells whether a rule of the user holds back a file that a call finds; see the port."""
        return withheld(self._rules, self._journal.state.mode, self._keys)

    def sandbox_of(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Return what will hold a call, as `tool_started` records it."""
        if "exec" not in tool.spec.effects:
            return "none" if "net" in tool.spec.effects else "jail"
        return "none" if self._leaves(arguments) else self._workspace.sandbox

    async def _ask(
        self, event: Event, tool: Tool, arguments: Mapping[str, Any], does: "Judgement", decision: Decision
    ) -> str:
        call = event.fact
        assert isinstance(call, ToolCall)
        if self._approver is None:
            self.unasked += 1
            raise Refused("nobody to ask", "Denied: this needs the user's approval and there is nobody to ask.")
        effects = tuple(sorted(tool.spec.effects))
        hidden = self._journal.secrets.payload(arguments)  # what the log may hold; whoever decides sees what runs
        # A rule that asks, and a way out of the sandbox, are not answered once and for all by a rule.
        clean = self._journal.secrets.clean
        rules = () if decision.ruled or self._leaves(arguments) else suggested(does.parts)
        rules = tuple(rule for rule in rules if clean(rule) == rule)  # no secret gets into a file of rules
        why = one_line(decision.why, MAX_WHY_CHARS)
        optional: dict[str, Any] = ({"rules": rules} if rules else {}) | ({"why": why} if why else {})
        asked = await self._journal.record(
            ApprovalAsked(
                call=call.call,
                subject=subject(tool, hidden),
                effects=effects,
                grant=self._grant(tool, arguments),
                **optional,
            ),
            cause=event.seq,
        )
        shown = await preview(tool, arguments, self._workspace)
        where = self._directory() if "exec" in effects else "."
        if where != ".":
            shown = f"directory: {where}\n{shown}"
        question = Question(tool.spec.name, subject(tool, arguments), shown, effects, why, rules)
        answer = await self._approver.ask(question)
        await self._journal.record(
            ApprovalAnswered(call=call.call, answer=answer.verdict, reason=answer.reason),
            cause=asked.seq,
            durable=True,
        )
        if answer.verdict == "no":
            because = f": {answer.reason}" if answer.reason else "."
            raise Refused(answer.reason or "by you", f"The user said no{because}")
        if answer.verdict == "project" and self._project is not None and rules:
            await asyncio.to_thread(self._project.add, rules)
        return "asked" if answer.verdict == "yes" else answer.verdict

    async def _before(self, hook: Hook, event: Event, tool: str, arguments: Mapping[str, Any]) -> HookVerdict:
        try:
            verdict = await hook.before_tool(tool, arguments)
        except Exception as error:  # noqa: BLE001 - a broken hook refuses
            verdict = HookVerdict("deny", f"the hook failed: {error}")
        await self._hook_answered(hook, event, verdict)
        return verdict

    async def after(self, hook: Hook, event: Event, arguments: Mapping[str, Any], outcome: ToolOutcome) -> str | None:
        """Return what a hook has to add to a result, or None."""
        call = event.fact
        assert isinstance(call, ToolCall)
        try:
            said = self._journal.secrets.clean(outcome.for_model)
            verdict = await hook.after_tool(call.name, arguments, outcome.status, said)
        except Exception as error:  # noqa: BLE001 - a broken hook only says so
            verdict = HookVerdict("annotate", f"the hook failed: {error}")
        await self._hook_answered(hook, event, verdict)
        return None if verdict.verdict == "pass" else verdict.message

    async def _hook_answered(self, hook: Hook, event: Event, verdict: HookVerdict) -> None:
        if verdict.verdict == "pass":
            return
        assert isinstance(event.fact, ToolCall)
        fact = HookAnswered(hook=hook.name, call=event.fact.call, verdict=verdict.verdict, message=verdict.message)
        await self._journal.record(fact, cause=event.seq)


def subject(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return what a call is about, on one line: its files, the argument that the tool names, else all of them."""
    value: Any = arguments.get(tool.spec.subject) if tool.spec.subject else None
    if tool.spec.paths is not None:
        value = ", ".join(paths_of(tool, arguments)) or value
    text = value if isinstance(value, str) else json.dumps(dict(arguments), ensure_ascii=False, default=str)
    return one_line(text, 200)


def grant(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return what a yes for the session allows: any edit by this tool, or this very command, by its hash."""
    if not tool.spec.effects & {"exec", "net"}:
        return tool.spec.name
    whole = json.dumps(dict(arguments), sort_keys=True, default=str)
    return f"{tool.spec.name} sha256:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()}"
