"""`agentsh replay`: the facts of a log through the renderer that showed them live. No session, model or workspace."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from agentsh.app.build import blob_store, event_store
from agentsh.app.catalog import Place, find
from agentsh.app.paths import find_homes
from agentsh.app.screens import screen_renderer
from agentsh.app.texts import BlobTexts
from agentsh.app.wiring import RENDERERS, load
from agentsh.base.errors import UsageProblem
from agentsh.events.codec import decode
from agentsh.events.event import Event
from agentsh.events.union import KINDS
from agentsh.log.record import Record
from agentsh.log.store import EventStore
from agentsh.ports.renderer import Renderer

LONGEST_PAUSE_S = 3.0
"""With --speed, a pause is never longer than this: people went for lunch, the replay need not."""
POLL_S = 0.2
"""With --follow, how often the log's size is looked at."""


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


def run(options: ReplayOptions) -> int:
    """Show the session; return 0."""
    if unknown := [t for t in options.types if t not in KINDS]:
        raise UsageProblem(f"--type {unknown[0]}: there is no such type", hint="types: " + ", ".join(sorted(KINDS)))
    if options.session is None and not options.last:
        raise UsageProblem("which session?", hint="`agentsh replay ID`, or --last for the newest")
    if options.step and options.speed is not None:
        raise UsageProblem("--step and --speed do not go together")
    if options.step and not sys.stdin.isatty():
        raise UsageProblem("--step needs a terminal to wait for Enter on")
    place = find(find_homes(Path.cwd(), os.environ), options.session, last=options.last)
    store = event_store(place.home)
    with ExitStack() as stack:
        out = _output(options.output, stack)
        renderer = _renderer(options, out, place)
        stack.callback(renderer.close)
        _play(_wanted(_records(store, place, options), options), renderer, options)
    return 0


def _output(path: Path | None, stack: ExitStack) -> BinaryIO:
    if path is None:
        return sys.stdout.buffer
    try:
        return stack.enter_context(path.open("wb"))
    except OSError as error:
        raise UsageProblem(f"{path} cannot be written: {error.strerror}") from None


def _renderer(options: ReplayOptions, out: BinaryIO, place: Place) -> Renderer:
    if options.format == "json":
        return cast(Renderer, load(RENDERERS["json"])(out))
    import io

    text: TextIO = sys.stdout if options.output is None else io.TextIOWrapper(out, "utf-8", write_through=True)
    return screen_renderer(text, BlobTexts(blob_store(place.home)), live=False, plain=options.format == "text")


def _records(store: EventStore, place: Place, options: ReplayOptions) -> Iterator[Record]:
    seq, size = options.from_seq - 1, -1
    log = place.home.sessions / place.id / "events.jsonl"
    while True:
        now = log.stat().st_size if log.exists() else 0
        if now != size:
            size = now
            for record in store.read(place.id, after_seq=seq):
                seq = record.seq
                yield record
        if not options.follow or (options.to_seq is not None and seq >= options.to_seq):
            return
        time.sleep(POLL_S)


def _wanted(records: Iterator[Record], options: ReplayOptions) -> Iterator[Record]:
    for record in records:
        if options.to_seq is not None and record.seq > options.to_seq:
            return
        if not options.types or record.type in options.types:
            yield record


def _play(records: Iterator[Record], renderer: Renderer, options: ReplayOptions) -> None:
    before: Event | None = None
    for record in records:
        event = decode(record)
        if options.speed is not None and before is not None:
            time.sleep(_pause_s(before, event, options.speed))
        if options.step and before is not None and not _enter(event):
            return
        before = event
        renderer.on(event)


def _pause_s(before: Event, event: Event, speed: float) -> float:
    try:
        seconds = (datetime.fromisoformat(event.ts) - datetime.fromisoformat(before.ts)).total_seconds()
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0) / speed, LONGEST_PAUSE_S)


def _enter(event: Event) -> bool:
    """Wait for Enter; the prompt for it goes to stderr and is wiped. False at the end of input."""
    sys.stdout.flush()
    sys.stderr.write(f"[Enter: {event.seq} {event.fact.type}]")
    sys.stderr.flush()
    try:
        line = sys.stdin.readline()
    finally:
        sys.stderr.write("\x1b[A\r\x1b[2K" if sys.stderr.isatty() else "\n")
        sys.stderr.flush()
    return bool(line)
