"""How soon after an interruption the prompt is at rest, whatever ran: at random moments of each kind of work."""

import random
import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import pyte
from sitting import Bench, served, words
from table import Row
from terminal import Pty

SEED = 20261130
TALK = 6
KEYS = ("\x03", "\x1b")


class Moment(NamedTuple):
    """A kind of work. typed: what begins it. replies: what the server says meanwhile. seen: that it has begun.

    over: what is to be seen once it is at rest. mode: of the session. needs_talk: there must be something to compact.
    """

    name: str
    typed: str
    replies: Sequence[object]
    seen: str
    over: Sequence[str]
    mode: str = "yolo"
    needs_talk: bool = False


_TURN = ("■ interrupted", " step")
_SLOW = {"chunk": 8, "gap_s": 0.005}
_CODE = "```python\n" + "".join(f"    v{n:05} = call({n}, 'text')  # why\n" for n in range(2_000))
MOMENTS = (
    Moment("an answer", "go", [{"text": words(2_000), **_SLOW}], "w000003", _TURN),
    Moment("a long block of code", "go", [{"text": _CODE, **_SLOW}], "v00003", _TURN),
    Moment("reasoning", "go", [{"reasoning": words(2_000), **_SLOW}], "w0", _TURN),  # only its newest words are shown
    Moment(
        "a command",
        "go",
        [{"text": "I run it.", "calls": [{"name": "shell", "arguments": {"command": "seq 50; sleep 60"}}]}],
        "  49",
        _TURN,
    ),
    Moment(
        "an approval",
        "go",
        [{"text": "May I?", "calls": [{"name": "shell", "arguments": {"command": "touch x; sleep 60"}}]}],
        "no, and say why",
        _TURN,
        "ask",
    ),
    Moment(
        "the wait for a retry", "go", [{"error": {"status": 429, "headers": {"Retry-After": "30"}}}], "retry 1", _TURN
    ),
    Moment("a command of the user's", "!seq 9; sleep 60", [], "  9", ("interrupted",)),
    Moment(
        "a compaction",
        "/compact",
        [{"text": words(2_000), **_SLOW}],
        "compacting",
        ("interrupted: nothing",),
        needs_talk=True,
    ),
)


def interrupts(bench: Bench, times: int) -> list[Row]:
    """Return the longest of all, and for each kind, in a session of its own, its longest."""
    rng = random.Random(SEED)
    took: dict[str, list[float]] = {}
    for at, moment in enumerate(MOMENTS):
        talk = [{"text": words(2_000, n * 2_000), "chunk": 400} for n in range(TALK)] if moment.needs_talk else []
        with served(bench.place, [*talk, *({"forever": reply} for reply in moment.replies)]) as url:
            terminal = bench.ready(bench.agentsh(url, "--mode", moment.mode))
            seen = _Seen(terminal)
            for n in range(len(talk)):
                terminal.type(f"say {n}\r")
                seen.wait("", [f"w{n * 2_000 + 1_999:06}", " step"])
                terminal.wait(0.2)
            share = times // len(MOMENTS) + (at < times % len(MOMENTS))
            took[moment.name] = [_interrupted(terminal, seen, moment, n, rng) for n in range(share)]
            terminal.close()
    every = [seconds for found in took.values() for seconds in found]
    each = "; ".join(f"{name} {max(found) * 1000:.0f} ({len(found)})" for name, found in took.items() if found)
    note = f"median {statistics.median(every) * 1000:.0f} ms, {len(every)} times; the longest of each kind: {each}"
    return [Row("interrupt to prompt, the longest", "absolute", max(every) * 1000, 500, True, unit=" ms", note=note)]


class _Seen:
    """What a person would see of a terminal: only cells that change are written, so the bytes alone do not tell."""

    def __init__(self, terminal: Pty) -> None:
        self._terminal = terminal
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        self._at = 0

    def below(self, mark: str, texts: Sequence[str]) -> bool:
        """Whether all texts are to be seen below the last row with a mark."""
        output = self._terminal.output
        self._stream.feed(bytes(output[self._at :]))
        self._at = len(output)
        page = "\n".join(self._screen.display)
        part = page[page.rfind(mark) if mark in page and mark else 0 :]
        return all(text in part for text in texts)

    def wait(self, mark: str, texts: Sequence[str], seconds: float = 20.0) -> None:
        """Read until they are."""
        end = time.perf_counter() + seconds
        while not self.below(mark, texts):
            if time.perf_counter() > end:
                raise TimeoutError("\n".join([*self._screen.display, f"{texts} did not come"]))
            self._terminal.read(0.01)


def _interrupted(terminal: Pty, seen: _Seen, moment: Moment, n: int, rng: random.Random) -> float:
    """Begin, wait for a random time, interrupt; return the seconds until the prompt is at rest."""
    mark = "" if moment.typed.startswith("/") else f" # {n}"
    terminal.type(moment.typed + mark)
    seen.wait("", [mark])
    terminal.type("\r")
    seen.wait(mark, [moment.seen])
    terminal.wait(rng.uniform(0.0, 1.0))
    key = rng.choice(KEYS)
    began = time.perf_counter()
    terminal.type(key)
    seen.wait(mark, moment.over)
    took = time.perf_counter() - began
    terminal.wait(0.15)  # a key that follows an Esc at once would make another key of it
    return took
