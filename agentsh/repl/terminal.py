"""What the loop needs of the outside: screen, keyboard, files, and a terminal that is left as it was found."""

import contextlib
import fcntl
import os
import select
import signal
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from prompt_toolkit.input import Input
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output

from agentsh.base.palette import Palette
from agentsh.base.text import clean
from agentsh.events.base import Text
from agentsh.events.turn import Attachment
from agentsh.ports.approver import Answer, Question
from agentsh.ports.workspace import Workspace
from agentsh.repl.backend import Backend, CustomCommand
from agentsh.repl.looks import Looks
from agentsh.repl.picker import Menu
from agentsh.repl.stage import Stage

if TYPE_CHECKING:
    from agentsh.repl.outputs import Outputs
    from agentsh.repl.plain_stage import PlainStage

MAX_FILES = 200_000
"""A workspace with more is completed as far as it was read."""
PASTE_ON, PASTE_OFF, CURSOR_ON = "\x1b[?2004h", "\x1b[?2004l", "\x1b[?25h"


class Screen(Protocol):
    """The renderer, as far as it moves by itself."""

    def use(self, *, colour: bool, palette: Palette | None) -> None:
        """Show what comes from now on in other colours."""
        ...

    def tick(self) -> None:
        """Let spinner and elapsed time move on; called about ten times a second during a turn."""
        ...

    def close(self) -> None:
        """Take the live region away for good."""
        ...


class Onward(NamedTuple):
    """Where to go on when this session is closed. session: an id; None for a new one."""

    session: str | None = None


@dataclass(slots=True)
class ReplIO:
    """What the composition root hands in.

    history_file: None for no history. models: known names, for `/model`. sandbox: as the status line names it.
    first_text: submitted at once. first_typed: whether it was typed, so that it may be a `!command`. along: images
    that go with the first message.
    input, output: None for the terminal of the process.
    stage: what screen and prompt share. ask: set by the loop while it runs. typed: what was typed before there was a
    prompt. text: the whole of a text of the log, wherever it is kept. workspace: where the session works.
    notify, title: whether to call back who has looked away, and to name the window. context: the newest request as
    rows of so many columns, for `/context`. fork: makes a new session from an event of this one, or from now, and
    says how to go there. backend: what commands reach beyond the session. pick: opens a menu; set by the loop while
    it runs, where menus can be shown. menus: whether they can. remarks: shown when the prompt comes up, the first of
    all loud where `trouble`. onward: set by the loop: the session to go on with.
    looks: the theme, and the colours that come of it.
    outputs: what was printed lately. vi: its keys, in place of those of emacs. private: what is typed is not kept in
    the history.
    clean: replaces secrets in what is kept of the typed. plain: where lines go in the line mode, which has no stage;
    None for a prompt that draws. behind: called once, when the first prompt takes keys: loads what a turn will need.
    """

    screen: Screen
    history_file: Path | None = None
    models: Sequence[str] = ()
    sandbox: str = "none"
    first_text: str | None = None
    first_typed: bool = False
    along: tuple[Attachment, ...] = ()
    looks: Looks = field(default_factory=Looks)
    input: Input | None = None
    output: Output | None = None
    stage: Stage = field(default_factory=lambda: Stage(sys.stdout))
    ask: Callable[[Question], Awaitable[Answer]] | None = None
    text: Callable[[Text], str] = str
    clean: Callable[[str], str] = str
    workspace: Workspace | None = None
    fork: Callable[[int | None], Awaitable[Sequence[str]]] | None = None
    notify: bool = False
    title: bool = False
    context: Callable[[int], Awaitable[Sequence[str]]] | None = None
    typed: list[str] = field(default_factory=list)
    backend: Backend | None = None
    pick: Callable[[Menu], Awaitable[str | None]] | None = None
    menus: bool = True
    remarks: Sequence[str] = ()
    trouble: bool = False
    onward: Onward | None = None
    outputs: "Outputs | None" = None
    vi: bool = False
    private: bool = False
    plain: "PlainStage | None" = None
    behind: Callable[[], object] = lambda: None

    def custom(self) -> Mapping[str, CustomCommand]:
        """Return the commands that the user wrote. Blocks, for a few small files."""
        return {} if self.backend is None else self.backend.custom()

    def files(self) -> list[str]:
        """Return the paths of the workspace that are not ignored. Blocks."""
        found = self.workspace.walk() if self.workspace is not None else ()
        return [entry.path for entry in islice(found, MAX_FILES) if entry.path.isprintable()]

    def keyboard(self) -> Input:
        """Return the input, opened on first use."""
        if self.input is None:
            self.input = create_input()
        return self.input

    def display(self) -> Output:
        """Return the output of the prompt, opened on first use."""
        if self.output is None and self.plain is not None:
            from agentsh.repl.plain_stage import PlainOutput

            self.output = PlainOutput()
        if self.output is None:
            self.output = _Display.from_pty(sys.stdout, term=os.environ.get("TERM"))
        return self.output


class _Display(Vt100_Output):
    """Never asks the terminal where the cursor is: the answer can get lost, and arrives between typed keys."""

    def erase_down(self) -> None:
        """Erase from the start of this line down; not from the corner, where tmux first copies all to its history."""
        self.write_raw("\x1b[C\x1b[J\x1b[1K\x1b[D")

    def show_cursor(self) -> None:
        """Show it, and leave alone whether it blinks: that is the user's."""
        if self._cursor_visible in (False, None):
            self._cursor_visible = True
            self.write_raw(CURSOR_ON)

    @property
    def responds_to_cpr(self) -> bool:
        """Never: it is not asked."""
        return False

    def get_rows_below_cursor_position(self) -> int:
        """One row is always there; a status line below the prompt makes its own room."""
        return 1


def restore(io: ReplIO) -> None:
    """Leave the terminal as a shell expects it: cursor shown, pastes unmarked. The terminal may be gone."""
    if io.plain is not None:
        return
    with contextlib.suppress(OSError, ValueError):
        output = io.display()
        output.write_raw(PASTE_OFF + CURSOR_ON)
        output.flush()


def be_stopped() -> None:
    """Stop this process as SIGTSTP does without a handler: the kernel knows whether anybody could start it again."""
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.kill(os.getpid(), signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, handler)
        signal.siginterrupt(signal.SIGTSTP, False)


@contextlib.contextmanager
def quiet(io: ReplIO) -> Iterator[None]:
    """While a turn runs: keys are not echoed into the screen but kept for the next prompt; Ctrl-C still signals."""
    fd = None if io.plain is not None else _terminal(io)
    if fd is None:
        yield
        return
    before = termios.tcgetattr(fd)
    mode = termios.tcgetattr(fd)
    mode[0] &= ~(termios.ICRNL | termios.IXON)
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    mode[6][termios.VSUSP] = b"\0"  # a stopped process would leave cursor and modes to the shell as they are
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    if before[3] & termios.ECHO and _waiting(fd):  # the terminal has shown it: what we write begins below it
        io.display().write_raw("\r\n")
    io.display().write_raw(PASTE_ON)  # so that a paste typed ahead stays one text
    io.display().flush()
    try:
        yield
    finally:
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(fd, termios.TCSANOW, before)


def _waiting(fd: int) -> int:
    """Return how many bytes were typed and not read yet, of a terminal that does not edit lines itself."""
    with contextlib.suppress(OSError):
        return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)
    return 0


def keep_typed(io: ReplIO) -> None:
    """Move what was typed ahead out of the way, to the next prompt: a question must not take it for its answer."""
    if io.plain is not None:
        return  # the terminal keeps whole lines, and shows them
    keys = get_typeahead(io.keyboard())  # read together with the Enter that ended the last prompt
    text = "".join(key.data for key in keys)
    fd = _terminal(io)
    if fd is not None:
        with contextlib.suppress(OSError):
            raw = b""
            while select.select([fd], [], [], 0)[0] and (piece := os.read(fd, 4096)):
                raw += piece
            text += raw.decode("utf-8", "replace")
    if text:
        io.typed.append(typed_text(text))


def typed_text(text: str) -> str:
    """Return typed or pasted text as it is sent: line feeds, no controls, bytes that were no UTF-8 as `\ufffd`."""
    return clean(text.encode("utf-8", "surrogateescape" if _escaped(text) else "replace").decode("utf-8", "replace"))


def _escaped(text: str) -> bool:
    """Whether every surrogate in the text stands for a byte that was read, so that it can become that byte again."""
    return all("\udc80" <= char <= "\udcff" for char in text if "\ud800" <= char <= "\udfff")


def _terminal(io: ReplIO) -> int | None:
    with contextlib.suppress(OSError, NotImplementedError, ValueError):
        fd = io.keyboard().fileno()
        return fd if os.isatty(fd) else None
    return None
