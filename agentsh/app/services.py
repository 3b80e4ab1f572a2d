"""What tools get of a session beside its files, put together by the settings and by who watches."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agentsh.app.toolset import WEB
from agentsh.engine.jobs import JobKeeper
from agentsh.engine.journal import Journal
from agentsh.engine.rules import parse_rules
from agentsh.engine.secret_stream import SecretStream
from agentsh.ports.services import Page, Services
from agentsh.ports.texts import Texts
from agentsh.ports.workspace import Workspace

if TYPE_CHECKING:
    from agentsh.app.plan import Plan
    from agentsh.app.settings import Settings

JOBS = "jobs"
"""Of a session's directory: what its background jobs printed, one file each."""


def services_of(
    plan: "Plan", session: str, journal: Journal, workspace: Workspace, texts: Texts
) -> tuple[Services, JobKeeper]:
    """Return what tools get, and the keeper of the jobs, which is to be closed with the session."""
    from agentsh.workspace.job_output import JobOutputs

    secrets = journal.secrets
    outputs = JobOutputs(plan.home.sessions / session / JOBS, lambda: SecretStream(secrets), secrets.clean)
    jobs = JobKeeper(journal, workspace, outputs, texts, plan.clock)
    fetch = fetcher(plan.settings) if wants_web(plan.settings) else None
    return Services(jobs=jobs, asker=plan.screens.asker, fetch=fetch), jobs


def wants_web(settings: "Settings") -> bool:
    """Tell whether pages of the web may be fetched at all: each host is asked about all the same."""
    return settings.tools.web or any(rule.tool == WEB for rule in parse_rules(settings.permissions.allow))


def fetcher(settings: "Settings") -> Callable[[str], Awaitable[Page]]:
    """Return what gets pages."""

    async def fetch(url: str) -> Page:
        from agentsh.tools.web import Fetcher  # for the first page, not for the start

        return await Fetcher(frozenset(host.lower() for host in settings.tools.web_private))(url)

    return fetch
