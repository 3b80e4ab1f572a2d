"""What is read back from a line in the making is what any reader makes of it; what would be none is refused."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentsh.log.frame import BadLine, decode_event, dump_json, encode_event, encode_ready, make_ready
from agentsh.log.record import Draft
from tests.log.logs import TS

TEXTS = st.text(st.characters(codec=None), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


# A busy machine draws slowly; what is drawn is small.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=4), TEXTS, st.none() | st.integers(1, 9))
def test_read_back_agrees_with_every_reader(payload: dict[str, Any], kind: str, cause: int | None) -> None:
    draft = Draft(kind, TS, payload, cause)
    record = encode_ready(make_ready(draft, dump_json(payload)), seq=12, dur=3, salt=77)
    assert record.raw == encode_event(draft, seq=12, dur=3, salt=77)
    assert record == decode_event(record.raw, 77)


@pytest.mark.parametrize("draft", [Draft("note", 'no "time"', {}), Draft("note", TS, {}, "x")])  # type: ignore[arg-type]
def test_what_would_be_no_record_is_refused(draft: Draft) -> None:
    with pytest.raises(BadLine):
        make_ready(draft, "{}")


def test_characters_that_are_escaped_in_text_that_is_ascii() -> None:
    assert dump_json({"a": "\x7f\x00\n"}) == '{"a":"\\u007f\\u0000\\n"}'
