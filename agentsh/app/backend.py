"""What the commands of the REPL reach beyond their session; implements `repl.backend.Backend`."""

import io
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentsh.app.build import Running
from agentsh.app.catalog import Filter, Row, check_plain, find, places, refuse_held, rows
from agentsh.app.grants import ProjectGrants, project_of
from agentsh.app.past import Past
from agentsh.app.paths import Homes, find_homes, here, user_home
from agentsh.app.settings import Settings
from agentsh.app.stores import blob_store, event_store
from agentsh.app.texts import BlobTexts
from agentsh.app.wiring import RENDERERS, load
from agentsh.base.errors import NotTrusted, SessionReadOnly
from agentsh.base.palette import Palette
from agentsh.base.text import one_line
from agentsh.events.turn import AgentMessage, UserMessage
from agentsh.repl.backend import CustomCommand, ExportFormat, Finding, Granted, Listed, Setting

REPLAYED_TURNS = 20
REPLAYED_EVENTS = 2_000


class AppBackend:
    """Of one running session. settings: those that it runs with."""

    def __init__(self, running: Running, settings: Settings) -> None:
        self._running = running
        self._settings = settings

    def sessions(self) -> Sequence[Listed]:
        """Return all sessions but the archived, newest first."""
        now_ns = time.time_ns()
        return [_listed(row, now_ns) for row in rows(self._homes(), Filter(limit=0, archived=False))]

    def preview(self, session: str) -> Sequence[str]:
        """Return a few lines about a session."""
        place = find(self._homes(), session)
        check_plain(place)
        texts = BlobTexts(blob_store(place.home))
        shown = Past(event_store(place.home), place.id).shown(turns=1, events=200)
        lines = []
        for event in shown.newest:
            if isinstance(event.fact, UserMessage):
                lines.append("› " + one_line(texts.text(event.fact.text), 300))
            elif isinstance(event.fact, AgentMessage) and (said := one_line(texts.text(event.fact.text), 300)):
                lines.append("  " + said)
        first = shown.first.ts[:16].replace("T", " ") if shown.first is not None else "?"
        return [f"{place.id} · begun {first} UTC", *lines[:1], *lines[1:][-3:]]

    def search(self, text: str, stop: threading.Event) -> Mapping[str, str]:
        """Return the sessions that hold `text`, with the words around it; what was found until `stop` is set."""
        from agentsh.app.searching import search

        return search([place for place in places(self._homes().read) if not place.archived], text, stop)

    def check(self, session: str) -> str:
        """Return the id of a session that can be opened here now; the own one too."""
        place = find(self._homes(), session)
        if place.id == self._running.id:
            return place.id
        if not place.home.trusted:
            raise NotTrusted(
                f"{place.home.root} is not trusted, so its sessions are read-only", hint="`agentsh trust`"
            )
        if place.archived:
            raise SessionReadOnly(f"session {place.id} is archived", hint=f"`agentsh unarchive {place.id}`")
        check_plain(place)
        refuse_held(place)
        return place.id

    def diff(self) -> Sequence[str]:
        """Return what the session has changed so far, as the lines of a patch."""
        from agentsh.app.diffing import session_diff
        from agentsh.workspace.patch import patch_of

        found = session_diff(self._running.home, self._running.id)
        lines = [line for change in found.changes for line in patch_of(found.blobs, change)]
        return [line.decode("utf-8", "replace").rstrip("\n") for line in lines]

    def between(self) -> Callable[[int, int], Sequence[str]]:
        """Return what tells how files differ between two events."""
        from agentsh.app.diffing import between

        return between(self._running.home, self._running.id)

    def apply(self, *, check: bool) -> Sequence[str]:
        """Bring back what the session has changed."""
        from agentsh.app.applying import apply, told
        from agentsh.app.diffing import destination, session_diff

        found = session_diff(self._running.home, self._running.id)
        return told(apply(found, destination(found.state, None), check=check), check=check)

    def export(self, form: ExportFormat, file: Path | None) -> Path:
        """Write the session to a new file."""
        from agentsh.app.exporting import export

        return export(self._running.home, self._running.id, form, file)

    def replay(self, columns: int, *, colour: bool, palette: Palette | None) -> Sequence[str]:
        """Return the newest turns as rows of a screen."""
        home = self._running.home
        shown = Past(event_store(home), self._running.id).shown(REPLAYED_TURNS, REPLAYED_EVENTS)
        out, texts = io.StringIO(), BlobTexts(blob_store(home))
        screen = load(RENDERERS["screen"])(
            out, width=columns, colour=colour, live=False, texts=texts, palette=palette
        )
        for event in [*([shown.first] if shown.first is not None else []), *shown.newest]:
            screen.on(event)
        screen.close()
        return out.getvalue().rstrip("\n").split("\n")

    def granted(self) -> Granted:
        """Return the rules in force."""
        given = self._settings.permissions
        project = ProjectGrants(user_home(os.environ), project_of(self._running.session.state.cwd))
        return Granted(given.allow, given.ask, given.deny, project.rules)

    def settings(self) -> Sequence[Setting]:
        """Return the settings in force, and where each comes from."""
        from agentsh.app.explaining import explained

        return [Setting(*one) for one in explained(self._homes(), os.environ)]

    def doctor(self) -> Sequence[Finding]:
        """Look at everything around the session."""
        from agentsh.app.checkup import checkup

        return [Finding(*line) for line in checkup(self._homes(), os.environ)]

    def feedback_bundle(self, file: Path | None) -> Path:
        """Write what a bug report needs, without what was said."""
        from agentsh.app.bundling import feedback_bundle

        return feedback_bundle(self._homes(), (self._running.home, self._running.id), os.environ, file)

    def custom(self) -> Mapping[str, CustomCommand]:
        """Return the commands that the user wrote, by name."""
        from agentsh.app.custom_commands import custom_commands, directories

        found = custom_commands(directories(self._homes(), os.environ))
        return {name: CustomCommand(*command) for name, command in found.items()}

    def _homes(self) -> Homes:
        return find_homes(here(), os.environ)


def _listed(row: Row, now_ns: int) -> Listed:
    summary, cost = row.summary, row.summary.get("cost_usd")
    about = [row.age(now_ns), row.state]
    if cost is not None:
        about.append(f"${cost:.2f}" if cost >= 0.995 else f"${cost:.4f}")
    title = one_line(str(summary.get("title") or ""), 200)
    return Listed(row.place.id, title, one_line(str(summary.get("first_prompt") or ""), 200), tuple(about))
