"""The final answer and nothing else, for scripts: text to one stream, what went wrong to another."""

from typing import TextIO

from agentsh.base.text import clean, one_line, plural
from agentsh.events.compaction import Compaction
from agentsh.events.event import Event
from agentsh.events.session import Note, Recovered
from agentsh.events.signals import DiskNearlyFull, Retrying, SavingStopped, Signal
from agentsh.events.turn import AgentMessage, TurnFinished, UserMessage
from agentsh.ports.texts import Texts
from agentsh.render import words


class FinalRenderer:
    """Prints the text of a turn's last reply, as Markdown source, once the turn is over.

    A reply that was cut off is printed too; one that only asked for tools is no answer.
    """

    def __init__(self, out: TextIO, err: TextIO, texts: Texts) -> None:
        self._out = out
        self._err = err
        self._texts = texts
        self._answer = ""
        self._unsaved = ""
        self._warned = False

    def on(self, event: Event) -> None:
        """Keep the newest reply; print it at the end of the turn."""
        match event.fact:
            case UserMessage():
                self._answer = ""
            case AgentMessage(text=text, finish=finish):
                self._answer = "" if finish == "tool_calls" else clean(self._texts.text(text)).rstrip()
            case TurnFinished() as fact:
                self._finish(fact)
            case Recovered() as fact:
                self._say(words.recovered(fact))
            case Compaction() as fact:
                self._say(words.compacted(fact))
            case Note(text=text):
                self._say(one_line(self._texts.text(text), 300))

    def signal(self, signal: Signal) -> None:
        """Tell of retries and of a disk that fills up; keep for the end that the log could not be written."""
        match signal:
            case Retrying():
                self._say(
                    f"{one_line(signal.reason, 300)}; retry {signal.attempt} of {signal.max_attempts} "
                    f"in {signal.delay_s:.1f} s"
                )
            case SavingStopped(reason):
                self._unsaved = one_line(reason, 300)
            case DiskNearlyFull(reason):
                if not self._warned:
                    self._say(f"{one_line(reason, 300)}: nothing that has effects is started")
                self._warned = True

    def close(self) -> None:
        """Flush both."""
        self._out.flush()
        self._err.flush()

    def _finish(self, fact: TurnFinished) -> None:
        answer, self._answer = self._answer, ""
        if self._unsaved:  # a turn that could not be saved at all ends in an error, which whoever ran it tells
            self._say(f"for a while nothing was being saved: {self._unsaved}")
            self._unsaved = ""
        if answer and fact.reason != "crashed":  # a turn of an earlier process, closed by this opening
            _write(self._out, answer + "\n")
        problem = {
            "interrupted": "interrupted",
            "max_steps": f"stopped at the limit of {plural(fact.steps, 'step')}",
            "max_cost": "stopped at the limit of cost",
            "error": one_line(fact.error or "failed", 500),
        }.get(fact.reason)
        if problem:
            self._say(problem)

    def _say(self, text: str) -> None:
        _write(self._err, f"agentsh: {text}\n")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()
