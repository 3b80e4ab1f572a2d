"""Facts to lines and back: the sample byte for byte, unknown things kept, nothing that fails a read."""

from pathlib import Path

import pytest

from agentsh.events.codec import decode, encode
from agentsh.events.event import Opaque
from agentsh.events.session import Note
from agentsh.events.union import KINDS
from agentsh.events.upcast import UPCASTERS, upcast
from agentsh.log.frame import decode_event, decode_header, encode_event
from agentsh.log.record import Draft, Record

SAMPLE = Path(__file__).parents[1] / "golden" / "format1-sample.jsonl"
TS = "2026-11-29T16:20:00.000000Z"


def record(kind: str, payload: dict[str, object]) -> Record:
    line = encode_event(Draft(kind, TS, payload), seq=1, dur=0, salt=0)
    return decode_event(line, 0)


def test_the_sample_reads_and_re_encodes_byte_for_byte() -> None:
    header, *lines = SAMPLE.read_bytes().splitlines(keepends=True)
    salt = decode_header(header).salt
    for line in lines:
        read = decode_event(line, salt)
        event = decode(read)
        assert not isinstance(event.fact, Opaque)
        assert (
            encode_event(encode(event.fact, ts=event.ts, cause=event.cause), seq=read.seq, dur=read.dur, salt=salt)
            == line
        )


def test_every_type_has_the_name_of_its_class_in_snake_case() -> None:
    for name, kind in KINDS.items():
        assert "".join(part.capitalize() for part in name.split("_")) == kind.__name__


def test_an_unknown_type_is_kept_whole() -> None:
    read = record("dreamt", {"of": "sheep"})
    event = decode(read)
    assert event.fact == Opaque("dreamt", {"of": "sheep"})
    assert isinstance(event.fact, Opaque)
    assert encode(event.fact, ts=TS).payload == read.payload


def test_an_unknown_member_is_kept_and_written_back() -> None:
    read = record("note", {"text": "hi", "mood": "good"})
    event = decode(read)
    assert not isinstance(event.fact, Opaque)
    assert encode(event.fact, ts=TS).payload == {"text": "hi", "mood": "good"}


@pytest.mark.parametrize("payload", [{}, {"text": 7, "attachments": []}, {"text": ["x"], "attachments": None}])
def test_members_that_do_not_fit_make_it_opaque_and_say_why(payload: dict[str, object]) -> None:
    fact = decode(record("user_message", payload)).fact
    assert isinstance(fact, Opaque)
    assert fact.problem
    assert fact.payload == payload


def test_upcasters_run_on_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        UPCASTERS,
        "note",
        (lambda p: {"text": p["words"]} if "words" in p else p, lambda p: {**p, "text": p["text"] + "!"}),
    )
    assert upcast("note", {"words": "old"}) == {"text": "old!"}
    assert decode(record("note", {"words": "old"})).fact == Note(text="old!")
