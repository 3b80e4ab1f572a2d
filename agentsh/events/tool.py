"""Facts of a tool call: asked, judged, started, finished, and what it changed."""

from typing import Literal

from agentsh.events.base import Fact, JsonValue, Text
from agentsh.events.turn import Attachment

Effect = Literal["read", "write", "exec", "net"]
CHANGING: frozenset[Effect] = frozenset({"write", "exec"})
"""Effects after which files may be others than before."""
ResultStatus = Literal["ok", "error", "denied", "interrupted", "timed_out", "unknown"]


class ToolCall(Fact):
    """The model asked for a tool. call: the model's own id. arguments: its exact text, valid JSON or not."""

    type: Literal["tool_call"] = "tool_call"
    call: str
    name: str
    arguments: Text


class ApprovalAsked(Fact):
    """The user was asked; cause: the tool_call. subject: what is to be done, in one line.

    grant: what a `session` answer allows from then on: a tool, or one exact command. rules: what a `session` or
    `project` answer allows, where it is more than this call. why: what of the call needs the question.
    """

    type: Literal["approval_asked"] = "approval_asked"
    call: str
    subject: str
    effects: tuple[Effect, ...]
    grant: str | None = None
    rules: tuple[str, ...] = ()
    why: str | None = None


class ApprovalAnswered(Fact):
    """The answer; cause: the approval_asked.

    `session`: yes, and do not ask again for this kind. `project`: nor in other sessions of the project.
    """

    type: Literal["approval_answered"] = "approval_answered"
    call: str
    answer: Literal["yes", "session", "project", "no"]
    reason: Text | None


class ToolStarted(Fact):
    """The durable intent, written before the first effect; cause: the tool_call.

    sandbox: what holds it. decision: why it was allowed to run.
    """

    type: Literal["tool_started"] = "tool_started"
    call: str
    effects: tuple[Effect, ...]
    sandbox: str
    pid: int | None
    decision: str


class CodeEdit(Fact):
    """A file was changed; cause: the tool_started. before, after: sha256 of its bytes, None where absent."""

    type: Literal["code_edit"] = "code_edit"
    call: str
    path: str
    diff: Text
    before: str | None
    after: str | None
    snapshot: str | None


class ToolResult(Fact):
    """The one result of a call; cause: the tool_started, or the tool_call where it never started.

    for_model: what the model is told. for_user: what the screen shows. output: the whole, where that is more.
    images: what the model is shown with it, where it takes images. jobs: whose end it tells.
    """

    type: Literal["tool_result"] = "tool_result"
    call: str
    status: ResultStatus
    exit: int | None = None
    for_model: Text
    for_user: Text
    duration_ms: int
    output: Text | None = None
    jobs: tuple[str, ...] = ()
    images: tuple[Attachment, ...] = ()


class PartialOutput(Fact):
    """New output of a tool that is still running, about once a second; superseded by its tool_result.

    cause: the tool_started. Only the end of what came is kept.
    """

    type: Literal["partial_output"] = "partial_output"
    call: str
    text: Text


class HookAnswered(Fact):
    """A hook judged or annotated a call; cause: the tool_call."""

    type: Literal["hook_answered"] = "hook_answered"
    hook: str
    call: str
    verdict: Literal["pass", "deny", "annotate"]
    message: Text | None


class ShellChanged(Fact):
    """Where the next command starts, and with which variables: the whole of it from here on; cause: the tool_started.

    directory: relative to the workspace, `.` for its root. exports: what is not as a new shell has it: name to value,
    null for one that is unset.
    """

    type: Literal["shell_changed"] = "shell_changed"
    directory: str
    exports: dict[str, str | None]


class JobChanged(Fact):
    """A background job began (state `running`) or came to its end: `ended` by itself, `timed_out`, `killed`, `failed`
    (it could not be started), `unknown` (it ran when agentsh itself ended).

    call: of the tool that started it. command: where it began. exit: code, negative signal number. output: what it
    printed, output_bytes of it in all. for_model: what the model is told of its end.
    """

    type: Literal["job_changed"] = "job_changed"
    job: str
    state: str
    detail: JsonValue = None
    call: str | None = None
    command: Text | None = None
    exit: int | None = None
    output: Text | None = None
    output_bytes: int | None = None
    duration_ms: int | None = None
    for_model: Text | None = None
