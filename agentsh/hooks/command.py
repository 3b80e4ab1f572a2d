"""A hook that is a command of the user: JSON on its stdin, a verdict on its stdout."""

import asyncio
import json
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from agentsh.base.errors import ToolFailed
from agentsh.base.text import clean
from agentsh.ports.hook import HookVerdict, SessionMoment
from agentsh.workspace.process import Ended, supervise
from agentsh.workspace.sink import Sink

HookEvent = Literal["before_tool", "after_tool", "session_opened", "turn_finished", "session_closed"]

DEFAULT_TIMEOUT_S = 30.0
DENIED = 2
"""The exit code that means deny; stderr says why."""
MAX_OUTPUT_BYTES = 16_384
MAX_MESSAGE_CHARS = 2_000

_PASS = HookVerdict()


class CommandHook:
    """Implements `ports.hook.Hook` by running a program.

    Its stdin is one JSON object: `event`, what it was made with (the session, its workspace), and for calls `tool`,
    `arguments`, and after a tool `status` and `result`; see docs/hooks.md. It answers
    with `{"verdict": "pass"|"deny"|"annotate", "message": …}` on stdout or with nothing, which is `pass`; exit code
    2 is `deny` with stderr as the message. Any other failure, and the time limit, counts as `deny` before a tool and
    as `annotate` after it. It runs in the current directory with the user's own environment: it is the user's code.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        events: Collection[HookEvent] = ("before_tool", "after_tool"),
        timeout_s: float = DEFAULT_TIMEOUT_S,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Take the program and its arguments; no shell is involved.

        events: when it is called at all. about: members that each question has, besides those of its event.
        """
        self._about = dict(about or {})
        self._name = name
        self._argv = list(argv)
        self._events = frozenset(events)
        self._timeout_s = timeout_s

    @property
    def name(self) -> str:
        """The name under which its answers are logged."""
        return self._name

    async def before_tool(self, tool: str, arguments: Mapping[str, Any]) -> HookVerdict:
        """Ask whether a call may run."""
        return await self._ask("before_tool", {"tool": tool, "arguments": dict(arguments)})

    async def after_tool(self, tool: str, arguments: Mapping[str, Any], status: str, result: str) -> HookVerdict:
        """Ask whether there is something to add to a result."""
        question = {"tool": tool, "arguments": dict(arguments), "status": status, "result": result}
        return await self._ask("after_tool", question)

    async def on_session(self, moment: SessionMoment, facts: Mapping[str, Any]) -> str | None:
        """Tell what happened; return what is to be noted."""
        verdict = await self._ask(moment, facts)
        return None if verdict.verdict == "pass" else verdict.message

    async def _ask(self, event: HookEvent, question: Mapping[str, Any]) -> HookVerdict:
        if event not in self._events:
            return _PASS
        failed: Literal["deny", "annotate"] = "deny" if event == "before_tool" else "annotate"
        stdout, stderr = Sink(MAX_OUTPUT_BYTES), Sink(MAX_OUTPUT_BYTES)
        try:
            ended = await self._run({"event": event, **self._about, **question}, (stdout, stderr))
        except ToolFailed as error:
            return HookVerdict(failed, error.message)
        if ended.timed_out:
            return HookVerdict(failed, f"the hook did not answer within {self._timeout_s:g} s")
        said = _message(stderr.capture.text())
        if ended.exit == DENIED:
            return HookVerdict("deny", said or "no reason given")
        if ended.exit != 0:
            return HookVerdict(failed, f"the hook failed with exit {ended.exit}" + (f": {said}" if said else ""))
        verdict = _verdict(stdout.capture.text())
        return verdict or HookVerdict(failed, f"the hook's answer is no verdict: {_message(stdout.capture.text())}")

    async def _run(self, question: Mapping[str, Any], sinks: Sequence[Sink]) -> Ended:
        # A file, not a pipe: whether and when the hook reads it is its own affair.
        stdin = await asyncio.to_thread(_file_of, question)
        try:
            return await supervise(
                self._argv,
                cwd=None,
                environment=os.environ,
                stdin=stdin,
                sinks=sinks,
                timeout_s=self._timeout_s,
            )
        finally:
            os.close(stdin)


def _file_of(question: Mapping[str, Any]) -> int:
    """Return a descriptor of a nameless file with the question, at its start."""
    data = json.dumps(question, default=str).encode() + b"\n"
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def _verdict(stdout: str) -> HookVerdict | None:
    """Return what the hook said, None where it is no verdict."""
    if not stdout.strip():
        return _PASS
    try:
        answer = json.loads(stdout)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or answer.get("verdict") not in ("pass", "deny", "annotate"):
        return None
    message = answer.get("message")
    if message is not None and not isinstance(message, str):
        return None
    return HookVerdict(answer["verdict"], message and _message(message))


def _message(text: str) -> str:
    return clean(text).strip()[:MAX_MESSAGE_CHARS]
