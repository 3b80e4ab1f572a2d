"""Facts of what the user does beside the turns: commands of their own, and questions aside."""

from typing import Literal

from agentsh.events.base import Cost, Fact, Text, Usage

CommandStatus = Literal["ok", "error", "interrupted", "timed_out", "unknown"]


class UserCommand(Fact):
    """The user runs a command in the workspace: the durable intent, before it starts. sandbox: what holds it.

    joins: the model is told of it with the next message; else it stays out of the context.
    cause: the text_queued event, where it waited in the queue first.
    """

    type: Literal["user_command"] = "user_command"
    command: Text
    joins: bool
    sandbox: str


class UserCommandEnded(Fact):
    """How it ended; cause: the user_command. text: its output, as it is shown and the model is told.

    exit: None where it was killed or never started. output: the whole, where text has its middle left out.
    """

    type: Literal["user_command_ended"] = "user_command_ended"
    status: CommandStatus
    exit: int | None
    text: Text
    duration_ms: int
    output: Text | None = None


class SideQuestion(Fact):
    """A question to the model that stays out of the context, as its answer does."""

    type: Literal["side_question"] = "side_question"
    text: Text


class SideAnswer(Fact):
    """What came of it; cause: the side_question. text: empty where nothing came; then error says why, in one line."""

    type: Literal["side_answer"] = "side_answer"
    text: Text
    model: str | None = None
    usage: Usage | None = None
    cost_usd: Cost = None
    error: str | None = None
