"""What tools get of a session beside its files, put together by the settings and by who watches."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agentsh.app.paths import Home
from agentsh.app.wiring import TOOLS
from agentsh.base.clock import Clock
from agentsh.engine.jobs import JobKeeper
from agentsh.engine.journal import Journal
from agentsh.engine.rules import parse_rules
from agentsh.engine.secret_stream import SecretStream
from agentsh.ports.asker import Asker
from agentsh.ports.services import Page, Services
from agentsh.ports.texts import Texts
from agentsh.ports.workspace import Workspace

if TYPE_CHECKING:
    from agentsh.app.settings import Settings

WEB = "web_fetch"
JOBS = "jobs"
"""Of a session's directory: what its background jobs printed, one file each."""


def services_of(
    home: Home,
    session: str,
    settings: "Settings",
    journal: Journal,
    workspace: Workspace,
    texts: Texts,
    clock: Clock,
    asker: Asker | None,
) -> tuple[Services, JobKeeper]:
    """Return what tools get, and the keeper of the jobs, which is to be closed with the session."""
    from agentsh.workspace.job_output import JobOutputs

    secrets = journal.secrets
    outputs = JobOutputs(home.sessions / session / JOBS, lambda: SecretStream(secrets), secrets.clean)
    jobs = JobKeeper(journal, workspace, outputs, texts, clock)
    fetch = fetcher(settings) if wants_web(settings) else None
    return Services(jobs=jobs, asker=asker, fetch=fetch), jobs


def wants_web(settings: "Settings") -> bool:
    """Tell whether pages of the web may be fetched at all: each host is asked about all the same."""
    return settings.tools.web or any(rule.tool == WEB for rule in parse_rules(settings.permissions.allow))


def fetcher(settings: "Settings") -> Callable[[str], Awaitable[Page]]:
    """Return what gets pages."""

    async def fetch(url: str) -> Page:
        from agentsh.tools.web import Fetcher  # for the first page, not for the start

        return await Fetcher(frozenset(host.lower() for host in settings.tools.web_private))(url)

    return fetch


def offered(settings: "Settings") -> tuple[str, ...]:
    """Return the names of the tools that models are offered, in the order of the table."""
    return tuple(name for name in TOOLS if name != WEB or wants_web(settings))
