"""What a session offers its tools beside the files: the shell's state, jobs, somebody to ask, the network."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from agentsh.ports.asker import Asker
from agentsh.ports.jobs import Jobs
from agentsh.ports.workspace import ShellState


class Page(NamedTuple):
    """What an address gave. url: where it was in the end. text: Markdown, where it was HTML. moved: not followed."""

    url: str
    status: int
    media_type: str
    text: str
    moved: str | None = None


class Services(NamedTuple):
    """Each is None where the session has none. shell: what the command before left. fetch: gets a page.

    bare: the call was let through because its words are harmless, so what earlier commands exported must not change
    what they mean. withheld: tells of a file that a call did not name whether a rule of the user keeps it from being
    read, or wants to be asked; None where no rule says so of any file.
    """

    shell: ShellState = ShellState()
    bare: bool = False
    jobs: Jobs | None = None
    asker: Asker | None = None
    fetch: Callable[[str], Awaitable[Page]] | None = None
    withheld: Callable[[str], bool] | None = None


NO_SERVICES = Services()
