"""The closed union of facts, and the table from a type's name to its class."""

from typing import Annotated, get_args

from pydantic import Field

from agentsh.events import compaction, model, session, tool, turn, user
from agentsh.events.base import Fact

AnyFact = Annotated[
    session.SessionInit
    | session.EnvironmentChanged
    | session.Opened
    | session.Recovered
    | session.ModeChanged
    | session.ModelChanged
    | session.Renamed
    | session.Tagged
    | session.Checkpoint
    | session.WorkspaceMoved
    | session.SnapshotTaken
    | session.Rewound
    | session.RewindUndone
    | session.Note
    | turn.UserMessage
    | turn.TextQueued
    | turn.TextWithdrawn
    | turn.ContextBuilt
    | turn.AgentMessage
    | turn.PartialMessage
    | turn.TurnFinished
    | compaction.SummaryTried
    | compaction.Compaction
    | compaction.CompactionUndone
    | turn.ImageDropped
    | turn.TodoChanged
    | tool.ToolCall
    | tool.ApprovalAsked
    | tool.ApprovalAnswered
    | tool.ToolStarted
    | tool.CodeEdit
    | tool.ToolResult
    | tool.PartialOutput
    | tool.HookAnswered
    | tool.ShellChanged
    | tool.JobChanged
    | model.WindowLearned
    | user.UserCommand
    | user.UserCommandEnded
    | user.SideQuestion
    | user.SideAnswer,
    Field(discriminator="type"),
]

KINDS: dict[str, type[Fact]] = {kind.model_fields["type"].default: kind for kind in get_args(get_args(AnyFact)[0])}
"""Every type of event this version knows, by its name in the log."""
