"""What the user allowed for a project: kept beside the trust in ~/.agentsh, by the project's directory."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from agentsh.app.private_file import replace_json
from agentsh.base.errors import UsageProblem
from agentsh.log.plain import read_plain

FILE = "granted.json"
MAX_RULES = 500
"""Of one project; the oldest go first."""


class ProjectGrants:
    """Implements `ports.grants.Grants`. A file that does not read counts as empty, and is not written over."""

    def __init__(self, own: Path, project: str) -> None:
        """Keep the rules of the directory `project` in the directory `own`."""
        self._own = own
        self._project = project
        self._rules = tuple(_load(own / FILE).get(project, ()))

    @property
    def rules(self) -> tuple[str, ...]:
        """What was allowed so far, the newest last."""
        return self._rules

    def add(self, rules: Sequence[str]) -> None:
        """Keep more; what another process added meanwhile stays.

        Raises:
            UsageProblem: the file cannot be read or written.
        """
        file = self._own / FILE
        if file.exists() and not _load(file) and file.stat().st_size > len("{}\n"):
            raise UsageProblem(f"{file} cannot be read, so nothing is kept for the project", hint="mend or move it")
        everything = _load(file)
        kept = dict.fromkeys([*everything.get(self._project, ()), *rules])
        everything[self._project] = list(kept)[-MAX_RULES:]
        replace_json(file, everything)
        self._rules = tuple(everything[self._project])


def project_of(cwd: str) -> str:
    """Return the directory that stands for the project around `cwd`: where its repository begins, else itself."""
    place = Path(os.path.realpath(cwd))
    return str(next((p for p in (place, *place.parents) if (p / ".git").exists()), place))


def _load(file: Path) -> dict[str, list[str]]:
    try:
        value = json.loads(read_plain(file))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {k: [r for r in v if isinstance(r, str)] for k, v in value.items() if isinstance(v, list)}
