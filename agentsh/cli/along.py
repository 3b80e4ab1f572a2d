"""Images that go along with the first message, `--image PATH`: read before anything is made."""

from collections.abc import Sequence
from pathlib import Path

from agentsh.base.errors import ToolFailed, UsageProblem
from agentsh.events.turn import Attachment
from agentsh.workspace.images import MAX_FILE_BYTES, image_attachment

MAX_IMAGES = 10


def images(paths: Sequence[Path]) -> tuple[Attachment, ...]:
    """Return the images of the command line.

    Raises:
        UsageProblem: one cannot be read, or is no image that models take; it says which and why.
    """
    if len(paths) > MAX_IMAGES:
        raise UsageProblem(f"--image: {len(paths)} images are too many", hint=f"at most {MAX_IMAGES} go along")
    return tuple(_image(path) for path in paths)


def _image(path: Path) -> Attachment:
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        return image_attachment(path.name, data)
    except OSError as error:
        raise UsageProblem(f"--image {path}: {error.strerror or error}") from None
    except ToolFailed as error:
        raise UsageProblem(f"--image {path}: {error.message}") from None
