"""Files that a message mentions with `@`: sent along as they are now, where they are text and not too long."""

from agentsh.base.errors import ToolFailed
from agentsh.events.turn import Attachment
from agentsh.ports.workspace import Workspace
from agentsh.repl.complete import mentions

MAX_FILES = 20
MAX_BYTES = 100_000
"""Of one file. A longer one is only mentioned: the model reads of it what it needs."""


def attachments(text: str, workspace: Workspace | None) -> tuple[Attachment, ...]:
    """Return what goes along with a message. Blocks. A mention of something else is just words."""
    if workspace is None:
        return ()
    found = []
    for path in mentions(text)[:MAX_FILES]:
        try:
            name = workspace.relative(path)
            content = workspace.read_bytes(name, max_bytes=MAX_BYTES).decode()
        except (ToolFailed, UnicodeDecodeError, ValueError):
            continue
        if "\0" not in content:
            found.append(Attachment(name=name, media_type="text/plain", content=content))
    return tuple(found)
