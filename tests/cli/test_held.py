"""The look before the framework: it refuses a session that is plainly held, and keeps out of everything else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from agentsh.app.paths import Home
from agentsh.base.errors import SessionHeld
from agentsh.cli.held import CHANGES_NOTHING, refuse_at_once
from agentsh.log.files import RealFiles
from agentsh.log.lease import take
from tests.app.rig import a_home, a_session, an_id

HELD, FREE = an_id(1), an_id(2, "20250101")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    home = a_home(tmp_path / "home")
    a_session(home, HELD, second=2, title="my session")
    a_session(home, FREE, second=1)
    monkeypatch.setenv("AGENTSH_HOME", str(home.root))
    lease = take(RealFiles(), str(home.sessions / HELD), HELD)
    yield home
    lease.release()


@pytest.mark.parametrize(
    "argv",
    [[HELD], [HELD, "go on", "-p"], [HELD[:10]], [HELD[-6:], "--model", "m"], ["--last"],
     ["--last", "go on", "--json"], [HELD, "--", "-odd prompt"]],
)  # fmt: skip
def test_a_held_session_is_refused_with_its_holder(home: Home, argv: list[str]) -> None:
    with pytest.raises(SessionHeld, match=f"pid {os.getpid()}") as caught:
        refuse_at_once(argv)
    assert HELD in str(caught.value.hint)


@pytest.mark.parametrize(
    "argv",
    [[], [""], [FREE], [FREE, HELD], ["-p", HELD], ["--json", "--last"], ["20"], ["my session"], ["nope"],
     [HELD, "--read-only"], [HELD, "--help"], [HELD, "-h"], [HELD, "-ph"], ["--last", "--read-only"], ["-"]],
)  # fmt: skip
def test_everything_else_is_left_to_the_command(home: Home, argv: list[str]) -> None:
    refuse_at_once(argv)


def test_a_home_that_is_not_trusted_or_not_there_is_left_to_it_too(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTSH_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(home.root)
    refuse_at_once([HELD])
    monkeypatch.setenv("AGENTSH_HOME", str(tmp_path / "nowhere"))
    refuse_at_once([HELD])
    refuse_at_once(["--last"])


def test_the_command_has_the_options_that_the_look_knows() -> None:
    """The look takes an id and `--last` as the command does, and knows each option that asks for no lease."""
    from agentsh.cli.main import app

    group = typer.main.get_command(app)
    command = group.commands["resume"]  # type: ignore[attr-defined]
    first = next(p for p in command.params if p.param_type_name == "argument")
    assert (first.name, first.nargs) == ("session", 1)
    flags = {name: p for p in command.params for name in p.opts if p.param_type_name == "option"}
    assert flags["--last"].is_flag
    assert {"--read-only"} | set(group.context_settings["help_option_names"]) - {"-h"} == CHANGES_NOTHING
    assert [name for name in flags if name in CHANGES_NOTHING] == ["--read-only"]
    assert not any("h" in name for name in flags if not name.startswith("--")), "-h alone is a short option with an h"
