"""However output is cut into reads, what is kept and what is shown stay the same."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentsh.workspace import capture as module
from agentsh.workspace.capture import Capture, Preview, is_binary

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs", "Cc")), max_size=300)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


@given(TEXTS, st.lists(st.integers(0, 2_000)), st.integers(1, 400))
def test_capture_does_not_depend_on_the_reads(text: str, cuts: list[int], max_bytes: int) -> None:
    data = text.encode()
    capture = Capture(max_bytes)
    for piece in pieces(data, cuts):
        capture.add(piece)
    assert capture.total_bytes == len(data)
    assert capture.whole() == data
    if len(data) <= max_bytes:
        assert capture.text() == text
        assert not capture.cut
        return
    head, _, rest = capture.text().partition("\n[… ")
    left_out, _, tail = rest.partition(" bytes left out …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(left_out.replace(",", "")) == len(data) - len(head.encode()) - len(tail.encode())
    assert max_bytes - 6 <= len(head.encode()) + len(tail.encode()) <= max_bytes


@given(st.binary(max_size=3_000), st.integers(3, 300), st.integers(0, 500))
def test_beyond_the_whole_head_and_tail_stay(data: bytes, max_bytes: int, whole: int) -> None:
    before = module.MAX_WHOLE_BYTES
    module.MAX_WHOLE_BYTES = whole
    try:
        capture = Capture(max_bytes)
        for start in range(0, len(data), 7):
            capture.add(data[start : start + 7])
    finally:
        module.MAX_WHOLE_BYTES = before
    if len(data) > max(whole, max_bytes):
        assert capture.whole() is None
        head = int(max_bytes * 2 / 3)
        assert bytes(capture._kept) == data[:head]
        assert capture._tail is not None
        assert (
            bytes(capture._tail[len(capture._tail) - (max_bytes - head) :]) == data[len(data) - (max_bytes - head) :]
        )
    else:
        assert capture.whole() == data
    assert capture.text() is not None


@given(TEXTS, st.lists(st.integers(0, 2_000)))
def test_preview_shows_everything_whatever_the_reads(text: str, cuts: list[int]) -> None:
    shown: list[str] = []
    preview = Preview(shown.append)
    for piece in pieces(text.encode(), cuts):
        preview.add(piece)
    preview.flush(last=True)
    assert "".join(shown) == text


def test_a_preview_of_a_flood_is_bounded() -> None:
    shown: list[str] = []
    preview = Preview(shown.append)
    for _ in range(200):
        preview.add("€ and more\n".encode() * 2_000)
    preview.flush(last=True)
    assert all(len(text.encode()) < 2 * module.MAX_PREVIEW_BYTES for text in shown)
    assert not any("\ufffd" in text for text in shown)


def test_what_is_binary() -> None:
    assert is_binary(b"a\0b")
    assert is_binary(bytes(range(1, 32)) * 4)
    assert is_binary(bytes(range(128, 256)) * 4)
    assert not is_binary(b"")
    assert not is_binary("日本語テキスト".encode() * 20)
    assert not is_binary("日本語テキスト".encode()[1:-1] * 1)
    assert not is_binary("Ein größerer Text auf Latin-1, wie er früher üblich war.".encode("latin-1"))
