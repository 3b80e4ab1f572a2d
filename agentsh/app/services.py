"""What tools get of a session beside its files, put together by the settings and by who watches."""

from typing import TYPE_CHECKING

from agentsh.app.paths import Home
from agentsh.base.clock import Clock
from agentsh.engine.jobs import JobKeeper
from agentsh.engine.journal import Journal
from agentsh.engine.secret_stream import SecretStream
from agentsh.ports.asker import Asker
from agentsh.ports.services import Services
from agentsh.ports.texts import Texts
from agentsh.ports.workspace import Workspace

if TYPE_CHECKING:
    from agentsh.app.settings import Settings

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
    return Services(jobs=jobs, asker=asker), jobs
