"""The small parser and typer read the same table; over generated command lines they say the same."""

from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from agentsh.cli import hot, ls, sessions

words = st.sampled_from(
    ["shop", "a b", "x=y", "0", "7", "-3", "created", "cost", "", "-", "--", "ünï", "ask", "2000"]
)
flags = st.sampled_from(
    ["--tag", "--all", "--sort", "--limit", "--json", "--tag=x", "--sort=cost", "--limit=3", "--limit=x",
     "--json=1", "--nope", "-t", "--help", "--sort=", "--tag=--all", "--al", "--limit=٣"]
)  # fmt: skip
run_flags = st.sampled_from(
    ["--from", "--from=", "--empty", "--in-place", "--name", "--name=", "--tag=x", "-m", "--model=demo", "-mdemo",
     "-p", "--print", "-pm", "--no-print", "--mode", "--mode=auto", "--mode=Auto", "--json", "--max-steps",
     "--max-turns=3", "--max-steps=0", "--max-cost", "--max-cost=0.25", "--max-cost=1e3", "--max-cost=.5",
     "--max-cost=nan", "--budget", "--budget=1999", "--budget=2_000", "--budget=" + "9" * 5000, "--last", "--dir=/x",
     "--read-only", "-h"]
)  # fmt: skip
COMMANDS = (ls.COMMAND, sessions.NEW, sessions.RESUME)


@st.composite
def lines(draw: st.DrawFn) -> tuple[hot.Command, list[str]]:
    """Return a command and words for it."""
    command = draw(st.sampled_from(COMMANDS))
    return command, draw(st.lists(st.one_of(flags if command is ls.COMMAND else run_flags, words), max_size=6))


def by_typer(command: hot.Command, argv: list[str]) -> tuple[int, dict[str, Any] | None]:
    got: list[dict[str, Any]] = []
    app = typer.Typer(add_completion=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(hot.typer_function(command, got.append))
    result = CliRunner().invoke(app, argv)
    return result.exit_code, got[0] if got else None


@given(lines())
@settings(deadline=None, max_examples=300)
def test_what_the_small_parser_takes_typer_takes_the_same_way(line: tuple[hot.Command, list[str]]) -> None:
    command, argv = line
    mine = hot.parse(command, argv)
    if mine is not None:
        assert by_typer(command, argv) == (0, mine)


ORDINARY: list[tuple[hot.Command, list[list[str]]]] = [
    (ls.COMMAND, [[], ["shop"], ["--all", "--json"],
                  ["--tag", "a", "--tag=b", "--limit", "5", "--sort", "cost", "x"]]),
    (sessions.NEW, [[], ["go"], ["go", "-p", "--json", "--model", "m", "--mode", "yolo", "--empty"],
                    ["--from", "/x", "--name=a b", "--tag", "a", "--tag", "b", "--max-steps", "3"],
                    ["--max-cost=0.5", "--in-place", "--print", "--budget", "2000"]]),
    (sessions.RESUME, [["abc"], ["abc", "go on", "-p"], ["--last", "go on", "--budget", "8000", "-m", "demo"],
                       ["abc", "--dir", "/x", "--read-only"]]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "argv"), [(c, argv) for c, lines in ORDINARY for argv in lines])
def test_the_small_parser_takes_the_ordinary_forms(command: hot.Command, argv: list[str]) -> None:
    mine = hot.parse(command, argv)
    assert mine is not None
    assert by_typer(command, argv) == (0, mine)


def test_mistakes_are_left_to_typer() -> None:
    for argv in (["--nope"], ["--limit", "x"], ["--sort", "colour"], ["--help"], ["--limit"]):
        assert hot.parse(ls.COMMAND, argv) is None
    for argv in (["a", "b"], ["--mode", "never"], ["--max-steps", "0"], ["--budget=1999"], ["-ph"], ["-"], ["--"]):
        assert hot.parse(sessions.NEW, argv) is None
