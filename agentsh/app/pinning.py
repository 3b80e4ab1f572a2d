"""Pins of a session: its state and the log under that, kept by hard link whatever becomes of either."""

import asyncio
import os
import socket
from typing import NamedTuple

from agentsh import __version__
from agentsh.app.catalog import Place
from agentsh.app.stores import event_store
from agentsh.base.errors import LogError, LogWriteFailed, SessionReadOnly
from agentsh.log.files import RealFiles
from agentsh.log.lease import take
from agentsh.log.pin import Pin, pin, pinned, pins, unpin
from agentsh.log.reserve import what_to_do
from agentsh.stores.walking import why


class Pinned(NamedTuple):
    """A pin. place: its directory, which reads as a session's. size: bytes of the files that it holds."""

    seq: int
    place: str
    size: int


def pin_session(place: Place) -> Pinned:
    """Pin a session as it is now; save its state first, where no checkpoint has all of it. Idempotent.

    Raises:
        SessionHeld, SessionReadOnly, LogWriteFailed: as opening and writing do.
        LogError: it has no event.
    """
    if place.archived:
        raise SessionReadOnly(f"session {place.id} is archived", hint=f"`agentsh unarchive {place.id}`")
    seq = asyncio.run(_checkpoint(place))
    files, directory = RealFiles(), _directory(place)
    try:
        lease = take(files, directory, place.id)
        try:
            made = pin(files, directory, place.id, seq)
        finally:
            lease.release()
    except OSError as error:
        raise LogWriteFailed(f"cannot pin session {place.id}: {why(error)}", hint=what_to_do(error)) from error
    if made is None:
        raise LogError(f"session {place.id}: its log does not confirm the checkpoint of event {seq}")
    return _told(made)


def pinned_in(place: Place) -> list[Pinned]:
    """Return the pins of a session, in order of their events."""
    files, directory = RealFiles(), _directory(place)
    found = [pinned(files, directory, seq) for seq in pins(files, directory)]
    return [_told(one) for one in found if one is not None]


def let_go(place: Place, seq: int) -> bool:
    """Remove a pin, and what only it held; return False where there is none.

    Raises:
        LogWriteFailed: the disk refused; again goes on from there.
    """
    if seq not in pins(RealFiles(), _directory(place)):
        return False
    try:
        unpin(RealFiles(), _directory(place), seq)
    except OSError as error:
        raise LogWriteFailed(f"cannot remove the pin: {why(error)}") from error
    return True


def _directory(place: Place) -> str:
    return str(place.home.sessions / place.id)


def _told(found: Pin) -> Pinned:
    size = sum(entry.stat().st_size for entry in os.scandir(found.place))
    return Pinned(found.checkpoint.anchor.seq, found.place, size)


async def _checkpoint(place: Place) -> int:
    """Return the seq of a checkpoint of all that the session holds."""
    from agentsh.app.opening import open_folded
    from agentsh.base.clock import SystemClock
    from agentsh.context.rewinds import settle
    from agentsh.context.state_codec import encode_state, reducer
    from agentsh.engine.bus import Bus
    from agentsh.engine.journal import Journal
    from agentsh.engine.open import Writer, reopen
    from agentsh.engine.whole import LoggedSession
    from agentsh.events.session import Checkpoint
    from agentsh.log.checkpoint import KEEP

    store = event_store(place.home)
    opened, folded = await open_folded(store, place.id)
    try:
        state, saved = folded.state, opened.folded
        if not state.last_seq:
            raise LogError(f"session {place.id} is empty", hint="`agentsh new` starts another")
        if saved is not None and not opened.recovery and all(r.type == "checkpoint" for r in opened.records):
            return saved.upto_seq
        if state.behind:
            settle(state, await asyncio.to_thread(LoggedSession(store, place.id).state))
        journal = Journal(opened.log, state, Bus(None), SystemClock())
        await reopen(journal, opened.recovery, Writer(__version__, socket.gethostname(), os.getpid()))
        seq = state.last_seq
        name = await opened.log.checkpoint(encode_state(state), reducer=reducer(), keep=KEEP)
        if name is None:
            raise LogWriteFailed(f"cannot save the state of session {place.id}", hint="`agentsh doctor` says why")
        await journal.record(Checkpoint(file=name, upto_seq=seq), durable=True)
        return seq
    finally:
        await opened.log.close()
