"""Logs made by hand, byte for byte the same in each run."""

from agentsh.log.chain import LogScan
from agentsh.log.frame import encode_event, encode_header
from agentsh.log.record import Draft, Header
from agentsh.log.segment import OPEN_NAME
from tests.log.disks import MemFiles

SESSION = "20261129-k3v9qd"
TS = "2026-11-29T16:20:01.123456Z"
DIR = f"/sessions/{SESSION}"
LOG = f"{DIR}/{OPEN_NAME}"


def header(ordinal: int = 0, first_seq: int = 1, *, rescue: bool = False, session: str = SESSION) -> Header:
    return encode_header(
        session, ordinal=ordinal, first_seq=first_seq, nonce=f"{ordinal:016x}", created=TS, by="test 1", rescue=rescue
    )


def line(seq: int, salt: int, *, dur: int = 0, text: str = "", kind: str = "note") -> bytes:
    return encode_event(Draft(kind, TS, {"text": text or f"text {seq}"}), seq=seq, dur=dur, salt=salt)


def lines(head: Header, first: int, last: int, *, behind: int = 1) -> list[bytes]:
    """Return the lines of seqs first to last. behind: how far `dur` lags."""
    return [line(seq, head.salt, dur=max(seq - behind, 0)) for seq in range(first, last + 1)]


def scanned(files: MemFiles, directory: str = DIR) -> tuple[list[tuple[int, bytes]], LogScan]:
    """Return (seq, text) of all that reads, and the scan at its end."""
    scan = LogScan(files, directory, SESSION)
    found = [(seq, text) for seq, text, _, _ in scan.entries()]
    scan.close()
    return found, scan


def scan_of(data: bytes) -> tuple[list[tuple[int, bytes]], LogScan]:
    """Scan one open segment."""
    files = MemFiles()
    files.put(LOG, data)
    return scanned(files)


def kinds(scan: LogScan) -> list[str]:
    return [d.kind for d in scan.damages]
