"""The small parser and typer read the same table; over generated command lines they say the same."""

from typing import Any

import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from agentsh.cli import hot, ls

words = st.sampled_from(["shop", "a b", "x=y", "0", "7", "-3", "created", "cost", "", "--", "ünï"])
flags = st.sampled_from(
    ["--tag", "--all", "--sort", "--limit", "--json", "--tag=x", "--sort=cost", "--limit=3", "--limit=x",
     "--json=1", "--nope", "-t", "--help", "--sort=", "--tag=--all", "--al", "--limit=٣"]
)  # fmt: skip
lines = st.lists(st.one_of(flags, words), max_size=6)


def by_typer(argv: list[str]) -> tuple[int, dict[str, Any] | None]:
    got: list[dict[str, Any]] = []
    app = typer.Typer(add_completion=False)
    app.command()(hot.typer_function(ls.COMMAND, got.append))
    result = CliRunner().invoke(app, argv)
    return result.exit_code, got[0] if got else None


@given(lines)
@settings(deadline=None, max_examples=400)
def test_what_the_small_parser_takes_typer_takes_the_same_way(argv: list[str]) -> None:
    mine = hot.parse(ls.COMMAND, argv)
    if mine is not None:
        assert by_typer(argv) == (0, mine)


def test_the_small_parser_takes_the_ordinary_forms() -> None:
    for argv in ([], ["shop"], ["--all", "--json"], ["--tag", "a", "--tag=b", "--limit", "5", "--sort", "cost", "x"]):
        mine = hot.parse(ls.COMMAND, argv)
        assert mine is not None
        assert by_typer(argv) == (0, mine)


def test_mistakes_are_left_to_typer() -> None:
    for argv in (["--nope"], ["--limit", "x"], ["--sort", "colour"], ["a", "b"], ["--help"], ["--limit"]):
        assert hot.parse(ls.COMMAND, argv) is None
