"""Looks at what requests start with: date, directory, tools, AGENTS.md; at the birth and before each message."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agentsh.base.clock import Clock
from agentsh.base.light import dataclass, field
from agentsh.base.text import plural
from agentsh.context.state import SessionState
from agentsh.context.surroundings import Surroundings, capped, changes, entries
from agentsh.events.base import BlobRef
from agentsh.events.event import NewFact
from agentsh.events.session import EnvironmentChanged
from agentsh.log.spill import reference
from agentsh.log.store import BlobStore
from agentsh.ports.texts import Texts

USER_FILE = "AGENTS.md"
"""In ~/.agentsh: instructions for every session of the user."""
MAX_USER_BYTES = 1_000_000


@dataclass(slots=True)
class Looker:
    """Sees what is so right now. tools: gives the neutral list of those on offer. own: the user's ~/.agentsh.

    clean: replaces secrets in a text.
    The whole workspace is looked through once in a process; after that only the files that are known, and the root.
    """

    blobs: BlobStore
    texts: Texts
    root: Path
    own: Path
    tools: Callable[[], str]
    clock: Clock
    clean: Callable[[str], str] = str
    _paths: list[str] | None = field(default=None)

    def now(self) -> Surroundings:
        """Return what is so. Blocks for some milliseconds."""
        from agentsh.workspace.instructions import NAME, find, read

        if self._paths is None:
            self._paths = find(str(self.root))
        files = [(f"~/.agentsh/{USER_FILE}", _user_text(self.own))]
        files += [(path, read(str(self.root), path)) for path in dict.fromkeys([NAME, *self._paths])]
        return Surroundings(
            date=f"{self.clock.now():%Y-%m-%d}",
            directory=str(self.root),
            tools=self.tools(),
            instructions=capped([(name, self.clean(text)) for name, text in files if text]),
        )

    def begin(self, prompt: Callable[[Surroundings], str], request: dict[str, Any]) -> EnvironmentChanged:
        """Return what requests start with from here on, as of now. prompt: makes the system prompt.

        Raises:
            LogWriteFailed: a blob cannot be written.
        """
        now = self.now()
        return EnvironmentChanged(
            system_prompt=as_blob(self.blobs, prompt(now)),
            tools=as_blob(self.blobs, now.tools),
            instructions=entries(now.instructions, texts=True),
            request=request,
            date=now.date,
            directory=now.directory,
        )

    async def look(self, state: SessionState) -> Sequence[NewFact]:
        """Return the event that tells what has changed since the newest of its kind; nothing where nothing has."""
        return await asyncio.to_thread(self._changed, state)

    def _changed(self, state: SessionState) -> Sequence[NewFact]:
        now, known = self.now(), state.surroundings
        told = changes(state, self.texts, now)
        if not told or known is None:
            return ()
        tools = any(change.what == "tools" for change in told)
        fact = EnvironmentChanged(
            system_prompt=known.system_prompt,
            tools=now.tools if tools else known.tools,  # a blob of its own would need `gc` to be kept out
            instructions=entries(now.instructions, texts=False),
            date=now.date,
            directory=now.directory,
            changes=told,
        )
        return [NewFact(fact)]


def _user_text(own: Path) -> str | None:
    try:
        with (own / USER_FILE).open("rb") as file:
            data = file.read(MAX_USER_BYTES + 1)
    except OSError:
        return None
    more = f"\n[… only the first {plural(MAX_USER_BYTES, 'byte')} are read …]" if len(data) > MAX_USER_BYTES else ""
    return data[:MAX_USER_BYTES].decode("utf-8-sig", "replace") + more


def as_blob(blobs: BlobStore, text: str) -> BlobRef:
    """Keep a text as a blob, whatever its length, and return the reference.

    Raises:
        LogWriteFailed: it cannot be written.
    """
    data = text.encode("utf-8", "surrogatepass")
    members: dict[str, Any] = reference(blobs.put(data), text, len(data))
    return BlobRef.model_validate(members)
