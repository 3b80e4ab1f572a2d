"""Images in a request, as OpenAI judges them: where they may stand, and whether they can be looked at."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Iterator
from typing import Any

from agentsh.testing.server_problems import Problem, missing, wrong_type

FORMATS = ("png", "jpeg", "gif", "webp")
MAX_IMAGES = 500
"""In one request, as OpenAI documents it ("Images and vision")."""
_DATA_URL = re.compile(r"data:image/([a-z+.-]+);base64,(.*)", re.DOTALL)


def image_problems(where: str, role: object, part: dict[str, Any]) -> Iterator[Problem]:
    """What is wrong with a part of kind `image_url`."""
    if role != "user":
        message = (
            f"Invalid '{where.split('.')[0]}'. Image URLs are only allowed for messages with role 'user', but this "
            f"message with role '{role}' contains an image URL."
        )
        yield Problem(message, where.split(".")[0], "invalid_value")
        return
    image = part["image_url"]
    if not isinstance(image, dict):
        yield wrong_type(f"{where}.image_url", "an object", image)
    elif not isinstance(image.get("url"), str):
        yield missing(f"{where}.image_url.url")
    elif not image["url"].startswith(("http://", "https://")):
        yield from _data_url(f"{where}.image_url.url", image["url"])


def _data_url(where: str, url: str) -> Iterator[Problem]:
    found = _DATA_URL.fullmatch(url)
    if found is None:
        message = (
            f"Invalid '{where}'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;"
        )
        yield Problem(message + "base64,aW1nIGJ5dGVzIGhlcmU='), but got a value without the 'data:' prefix.", where)
        return
    try:
        data = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        yield Problem(f"Invalid base64 image_url: {where}.", where, "invalid_base64")
        return
    if not _decodes(data):
        message = "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
        yield Problem(f"{message}{list(FORMATS)}.", None, "invalid_image_format")


def _decodes(data: bytes) -> bool:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=[name.upper() for name in FORMATS]) as image:
            image.load()
            return not getattr(image, "is_animated", False)
    except Exception:  # noqa: BLE001 - decoders raise what they like at damaged bytes
        return False
