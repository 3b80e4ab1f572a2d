"""Images in requests: whether a model is shown them, what they cost in tokens, and how many go along. Pure.

An image that is not shown is named in a line of text with the reason, so that the model knows that there was one.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from agentsh.base.light import dataclass
from agentsh.base.pattern import later
from agentsh.base.text import one_line
from agentsh.context.state import SessionState
from agentsh.context.view import View
from agentsh.events.turn import Attachment
from agentsh.ports.model import Image, Message
from agentsh.ports.texts import Texts

KINDS = {"image/png": "iVBORw0KGgo", "image/jpeg": "/9j/", "image/gif": "R0lGOD", "image/webp": "UklGR"}
"""What providers take, with how its base64 begins. Source: OpenAI's guide "Images and vision"."""
MAX_IMAGES = 20
"""In one request; more are left out, the oldest first. Providers take from 20 (Anthropic) to 500 (OpenAI)."""
MAX_BYTES = 12_000_000
"""Of the base64 of all images of one request: with the text well below 20 MB, the least limit people ran into."""
ENOUGH_SHARE = 0.5
"""Of these two limits: how far the images are taken back, so that a prompt cache is not lost at every image."""
KEPT = 2
"""Newest images that stay where older ones are left out for their tokens."""
NO_SIZE = (2_048, 2_048)
"""Taken of an image whose size the log does not say: the largest."""

RESULTS = "The images of the results above, in their order: {names}"
NO_IMAGES, OLD, REFUSED, GONE = (
    "this model is not shown images", "older images are left out", "the provider refused it", "it cannot be read"
)  # fmt: skip

_BASE64 = later(r"[A-Za-z0-9+/]+={0,2}")
_LONG_SIDE, _SHORT_SIDE, _TILE, _PATCH, _MAX_PATCHES = 2_048, 768, 512, 32, 1_536
_TILES = {
    "gpt-4o-mini": (2_833, 5_667), "gpt-4o": (85, 170), "gpt-4.1": (85, 170), "gpt-4.5": (85, 170),
    "gpt-5": (70, 140), "o1": (75, 150), "o3": (75, 150),
}  # fmt: skip
"""Tokens of an image and of each tile, by how the model's name begins; the same guide, "Calculating costs"."""
_PATCHES = {
    "gpt-5-mini": 1.62, "gpt-5-nano": 2.46, "gpt-4.1-mini": 1.62, "gpt-4.1-nano": 2.46, "o4-mini": 1.72,
}  # fmt: skip
"""Tokens of each patch of 32 × 32 pixels, of at most 1,536; from there too."""
_PIXELS_PER_TOKEN = 750
"""Of Anthropic's models ("Vision", of its guides); others are near it."""


def image_tokens(width: int, height: int, model: str) -> int:
    """Return what an image costs. Of a model whose rule is not known, the most that one of the rules gives."""
    name = model.lower().rpartition("/")[2]
    width, height = max(width, 1), max(height, 1)
    for prefix, factor in _PATCHES.items():
        if name.startswith(prefix):
            return ceil(_patches(width, height) * factor)
    for prefix, (base, each) in _TILES.items():
        if name.startswith(prefix):
            return base + each * _tiles(width, height)
    base, each = _TILES["gpt-4o"]
    return max(base + each * _tiles(width, height), ceil(width * height / _PIXELS_PER_TOKEN))


def _tiles(width: int, height: int) -> int:
    """Return the tiles of an image that was made to fit a square of 2,048, then its short side 768."""
    shrink = min(1.0, _LONG_SIDE / max(width, height))
    shrink *= min(1.0, _SHORT_SIDE / (min(width, height) * shrink))
    return ceil(round(width * shrink, 6) / _TILE) * ceil(round(height * shrink, 6) / _TILE)


def _patches(width: int, height: int) -> int:
    return min(ceil(width / _PATCH) * ceil(height / _PATCH), _MAX_PATCHES)


def is_image(attachment: Attachment) -> bool:
    """Tell whether an attachment is an image and not text."""
    return not attachment.media_type.startswith("text/")


def tokens_of(attachment: Attachment, model: str) -> int:
    """Return what an attachment that is an image costs where it is shown."""
    width, height = NO_SIZE
    if attachment.width and attachment.height:
        width, height = attachment.width, attachment.height
    return image_tokens(width, height, model)


def is_sound(media_type: str, data: str) -> bool:
    """Tell whether `data` is base64 that begins as its kind does. It was decoded when it was recorded."""
    return data.startswith(KINDS.get(media_type, "-")) and len(data) % 4 == 0 and _BASE64.fullmatch(data) is not None


@dataclass(frozen=True, slots=True)
class Sight:
    """What a request shows of images. model: None for one that is not shown any. dropped: of first and last seqs.

    from_seq: images of events before it are left out.
    """

    model: str | None
    from_seq: int = 0
    dropped: tuple[tuple[int, int], ...] = ()

    def blind(self, seq: int) -> str | None:
        """Return why images of event `seq` are not shown; None where they are."""
        if self.model is None:
            return NO_IMAGES
        if any(first <= seq <= last for first, last in self.dropped):
            return REFUSED
        return OLD if seq < self.from_seq else None

    def see(self, attachments: Sequence[Attachment], seq: int, texts: Texts) -> list[tuple[str, Image | None]]:
        """Return for each image the line that names it, and the image where it is shown. seq: of its event."""
        blind = self.blind(seq)
        return [self._see(each, seq, texts, blind) for each in attachments]

    def _see(self, attachment: Attachment, seq: int, texts: Texts, blind: str | None) -> tuple[str, Image | None]:
        name = one_line(attachment.name, 200)
        if blind is None:
            data = texts.text(attachment.content)
            if is_sound(attachment.media_type, data):
                tokens = tokens_of(attachment, self.model or "")
                return f"[image: {name}]", Image(attachment.media_type, data, name, seq, tokens)
            blind = GONE
        size = f", {attachment.width} × {attachment.height}" if attachment.width and attachment.height else ""
        return f"[image: {name}, {one_line(attachment.media_type, 60)}{size}; not shown: {blind}]", None


def sight_of(state: SessionState, view: View) -> Sight:
    """Return what a request of `view` shows of images."""
    if not (state.request or {}).get("images"):
        return Sight(None)
    return Sight(state.model, view.images_from, tuple(state.dropped_images))


def images_of(messages: Sequence[Message]) -> list[Image]:
    """Return the images of messages, in order."""
    return [image for message in messages for image in message.images]


def too_many(images: Sequence[Image], share: float = 1.0) -> bool:
    """Tell whether images are more than a share of what one request takes."""
    return len(images) > MAX_IMAGES * share or sum(len(image.data) for image in images) > MAX_BYTES * share


def newest_within(images: Sequence[Image]) -> int:
    """Return from which event on images stay so that they are within half of the limits, but for the newest event's.

    images: of a request, in order.
    """
    start = images[-1].seq
    for n in reversed(range(len(images))):
        if too_many(images[n:], ENOUGH_SHARE):
            break
        start = images[n].seq
    kept = [image for image in images if image.seq >= start]
    return images[-1].seq + 1 if too_many(kept) else max(start, 0)


def newest(images: Sequence[Image], count: int) -> int:
    """Return from which event on images stay so that the newest `count` do; those of one event stay together."""
    return images[-1].seq + 1 if count <= 0 else images[-min(count, len(images))].seq


def without_images(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages with their texts alone."""
    return tuple(replace(m, images=()) if m.images else m for m in messages)
