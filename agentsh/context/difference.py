"""What is different between two requests of one session: for people who wonder where a cache went. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from agentsh.base.light import dataclass
from agentsh.ports.model import Message, Prompt


@dataclass(frozen=True, slots=True)
class Difference:
    """From an older request to a newer one. same_bytes: how far the bodies are the same from their start.

    same_messages: the same for messages. removed, added: messages by their event. other: what else is not the same.
    """

    same_bytes: int
    same_messages: int
    removed: tuple[Message, ...]
    added: tuple[Message, ...]
    other: tuple[str, ...]


def common_bytes(a: bytes, b: bytes) -> int:
    """Return for how many bytes two bodies are the same from their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # slices compare at the speed of memory
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def difference(old: Prompt, old_body: bytes, new: Prompt, new_body: bytes) -> Difference:
    """Return what is different."""
    before, after = [_key(m) for m in old.messages], [_key(m) for m in new.messages]
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    removed: list[Message] = []
    added: list[Message] = []
    for tag, a, b, c, d in SequenceMatcher(None, before[same:], after[same:], autojunk=False).get_opcodes():
        if tag != "equal":
            removed += old.messages[same + a : same + b]
            added += new.messages[same + c : same + d]
    other = [
        what
        for what, x, y in (
            ("the model", old.model, new.model), ("the tools", old.tools, new.tools),
            ("the options", dict(old.options), dict(new.options)),
        )
        if x != y
    ]  # fmt: skip
    return Difference(common_bytes(old_body, new_body), same, tuple(removed), tuple(added), tuple(other))


def _key(message: Message) -> tuple[object, ...]:
    return message.role, message.text, message.calls, message.call_id, message.images


def shared(bodies: Sequence[bytes]) -> list[int]:
    """Return for each body but the first how many bytes of it are the start of the one before."""
    return [common_bytes(a, b) for a, b in pairwise(bodies)]
