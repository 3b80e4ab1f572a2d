"""Signals: unlogged previews that say nothing which the next fact will not. They may be dropped."""

from typing import NamedTuple


class TextDelta(NamedTuple):
    """New text of the reply that is streaming."""

    text: str


class ReasoningDelta(NamedTuple):
    """New reasoning text of the reply that is streaming."""

    text: str


class ReasoningEnded(NamedTuple):
    """The answer begins behind reasoning; the agent_message will say the same. ms, words: see its `thought`."""

    ms: int
    words: int


class ToolProgress(NamedTuple):
    """New output of a running tool. call_seq: seq of its tool_call."""

    call_seq: int
    text: str


class Retrying(NamedTuple):
    """A request failed and will be sent again. attempt: 1 for the first retry."""

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str


class SavingStopped(NamedTuple):
    """The log cannot be written; nothing is being saved. reason: one line."""

    reason: str


class DiskNearlyFull(NamedTuple):
    """There is little room left for the log; nothing with effects is started. reason: one line."""

    reason: str


Signal = TextDelta | ReasoningDelta | ReasoningEnded | ToolProgress | Retrying | SavingStopped | DiskNearlyFull
