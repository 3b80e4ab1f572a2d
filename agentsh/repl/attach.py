"""Files that a message mentions with `@`: sent along as they are now, where they are images, or text and not long."""

from agentsh.base.errors import ToolFailed
from agentsh.events.turn import Attachment
from agentsh.ports.workspace import Workspace
from agentsh.repl.complete import mentions
from agentsh.workspace.images import MAX_FILE_BYTES, image_attachment, media_type_of

MAX_FILES = 20
MAX_BYTES = 100_000
"""Of one text. A longer one is only mentioned: the model reads of it what it needs."""


def attachments(text: str, workspace: Workspace | None) -> tuple[Attachment, ...]:
    """Return what goes along with a message. Blocks. A mention of something else is just words."""
    if workspace is None:
        return ()
    found = []
    for path in mentions(text)[:MAX_FILES]:
        try:
            name = workspace.relative(path)
            data = workspace.read_bytes(name, max_bytes=MAX_FILE_BYTES)
        except (ToolFailed, ValueError):
            continue
        one = _attached(name, data)
        found += [one] if one is not None else []
    return tuple(found)


def _attached(name: str, data: bytes) -> Attachment | None:
    if media_type_of(data) is not None:
        try:
            return image_attachment(name, data)
        except ToolFailed as error:  # the user and the model both see why it is not there
            return Attachment(name=name, media_type="text/plain", content=f"[{error.message}]")
    try:
        content = data.decode() if len(data) <= MAX_BYTES else "\0"
    except UnicodeDecodeError:
        return None
    return None if "\0" in content else Attachment(name=name, media_type="text/plain", content=content)
