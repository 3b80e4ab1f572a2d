"""A session's whole log, read from its store, for what no state remembers."""

from collections.abc import Iterator

from agentsh.base.light import dataclass
from agentsh.context.rewinds import MOMENTS, REWINDS, Folder, Moments, targets
from agentsh.context.state import SessionState
from agentsh.events.codec import decode
from agentsh.log.record import Record
from agentsh.log.store import EventStore


@dataclass(frozen=True, slots=True)
class LoggedSession:
    """Implements `rewinding.WholeLog` on a store. upto_seq: later events do not count; None: all do."""

    store: EventStore
    session: str
    upto_seq: int | None = None

    def state(self) -> SessionState:
        """Return what the log folds to, rewinds included. Reads it twice."""
        folder = Folder(targets(map(decode, self._records(REWINDS))))
        for record in self._records(None):
            folder.add(decode(record))
        return folder.state

    def moments(self) -> Moments:
        """Return what there is to go back to."""
        found = Moments()
        last = 0
        for record in self._records(None):
            last = record.seq
            if record.type in MOMENTS:
                found.add(decode(record))
        found.last_seq = last
        return found

    def _records(self, types: frozenset[str] | None) -> Iterator[Record]:
        for record in self.store.read(self.session):
            if self.upto_seq is not None and record.seq > self.upto_seq:
                return
            if types is None or record.type in types:
                yield record
