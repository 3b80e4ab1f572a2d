"""What an uploaded session consists of: one small object that is changed last. Normative: docs/upload.md."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from agentsh.base.errors import StorageDamaged, StorageRefused
from agentsh.base.ids import is_session_id
from agentsh.log.frame import CRC_TAIL, crc_fits, dump_json, with_crc
from agentsh.log.segment import OPEN_NAME, closed_segments

FORMAT = "agentsh-upload/1"
FAMILY = "agentsh-upload/"
MARKER_KEY = "agentsh-upload.json"
"""At the top of the prefix: that it is ours, and that the place honours conditions."""

_SHA = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(rb'"blob":"sha256:([0-9a-f]{64})"')


class Part(NamedTuple):
    """An object with a part of a segment's content, or a whole sealed one. sha256: of the object's bytes.

    raw_bytes: of the content in it.
    """

    key: str
    bytes: int
    sha256: str
    raw_bytes: int


class Upped(NamedTuple):
    """A segment. name: of its file. raw_sha256: of its content, as far as it goes. sealed: one object, the file."""

    name: str
    ordinal: int
    raw_bytes: int
    raw_sha256: str
    sealed: bool
    parts: tuple[Part, ...]


class Manifest(NamedTuple):
    """A session as it was at one moment. line: hash of the last event without its crc, see `line_hash`.

    lost_blobs: named by the log, but missing where it came from. about: title and such, for listings; not trusted.
    """

    session: str
    last_seq: int
    line: str
    updated: str
    by: str
    host: str
    segments: tuple[Upped, ...]
    checkpoint: Part | None
    lost_blobs: tuple[str, ...]
    about: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        """Size of the objects of the log; blobs are not counted."""
        return sum(part.bytes for segment in self.segments for part in segment.parts)


def manifest_key(session: str) -> str:
    """Return the key of a session's manifest."""
    return f"sessions/{session}/manifest.json"


def blob_key(name: str) -> str:
    """Return the key of a blob. name: 64 hex digits."""
    return f"blobs/{name[:2]}/{name}.zst"


def line_hash(line: bytes) -> str:
    """Return the SHA-256 of an event's line without its crc and what follows: a rescue or `repair` keeps that."""
    end = line if line.endswith(b"\n") else line + b"\n"
    return sha256(end[:-CRC_TAIL]).hexdigest()


def named_blobs(content: bytes) -> set[str]:
    """Return the blobs that whole lines name."""
    if b'"blob":"sha256:' not in content:
        return set()
    return {name.decode() for name in _BLOB.findall(content)}


def encode(manifest: Manifest) -> bytes:
    """Return the object: one line of JSON, its crc last, as in a segment's header."""
    value = {
        "format": FORMAT, "session": manifest.session, "last_seq": manifest.last_seq, "line_sha256": manifest.line,
        "updated": manifest.updated, "by": manifest.by, "host": manifest.host, "about": dict(manifest.about),
        "segments": [
            {**segment._asdict(), "parts": [part._asdict() for part in segment.parts]}
            for segment in manifest.segments
        ],
        "checkpoint": None if manifest.checkpoint is None else manifest.checkpoint._asdict(),
        "lost_blobs": list(manifest.lost_blobs),
    }  # fmt: skip
    return with_crc(dump_json(value)[:-1], 0)


def decode(data: bytes, session: str) -> Manifest:
    """Return the manifest in an object.

    Raises:
        StorageDamaged: it is none, is damaged, or names what no manifest of this session can.
        StorageRefused: it is of a newer format.
    """
    key = manifest_key(session)
    try:
        value: dict[str, Any] = json.loads(data) if crc_fits(data, 0) else {}
        form = value["format"]
        if form != FORMAT and isinstance(form, str) and form.startswith(FAMILY):
            raise StorageRefused(f"{key} is of the newer format {form[:40]}", hint="update agentsh")
        if form != FORMAT:
            raise ValueError(form)
        segments = tuple(
            Upped(
                _text(s["name"]), _count(s["ordinal"]), _count(s["raw_bytes"]), _sha(s["raw_sha256"]),
                s["sealed"] is True, tuple(_part(p, session) for p in s["parts"]),
            )
            for s in value["segments"]
        )  # fmt: skip
        found = Manifest(
            _text(value["session"]), _count(value["last_seq"]), _sha(value["line_sha256"]), _text(value["updated"]),
            _text(value["by"]), _text(value["host"]), segments,
            None if value["checkpoint"] is None else _part(value["checkpoint"], session),
            tuple(_sha(name) for name in value["lost_blobs"]), dict(value["about"]),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StorageDamaged(f"object {key} is damaged") from None
    names = [s.name for s in segments if s.name != OPEN_NAME]
    whole = {c.name: c for c in closed_segments(names)}
    right = found.session == session and is_session_id(session) and len(whole) == len(names) == len(set(names))
    right = right and all(s.name == OPEN_NAME or whole[s.name].sealed == s.sealed for s in segments)
    if not right or [s.name for s in segments].count(OPEN_NAME) > 1:
        raise StorageDamaged(f"object {key} names what no manifest of {session} can")
    return found


def _part(value: Mapping[str, Any], session: str) -> Part:
    key = _text(value["key"])
    if not key.startswith(f"sessions/{session}/") or any(p in ("", ".", "..") for p in key.split("/")):
        raise ValueError(key)
    return Part(key, _count(value["bytes"]), _sha(value["sha256"]), _count(value["raw_bytes"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _sha(value: Any) -> str:
    if not isinstance(value, str) or _SHA.fullmatch(value) is None:
        raise ValueError
    return value
