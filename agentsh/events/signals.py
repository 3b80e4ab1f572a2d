"""Signals: unlogged previews that say nothing which the next fact will not. They may be dropped."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of the reply that is streaming."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """New reasoning text of the reply that is streaming."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """New output of a running tool. call_seq: seq of its tool_call."""

    call_seq: int
    text: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """A request failed and will be sent again. attempt: 1 for the first retry."""

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class SavingStopped:
    """The log cannot be written; nothing is being saved. reason: one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class DiskNearlyFull:
    """There is little room left for the log; nothing with effects is started. reason: one line."""

    reason: str


Signal = TextDelta | ReasoningDelta | ToolProgress | Retrying | SavingStopped | DiskNearlyFull
