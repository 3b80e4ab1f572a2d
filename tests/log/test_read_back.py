"""What is read back from a line in the making is what any reader makes of it; what would be none is refused."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh.base.errors import LogWriteFailed
from agentsh.log.frame import BadLine, decode_event, dump_json, encode_event, read_back
from agentsh.log.record import Draft
from agentsh.log.sync import GroupSync
from tests.log.logs import TS

TEXTS = st.text(st.characters(codec=None), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), TEXTS, st.none() | st.integers(1, 9))
def test_read_back_agrees_with_every_reader(payload: dict[str, Any], kind: str, cause: int | None) -> None:
    draft = Draft(kind, TS, payload, cause)
    text = dump_json(payload)
    line = encode_event(draft, seq=12, dur=3, salt=77, payload=text)
    assert line == encode_event(draft, seq=12, dur=3, salt=77)
    assert read_back(draft, text, line, seq=12, dur=3, salt=77) == decode_event(line, 77)


@pytest.mark.parametrize("draft", [Draft("note", 'no "time"', {}), Draft("note", TS, {}, "x")])  # type: ignore[arg-type]
def test_what_would_be_no_record_is_refused(draft: Draft) -> None:
    line = encode_event(draft, seq=1, dur=0, salt=7)
    with pytest.raises(BadLine):
        read_back(draft, "{}", line, seq=1, dur=0, salt=7)


def test_characters_that_are_escaped_in_text_that_is_ascii() -> None:
    assert dump_json({"a": "\x7f\x00\n"}) == '{"a":"\\u007f\\u0000\\n"}'


class TestSyncOnTheCallersThread:
    """`GroupSync.now`: what `always` uses."""

    def test_it_syncs_at_once_and_here(self) -> None:
        where: list[int] = []

        def flush() -> int:
            where.append(threading.get_ident())
            return 5

        sync = GroupSync(flush, 0, 0, "s")
        sync.now(5)
        assert (sync.durable_seq, where) == (5, [threading.get_ident()])
        sync.wait(5).result(timeout=30)
        sync.stop()
        assert len(where) == 1

    def test_after_a_failure_nothing_is_promised_to_anybody(self) -> None:
        def flush() -> int:
            raise LogWriteFailed("broken")

        sync = GroupSync(flush, 0, 0, "s")
        sync.wrote(3, 1, 1)
        for _ in range(2):
            with pytest.raises(LogWriteFailed, match="broken"):
                sync.now(3)
        with pytest.raises(LogWriteFailed, match="broken"):
            sync.wait(3).result(timeout=30)
        with pytest.raises(LogWriteFailed, match="broken"):
            sync.stop()
