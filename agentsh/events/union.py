"""The closed union of facts, and the table from a type's name to its class."""

from typing import get_args

from agentsh.events import compaction, model, session, tool, turn, user
from agentsh.events.base import Fact

AnyFact = (
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
    | user.SideAnswer
)

KINDS: dict[str, type[Fact]] = {kind.type: kind for kind in get_args(AnyFact)}
"""Every type of event this version knows, by its name in the log."""
