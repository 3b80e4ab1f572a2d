"""Which homes the user trusts: recorded in ~/.agentsh by path and by the hash of their configuration."""

import hashlib
import json
from pathlib import Path

from agentsh.app.private_file import replace_json
from agentsh.base.errors import UsageProblem
from agentsh.log.plain import read_plain

FILE = "trusted.json"


def fingerprint(home: Path) -> str:
    """Return the sha256 of a home's configuration; a changed one has to be trusted anew."""
    try:
        return hashlib.sha256(read_plain(home / "agentsh.toml")).hexdigest()
    except OSError:
        return ""


def _load(own: Path) -> dict[str, str]:
    try:
        value = json.loads(read_plain(own / FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


def is_trusted(home: Path, own: Path) -> bool:
    """Tell whether `home` was trusted with the configuration that it has now."""
    mark = _load(own).get(str(home.resolve()))
    return bool(mark) and mark == fingerprint(home)


def trust(home: Path, own: Path) -> None:
    """Record that `home` is trusted as it is now.

    Raises:
        UsageProblem: its configuration cannot be read, or `own` cannot be written.
    """
    mark = fingerprint(home)
    if not mark:
        raise UsageProblem(f"{home / 'agentsh.toml'} cannot be read, so it cannot be trusted")
    marks = {**_load(own), str(home.resolve()): mark}
    replace_json(own / FILE, marks)
