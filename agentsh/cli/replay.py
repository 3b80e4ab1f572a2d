"""`agentsh replay`: the facts of a log through the renderer that showed them live. No session, model or workspace."""

import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from agentsh.app.catalog import Place, check_plain, find
from agentsh.app.paths import find_homes, here
from agentsh.app.screens import document_renderer, json_renderer, screen_renderer
from agentsh.app.stores import blob_store, event_store
from agentsh.app.texts import BlobTexts
from agentsh.app.width import draws
from agentsh.base.errors import LogTooNew, UsageProblem
from agentsh.base.text import plural
from agentsh.events.codec import decode
from agentsh.events.event import Event, Opaque
from agentsh.events.tool import ToolResult
from agentsh.events.union import KINDS, AnyFact
from agentsh.events.user import UserCommandEnded
from agentsh.log.record import Record
from agentsh.log.segment import OPEN_NAME
from agentsh.log.store import EventStore
from agentsh.ports.renderer import Renderer
from agentsh.ports.texts import Texts

LONGEST_PAUSE_S = 3.0
"""With --speed, a pause is never longer than this: people went for lunch, the replay need not."""
POLL_S = 0.2
"""With --follow, how often the log is looked at."""
REST = 4
"""With --follow, it rests this many times as long as the last reading took: a change means reading the log anew."""
LONGEST_REST_S = 5.0


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of the command, as given."""

    session: str | None
    last: bool
    speed: float | None
    step: bool
    from_seq: int
    to_seq: int | None
    types: tuple[str, ...]
    follow: bool
    format: str
    output: Path | None
    full: bool = False


def run(options: ReplayOptions) -> int:
    """Show the session; return 0."""
    if unknown := [t for t in options.types if t not in KINDS]:
        raise UsageProblem(f"--type {unknown[0]}: there is no such type", hint="types: " + ", ".join(sorted(KINDS)))
    if options.session is None and not options.last:
        raise UsageProblem("which session?", hint="`agentsh replay ID`, or --last for the newest")
    if options.step and options.speed is not None:
        raise UsageProblem("--step and --speed do not go together")
    if options.step and options.format in ("md", "html"):
        raise UsageProblem("--step shows what a terminal shows, not a document", hint="--format screen")
    if options.step and not sys.stdin.isatty():
        raise UsageProblem("--step needs a terminal to wait for Enter on")
    if options.full and options.format == "json":
        raise UsageProblem(
            "--full is for reading: JSON is each line as it lies in the log, where long texts are named"
        )
    place = find(find_homes(here(), os.environ), options.session, last=options.last)
    check_plain(place)
    store = event_store(place.home)
    with ExitStack() as stack:
        out = _output(options.output, stack)
        text: TextIO = sys.stdout if options.output is None else io.TextIOWrapper(out, "utf-8", write_through=True)
        page, texts = _Page(text), BlobTexts(blob_store(place.home))
        if options.format == "json":
            renderer = json_renderer(out)
        elif options.format in ("md", "html"):
            renderer = document_renderer(options.format, out, texts)
        else:
            to = page if options.step else text
            renderer = screen_renderer(to, texts, live=False, plain=options.format == "text", full=options.full)
        stack.callback(renderer.close)
        played = _play(_wanted(_records(store, place, options), options), renderer, options, page, texts)
    damaged = _tell_of_damage(store, place, "the rest" if played else "nothing")
    if not played and not damaged:
        print(f"agentsh: no event of {place.id} is among those asked for", file=sys.stderr)
    return 0


def _tell_of_damage(store: EventStore, place: Place, shown: str) -> bool:
    """Say what of the log does not read, and what was shown all the same; return whether there was any."""
    damages = [d for d in store.damages(place.id) if not d.harmless and d.kind != "torn"]
    if any(d.kind == "newer" for d in damages):
        raise LogTooNew(f"the log of {place.id} has a newer format than this version reads", hint="update agentsh")
    if damages:
        do = "does" if len(damages) == 1 else "do"
        places = f"{plural(len(damages), 'place')} of the log of {place.id} {do} not read"
        print(f"agentsh: {places}; {shown} was shown (`agentsh verify {place.id}` tells where)", file=sys.stderr)
    return bool(damages)


def _output(path: Path | None, stack: ExitStack) -> BinaryIO:
    """Return where to write: stdout, or a new file that only its owner reads; what fails leaves none."""
    if path is None:
        return sys.stdout.buffer
    from agentsh.app.exporting import create

    path = path.expanduser()
    out = create(path)

    def failed(kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, Exception):  # Ctrl-C ends --follow: what came until then is kept
            path.unlink(missing_ok=True)

    stack.push(failed)
    return stack.enter_context(out)


class _Page(io.StringIO):
    """With --step: what an event shows, until Enter is pressed for it. Looks to a renderer like the real output."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._real = out

    def isatty(self) -> bool:
        return self._real.isatty()

    def fileno(self) -> int:
        return self._real.fileno()

    def take(self) -> str:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text

    def turn(self, text: str) -> None:
        self._real.write(text)
        self._real.flush()


class _Mark(NamedTuple):
    """What tells one state of a log from the next: a rescue gives the name to another file, which may be shorter."""

    inode: int
    size: int


def _mark(place: Place) -> _Mark | None:
    try:
        found = os.lstat(place.home.sessions / place.id / OPEN_NAME)
    except OSError:
        return None
    return _Mark(found.st_ino, found.st_size)


def _records(store: EventStore, place: Place, options: ReplayOptions) -> Iterator[Record]:
    seq, seen, first = options.from_seq - 1, None, True
    while True:
        now, spent_s = _mark(place), 0.0  # looked at before the reading, so that what comes meanwhile is a change
        if first or now != seen:
            first, seen = False, now
            reading = store.read(place.id, after_seq=seq)
            while True:
                began_s = time.monotonic()
                record = next(reading, None)
                spent_s += time.monotonic() - began_s
                if record is None:
                    break
                seq = record.seq
                yield record
        if not options.follow or (options.to_seq is not None and seq >= options.to_seq):
            return
        time.sleep(min(max(POLL_S, REST * spent_s), LONGEST_REST_S))


def _wanted(records: Iterator[Record], options: ReplayOptions) -> Iterator[Record]:
    for record in records:
        if options.to_seq is not None and record.seq > options.to_seq:
            return
        if not options.types or record.type in options.types:
            yield record


def _whole(fact: AnyFact | Opaque, texts: Texts) -> AnyFact | Opaque:
    """Return a fact that shows all that was printed where it shows, and tells the model, a part."""
    if isinstance(fact, UserCommandEnded) and fact.output is not None:
        return fact.model_copy(update={"text": fact.output})
    if isinstance(fact, ToolResult) and fact.output is not None:
        summary = texts.text(fact.for_user).strip("\n").partition("\n")[0]
        whole = texts.text(fact.output)
        return fact.model_copy(update={"for_user": f"{summary}\n{whole}", "for_model": whole})
    return fact


def _play(records: Iterator[Record], renderer: Renderer, options: ReplayOptions, page: _Page, texts: Texts) -> int:
    """Hand the events to the renderer at their pace; return how many there were."""
    before: Event | None = None
    shown, played = False, 0
    for record in records:
        event = decode(record)
        if options.full:
            event = event._replace(fact=_whole(event.fact, texts))
        played += 1
        if options.speed is not None and before is not None:
            time.sleep(_pause_s(before, event, options.speed))
        before = event
        if not options.step:
            renderer.on(event)
        elif options.format == "json":
            if shown and not _enter(event):
                return played
            renderer.on(event)
            shown = True
        else:
            renderer.on(event)
            if text := page.take():
                if shown and not _enter(event):
                    return played
                page.turn(text)
                shown = True
    return played


def _pause_s(before: Event, event: Event, speed: float) -> float:
    try:
        seconds = (datetime.fromisoformat(event.ts) - datetime.fromisoformat(before.ts)).total_seconds()
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0) / speed, LONGEST_PAUSE_S)


def _enter(event: Event) -> bool:
    """Wait for Enter; the prompt for it goes to stderr and is wiped. False at the end of input.

    Keys are not echoed meanwhile, so the prompt is the only thing on its row, whatever was typed and when.
    """
    import termios

    sys.stdout.flush()
    before = termios.tcgetattr(sys.stdin)
    mode = termios.tcgetattr(sys.stdin)
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, mode)
    sys.stderr.write(f"[Enter: {event.seq} {event.fact.type}]")
    sys.stderr.flush()
    try:
        line = sys.stdin.readline()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        sys.stderr.write("\r\x1b[2K" if draws(sys.stderr, os.environ) else "\n")
        sys.stderr.flush()
    return bool(line)
