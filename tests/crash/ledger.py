"""What a log has promised so far, and whether what is found after a crash keeps it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from agentsh.log.files import READ
from agentsh.log.record import Draft, Record
from agentsh.log.sealed import SealedFile
from agentsh.log.segment import OPEN_NAME
from agentsh.log.store import BlobStore, Recovery
from tests.log.disks import MemFiles

_SEQ = re.compile(rb'\{"seq":([0-9]+),')


class Violation(Exception):
    """A promise was broken; the message says which."""


def body(record: Record) -> bytes:
    """Return a line without its crc, which is another one in a rescue segment."""
    return record.raw[:-19]


class Ledger:
    """One session. created: `create` has returned. durable: highest seq that was said to survive a power cut.

    tried: every text that was ever given to `append`. told: the line of each append that returned.
    gone: seqs that may be missing: never synced before an earlier cut, or hit by rot.
    had: highest seq that a checkpoint may tell of when the log's end is gone.
    header: line that was durable when `create` or `open` returned. kept: quarantined bytes by file.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.created = False
        self.tried: set[str] = set()
        self.told: dict[int, bytes] = {}
        self.last = 0
        self.durable = 0
        self.gone: set[int] = set()
        self.had = 0
        self.header = b""
        self.kept: dict[str, bytes] = {}

    def trying(self, drafts: Iterable[Draft]) -> None:
        self.tried.update(draft.payload["text"] for draft in drafts)

    def told_of(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.seq != self.last + 1:
                raise Violation(f"append gave seq {record.seq} behind {self.last}")
            self.last = record.seq
            self.told[record.seq] = body(record)
            self.gone.discard(record.seq)

    def said_durable(self, seq: int) -> None:
        self.durable = max(self.durable, seq)
        self.had = max(self.had, seq)

    def goes_on_behind(self, seq: int) -> None:
        """Take note of the seq behind which an opening goes on: that of a checkpoint, where the log ends before it.

        Raises:
            Violation: the log never had so many that were durable, or hit by rot.
        """
        if seq != self.last and not self.last < seq <= self.had:
            raise Violation(f"the log goes on behind {seq}, and ends at {self.last}; it had {self.had}")
        self.gone.update(range(self.last + 1, seq + 1))
        self.last = seq

    def rotted(self, data: bytes, offset: int) -> None:
        """Take note that a byte of a segment was changed: its line may go, and no other."""
        self.had = max(self.had, self.last)
        start, end = data.rfind(b"\n", 0, offset) + 1, data.find(b"\n", offset) + 1 or len(data)
        self.gone.update(int(seq) for seq in _SEQ.findall(data[start:end]))  # several, where a cut has glued them
        if start == 0:
            self.header = b""

    def rotted_frame(self, packed: bytes, offset: int) -> None:
        """Take note that a byte of a sealed segment was changed: the lines of its frame may go, and no others."""
        self.had = max(self.had, self.last)
        files = MemFiles()
        files.put("/s", packed)
        fd = files.open("/s", READ)
        sealed = SealedFile(files, fd)
        for frame in sealed.frames:
            if frame.at <= offset < frame.at + frame.size:
                content = sealed.unpack(frame) or b""
                self.gone.update(int(seq) for seq in _SEQ.findall(content))
                if frame.raw_at == 0:
                    self.header = b""

    # The checks.

    def check(self, records: Sequence[Record], blobs: BlobStore, *, power_cut: bool) -> None:
        """Compare what was read with what was promised, and go on from there.

        Raises:
            Violation: a promise is broken.
        """
        found = {record.seq: record for record in records}
        seqs = [record.seq for record in records]
        if seqs != sorted(found):
            raise Violation(f"seqs out of order: {seqs}")
        promised = self.durable if power_cut else self.last
        for seq in range(1, max(promised, seqs[-1] if seqs else 0) + 1):
            if seq in found:
                self._is_right(found[seq], blobs, sure=seq <= promised)
            elif seq <= promised and seq not in self.gone:
                raise Violation(
                    f"record {seq} of {promised} promised ones is lost; found {len(seqs)} up to {seqs[-1:]}"
                )
            else:
                self.gone.add(seq)
        self.last = seqs[-1] if seqs else 0
        self.durable = min(self.durable, self.last)
        self.told = {record.seq: body(record) for record in records}
        self.gone = {seq for seq in self.gone if seq <= self.last}

    def _is_right(self, record: Record, blobs: BlobStore, *, sure: bool) -> None:
        told = self.told.get(record.seq)
        if sure and record.seq not in self.gone and told is not None and body(record) != told:
            raise Violation(f"record {record.seq} is another: {record.raw[:80]!r}, told {told[:80]!r}")
        text = record.payload.get("text")
        if isinstance(text, Mapping):
            text = blobs.get(text["blob"]).decode()  # BlobMissing: an event names what is not there
        if text not in self.tried:
            raise Violation(f"record {record.seq} was never appended: {record.raw[:120]!r}")

    def check_bytes(self, before: Mapping[str, bytes], after: Mapping[str, bytes], recovery: Recovery) -> None:
        """Check that recovery lost no byte. before, after: the files of the session, by name below it.

        Raises:
            Violation: bytes are gone.
        """
        segments = [data for name, data in after.items() if name.endswith(".jsonl")]
        segments += [content(data) for name, data in after.items() if name.endswith(".jsonl.zst")]
        quarantine = {name: data for name, data in after.items() if name.startswith("quarantine/")}
        for name, data in self.kept.items():
            if quarantine.get(name) != data:
                raise Violation(f"{name} was kept, and is there no more")
        old = before.get(OPEN_NAME, b"")
        removed = old[max((_shared(old, data) for data in segments), default=0) :]
        if removed and removed not in quarantine.values() and old not in quarantine.values():
            raise Violation(f"{len(removed)} bytes were cut off and not kept")
        for name in (f"quarantine/{name}" for name in recovery.quarantined):
            if name not in quarantine:
                raise Violation(f"recovery names {name}, which is not there")
            self.kept[name] = quarantine[name]
        if self.header and not any(data.startswith(self.header) for data in segments):
            raise Violation("the header of a segment that was ready is lost")
        self.header = after.get(OPEN_NAME, b"").partition(b"\n")[0] + b"\n"


def content(packed: bytes) -> bytes:
    """Return what is in a sealed segment, as far as it unpacks."""
    files = MemFiles()
    files.put("/s", packed)
    sealed = SealedFile(files, files.open("/s", READ))
    return b"".join(sealed.unpack(frame) or b"" for frame in sealed.frames)


def _shared(one: bytes, other: bytes) -> int:
    """Return how many first bytes are the same."""
    if one == other[: len(one)]:
        return len(one)
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(other))


def draft(text: str) -> Draft:
    """Return an event to append."""
    return Draft("note", "2026-11-29T16:20:01.123456Z", {"text": text})


def looks_whole(line: bytes) -> bool:
    """Tell whether a line is JSON with a seq: what a reader without checksums goes by."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and type(value.get("seq")) is int and isinstance(value.get("payload"), dict)
