"""Images for a model: judged by their bytes and never by their name, decoded here, and made no larger than is of use.

A provider refuses a request for one image that it cannot read, and then every later one of the session, as the image
stays in the conversation. So nothing becomes an image in the log that was not decoded as a whole first.
"""

import base64
import io
import warnings
from typing import TYPE_CHECKING, Any

from agentsh.base.errors import ToolFailed
from agentsh.events.turn import Attachment

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_FILE_BYTES = 20 * 1024 * 1024
"""Of an image before it is made smaller."""
MAX_PIXELS = 40_000_000
"""Of an image that is decoded: 160 MB of memory for a moment."""
MAX_SIDE = 2_048
"""Pixels. OpenAI makes images fit a square of this side before it looks at them (its guide "Images and vision")."""
MAX_SENT_BYTES = 3_500_000
"""Of one image as it is kept: in base64 below 5 MB, the least that a provider takes (Anthropic's limit for one)."""

_QUALITIES = (90, 80, 60)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
"""The kinds that OpenAI documents, WebP apart, whose sign stands in two places."""


def media_type_of(data: bytes) -> str | None:
    """Return the media type of what begins as an image does that providers take, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def image_attachment(name: str, data: bytes) -> Attachment:
    """Return a file as an image for the model. name: what the model and the user are told. Blocks for up to a second.

    An image that is larger than models look at is made smaller; of one that moves the first picture is taken.

    Raises:
        ToolFailed: it is no image of these kinds, is damaged, or is too large; the message names the file and why.
    """
    kind = media_type_of(data)
    if kind is None:
        raise ToolFailed(f"{name} is no PNG, JPEG, GIF or WebP image")
    if len(data) > MAX_FILE_BYTES:
        raise ToolFailed(f"{name} is too large for an image: {len(data):,} bytes, at most {MAX_FILE_BYTES:,}")
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd but readable files, to stderr, over the prompt
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise ToolFailed(f"{name} is too large for an image: {image.width} × {image.height} pixels")
                image.load()
                moves = getattr(image, "is_animated", False)
                if not moves and max(image.size) <= MAX_SIDE and len(data) <= MAX_SENT_BYTES:
                    return _attachment(name, kind, data, image)
                return _smaller(name, image)
    except ToolFailed:
        raise
    except Image.DecompressionBombError as error:
        raise ToolFailed(f"{name} is too large for an image: {error}") from None
    except Exception as error:  # noqa: BLE001 - decoders raise what they like at damaged bytes
        what = kind.rpartition("/")[2].upper()
        raise ToolFailed(f"{name} is damaged: it begins as {what} does and cannot be decoded ({error})") from None


def _attachment(name: str, kind: str, data: bytes, image: "Image") -> Attachment:
    content = base64.b64encode(data).decode("ascii")
    return Attachment(name=name, media_type=kind, content=content, width=image.width, height=image.height)


def _smaller(name: str, image: "Image") -> Attachment:
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(image)  # what says which side is up is not kept
    clear = "transparency" in turned.info or turned.mode in ("RGBA", "LA", "PA")
    small: Any = turned.convert("RGBA" if clear else "RGB")
    small.thumbnail((MAX_SIDE, MAX_SIDE))
    while True:
        for kind, options in (("PNG", {}), *(("JPEG", {"quality": q}) for q in _QUALITIES)):
            written = io.BytesIO()
            flat = small.convert("RGB") if kind == "JPEG" else small
            flat.save(written, kind, **options)
            if written.tell() <= MAX_SENT_BYTES:
                return _attachment(name, f"image/{kind.lower()}", written.getvalue(), flat)
        small = small.resize((max(small.width // 2, 1), max(small.height // 2, 1)))
