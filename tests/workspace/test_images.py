"""Images as they go to a model: judged by their bytes, decoded as a whole, and never larger than is of use."""

import base64
import io
import random
import zlib

import pytest
from PIL import Image

from agentsh.base.errors import ToolFailed
from agentsh.events.turn import Attachment
from agentsh.workspace.images import MAX_SENT_BYTES, MAX_SIDE, image_attachment, media_type_of


def encoded(kind: str, size: tuple[int, int] = (8, 6), mode: str = "RGB", **options: object) -> bytes:
    written = io.BytesIO()
    Image.new(mode, size, 3).save(written, kind, **options)
    return written.getvalue()


def decoded(found: Attachment) -> bytes:
    assert isinstance(found.content, str)
    return base64.b64decode(found.content, validate=True)


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_an_image_is_kept_byte_for_byte(kind: str) -> None:
    data = encoded(kind)
    found = image_attachment("a.txt", data)
    assert (found.name, found.media_type, found.width, found.height) == ("a.txt", f"image/{kind}", 8, 6)
    assert decoded(found) == data


def test_field_i148_a_name_says_nothing() -> None:
    with pytest.raises(ToolFailed, match=r"a\.png is no PNG, JPEG, GIF or WebP image"):
        image_attachment("a.png", b"<html>no picture</html>")


def test_field_i149_i151_a_damaged_image_is_refused_here_and_not_by_a_provider() -> None:
    good = encoded("png", (64, 64))
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 0xFF
    for data in (good[:60], bytes(flipped), good[:8], b"\x89PNG\r\n\x1a\n" + b"\0" * 40, b"RIFF\0\0\0\0WEBP"):
        assert media_type_of(data) is not None
        with pytest.raises(ToolFailed, match=r"p\.png is damaged: it begins as (PNG|WEBP) does"):
            image_attachment("p.png", data)


def test_any_cut_of_a_jpeg_is_refused_or_decodes() -> None:
    noise = Image.frombytes("RGB", (40, 30), random.Random(3).randbytes(3_600))
    written = io.BytesIO()
    noise.save(written, "JPEG")
    data = written.getvalue()
    for length in range(3, len(data) - 2, 97):
        with pytest.raises(ToolFailed):
            image_attachment("p.jpg", data[:length])


def test_a_large_image_is_made_as_large_as_models_look_at() -> None:
    found = image_attachment("big.png", encoded("png", (5_000, 1_000)))
    assert (found.width, found.height) == (MAX_SIDE, 410)
    with Image.open(io.BytesIO(decoded(found))) as image:
        assert image.size == (MAX_SIDE, 410)


def test_noise_that_no_png_makes_small_fits_the_limit() -> None:
    noise = Image.frombytes("RGB", (1_400, 1_400), random.Random(4).randbytes(1_400 * 1_400 * 3))
    written = io.BytesIO()
    noise.save(written, "PNG", compress_level=0)
    assert len(written.getvalue()) > MAX_SENT_BYTES
    found = image_attachment("noise.png", written.getvalue())
    assert found.media_type == "image/jpeg"
    assert len(decoded(found)) <= MAX_SENT_BYTES


def test_of_an_image_that_moves_the_first_picture_is_taken() -> None:
    first, second = Image.new("RGB", (9, 9), "red"), Image.new("RGB", (9, 9), "blue")
    written = io.BytesIO()
    first.save(written, "GIF", save_all=True, append_images=[second])
    found = image_attachment("a.gif", written.getvalue())
    assert found.media_type == "image/png"
    with Image.open(io.BytesIO(decoded(found))) as image:
        assert image.convert("RGB").getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("side", [10_000, 30_000])
def test_a_bomb_is_refused_before_it_is_unpacked(side: int) -> None:
    data = bytearray(encoded("png"))
    data[16:24] = side.to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    with pytest.raises(ToolFailed, match=r"bomb\.png is too large for an image: .*pixels"):
        image_attachment("bomb.png", bytes(data))
