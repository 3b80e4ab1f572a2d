"""What a request shows of the conversation: a recorded decision, and the blocks that come of it."""

from typing import Literal

from agentsh.base.light import dataclass
from agentsh.context.marks import LEAST_ITEM_BYTES, MAX_ITEM_BYTES
from agentsh.context.state import SessionState
from agentsh.ports.model import Message

RULES = 3
"""Version of the way in which a log becomes messages; `context_built` records it.

0: logs from before the member was there: no cap for items. 1: no item above MAX_ITEM_BYTES.
2: images are shown to models that take them, and results without a call are told. 3: the cap for items can be set and
is one of bytes for arguments too; arguments that are nested too deep are left out; blank texts count as empty.
A change that gives other bytes for an old log needs a new number, and the old way stays.
"""

BlockKind = Literal["system", "summary", "user", "reply"]


@dataclass(frozen=True, slots=True)
class View:
    """Which part of a conversation is shown. Taken from the log on rebuild, never decided again.

    from_seq: the first event of the conversation; a cut moves it. pruned_before: results of calls with a seq below
    it are shown as stubs. rules: see RULES. images_from: images of events before it are named and not shown.
    item_bytes: cap of one text, attachment, result or call.
    """

    from_seq: int = 0
    pruned_before: int = 0
    rules: int = RULES
    images_from: int = 0
    item_bytes: int = MAX_ITEM_BYTES


@dataclass(frozen=True, slots=True)
class Block:
    """Messages that stay or go together: a user message, or a reply with the results of its calls.

    seq: the event it comes from; 0 for the system message, which comes from several. pruned: whether results of its
    calls are shown as stubs. missing: blobs that could not be read for it.
    """

    kind: BlockKind
    seq: int
    messages: tuple[Message, ...]
    pruned: bool = False
    missing: tuple[str, ...] = ()

    @property
    def images(self) -> int:
        """Return how many images its messages show."""
        return sum(len(message.images) for message in self.messages)


def item_bytes(state: SessionState) -> int:
    """Return the recorded cap of one item."""
    said = (state.request or {}).get("item_bytes")
    if isinstance(said, int) and not isinstance(said, bool) and said >= LEAST_ITEM_BYTES:
        return said
    return MAX_ITEM_BYTES


def view_of(state: SessionState) -> View:
    """Return what the newest recorded decision shows."""
    return View(state.context_from, state.pruned_before, images_from=state.images_from, item_bytes=item_bytes(state))
