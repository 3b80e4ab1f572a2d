"""What commands reach of the application beyond their session; the composition root implements it.

Every method blocks: commands call them on a thread.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from agentsh.base.palette import Palette

ExportFormat = Literal["md", "html", "jsonl"]


class Listed(NamedTuple):
    """A session in a list. first: the beginning of its first prompt. about: age, state, cost, a few words each."""

    id: str
    title: str
    first: str
    about: tuple[str, ...]


class Setting(NamedTuple):
    """A setting in force. origin: a file, a variable, or `default`."""

    name: str
    value: str
    origin: str


class Finding(NamedTuple):
    """What `doctor` found. state: `ok`, `warn` or `fail`. do: what to do about it, or None."""

    state: str
    subject: str
    text: str
    do: str | None


class Granted(NamedTuple):
    """Rules about calls: those of the configuration, and what was allowed for the project."""

    allow: Sequence[str]
    ask: Sequence[str]
    deny: Sequence[str]
    project: Sequence[str]


class CustomCommand(NamedTuple):
    """A command that a user wrote. usage: its arguments. text: what is sent, with `$ARGUMENTS` in it. file: where."""

    name: str
    usage: str
    summary: str
    text: str
    file: str


class Backend(Protocol):
    """See the module."""

    def sessions(self) -> Sequence[Listed]:
        """Return all sessions but the archived, newest first."""
        ...

    def preview(self, session: str) -> Sequence[str]:
        """Return a few lines about a session: what was asked first, what was said last."""
        ...

    def search(self, text: str, stop: threading.Event) -> Mapping[str, str]:
        """Return the sessions whose log holds `text`, with the words around it. Bounded in time; `stop` ends it."""
        ...

    def check(self, session: str) -> str:
        """Return the id of the session that `session` names, if it can be opened here now.

        Raises:
            SessionMissing, SessionAmbiguous, SessionHeld, SessionReadOnly, NotTrusted: it cannot.
        """
        ...

    def diff(self) -> Sequence[str]:
        """Return what the session has changed so far, as the lines of a patch."""
        ...

    def between(self) -> Callable[[int, int], Sequence[str]]:
        """Return what tells how files differ between the moments after two events, in a few lines. It blocks too."""
        ...

    def apply(self, *, check: bool) -> Sequence[str]:
        """Bring back what the session has changed, all of it or nothing; return what was done, in lines.

        check: only tell what would be done.

        Raises:
            UsageProblem: there is no place to bring it to.
        """
        ...

    def export(self, form: ExportFormat, file: Path | None) -> Path:
        """Write the session to a new file, by default one in the current directory; return its path.

        Raises:
            UsageProblem: it is there already, or cannot be written.
        """
        ...

    def replay(self, columns: int, *, colour: bool, palette: Palette | None) -> Sequence[str]:
        """Return the newest turns as rows of a screen."""
        ...

    def granted(self) -> Granted:
        """Return the rules in force."""
        ...

    def settings(self) -> Sequence[Setting]:
        """Return the settings in force, and where each comes from."""
        ...

    def doctor(self) -> Sequence[Finding]:
        """Look at everything around the session. May take some seconds."""
        ...

    def feedback_bundle(self, file: Path | None) -> Path:
        """Write what a bug report needs, without what was said, to a new file; return its path.

        Raises:
            UsageProblem: it is there already, or cannot be written.
        """
        ...

    def custom(self) -> Mapping[str, CustomCommand]:
        """Return the commands that the user wrote, by name."""
        ...
