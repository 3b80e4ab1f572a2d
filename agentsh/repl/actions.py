"""What a prompt asks the loop to do."""

from collections.abc import Callable
from dataclasses import dataclass

from agentsh.repl.images import Along


@dataclass(frozen=True, slots=True)
class Actions:
    """What the keys do outside of the input line. The texts are as they are to be sent, with their images.

    enter: a text to send, or to queue while a turn runs; empty where there is none. steer: a text that is to join
    the running turn. interrupt: stop what runs. recall: give the newest queued text back to the input. working:
    whether a turn runs.
    """

    enter: Callable[[str, Along], None]
    steer: Callable[[str, Along], None]
    interrupt: Callable[[], None]
    recall: Callable[[], bool]
    working: Callable[[], bool]
