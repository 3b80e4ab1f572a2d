"""Images that are pasted or dropped by their path: shown as one word, read at once, and sent with the message.

A terminal puts the path of what is dropped into the input as a paste: bare, quoted, with escaped spaces, or as a URI.
The file may be gone a moment later, as that of a screenshot is, so it is read when it comes and not when it is sent.
"""

import asyncio
import os
import re
import shlex
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agentsh.base.errors import ToolFailed
from agentsh.base.text import one_line
from agentsh.events.turn import Attachment
from agentsh.workspace.images import MAX_FILE_BYTES, image_attachment, media_type_of

MAX_IMAGES = 10
"""In one paste; more, and it is text."""
MAX_PATHS_CHARS = 10_000
NAME_CHARS = 60
_WORD = re.compile(r"\[Image #\d+ [^\[\]\n]*\]")
_HEAD_BYTES = 16

Along = tuple[asyncio.Future[Attachment], ...]
"""Images of a message; each is there once it is read."""


class Images:
    """Keeps what stands behind the words of one prompt."""

    def __init__(self) -> None:
        self._known: dict[str, asyncio.Future[Attachment]] = {}

    def shown(self, text: str) -> str | None:
        """Return what stands in the input for a paste that is nothing but paths of images; None for another one."""
        paths = image_paths(text)
        return " ".join(map(self._word, paths)) + " " if paths else None

    def of(self, text: str) -> Along:
        """Return the images whose words stand in a text, in order, each once. A word that was edited is a word."""
        words = dict.fromkeys(_WORD.findall(text))
        return tuple(self._known[word] for word in words if word in self._known)

    def adopt(self, text: str, attachments: Iterable[Attachment]) -> None:
        """Know the words of a text again that comes back from a log. attachments: what went along with it."""
        words = _WORD.findall(text)
        for attachment in attachments:
            word = next((w for w in words if w.endswith(f" {_name(attachment.name)}]")), None)
            if word is not None and word not in self._known:
                self._known[word] = asyncio.get_running_loop().create_future()
                self._known[word].set_result(attachment)

    def _word(self, path: Path) -> str:
        name = path.name.encode("utf-8", "replace").decode()
        number = len(self._known) + 1
        while any(word.startswith(f"[Image #{number} ") for word in self._known):
            number += 1
        word = f"[Image #{number} {_name(name)}]"
        self._known[word] = asyncio.ensure_future(asyncio.to_thread(_read, path, name))
        return word


async def read(images: Along) -> tuple[Attachment, ...]:
    """Return images, once all of them are read. Cancelling it leaves them alone."""
    return tuple([await asyncio.shield(image) for image in images])


def image_paths(text: str) -> Sequence[Path]:
    """Return the images that a paste names, where it is nothing but absolute paths of images. Blocks, shortly."""
    text = text.strip()
    if not text or len(text) > MAX_PATHS_CHARS:
        return ()
    for words in _readings(text):
        paths = [_path(word) for word in words]
        if 0 < len(paths) <= MAX_IMAGES and all(path is not None and _is_image(path) for path in paths):
            return [path for path in paths if path is not None]
    return ()


def _readings(text: str) -> Iterable[list[str]]:
    """Yield what a paste may mean: one path, one in each line, or words as for a shell."""
    yield [text]
    yield [line.strip() for line in text.split("\n") if line.strip()]
    try:
        yield shlex.split(text)
    except ValueError:
        return


def _path(word: str) -> Path | None:
    if word.startswith("file:"):
        try:
            parts = urlsplit(word)
        except ValueError:
            return None
        word = unquote(parts.path) if parts.netloc in ("", "localhost") else ""
    if word.startswith("~/"):
        word = os.path.expanduser(word)
    return Path(word) if word.startswith("/") and "\0" not in word else None


def _is_image(path: Path) -> bool:
    """Tell whether it is a plain file that begins as an image does; a pipe or a device is never opened."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with path.open("rb") as file:
            return media_type_of(file.read(_HEAD_BYTES)) is not None
    except (OSError, ValueError):
        return False


def _read(path: Path, name: str) -> Attachment:
    try:
        with path.open("rb") as file:
            return image_attachment(name, file.read(MAX_FILE_BYTES + 1))
    except OSError as error:
        why = f"{name} cannot be read: {error.strerror or error}"
    except ToolFailed as error:
        why = error.message
    return Attachment(name=name, media_type="text/plain", content=f"[{why}]")  # the model and the user both see why


def _name(name: str) -> str:
    return re.sub(r"[\[\]]", "_", one_line(name, NAME_CHARS))
