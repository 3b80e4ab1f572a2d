"""Fixtures: a user with nothing configured, and one who points at a scripted server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agentsh.testing.server import ScriptedServer
from tests.buckets import accounts, az, cloud, gate, gs, moto_port, s3
from tests.e2e.contexts import proven
from tests.e2e.harness import Shell

__all__ = ["accounts", "az", "cloud", "gate", "gs", "moto_port", "s3"]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    cwd = tmp_path / "project"
    cwd.mkdir()
    shell = Shell(tmp_path / "user" / ".agentsh", cwd)
    yield shell
    shell.clean_up()
    proven(shell.home)


@pytest.fixture
def serve(shell: Shell) -> Iterator[Callable[..., ScriptedServer]]:
    """Start a scripted server and point the user at it."""
    with ExitStack() as stack:

        def start(*script: Any, **options: Any) -> ScriptedServer:
            server = stack.enter_context(ScriptedServer(script, **options))
            shell.base_url = server.base_url
            return server

        yield start
