"""Writes small files of the user's own in ~/.agentsh: whole or not at all, readable by nobody else."""

import json
import os
from pathlib import Path
from typing import Any

from agentsh.base.errors import UsageProblem


def replace_json(file: Path, value: Any) -> None:
    """Write a file by rename, synced.

    Raises:
        UsageProblem: it cannot be written.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as opened:
            json.dump(value, opened, indent=1)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(temporary, file)
    except OSError as error:
        raise UsageProblem(f"{file} cannot be written: {error.strerror}") from None
