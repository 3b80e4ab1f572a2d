"""What stands in the input for a long paste."""

import pytest

from agentsh.repl.pastes import FOLD_LINES, Pastes


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_end_behind_the_last_line_is_no_line(end: str) -> None:
    pastes, text = Pastes(), "\n".join(map(str, range(5_000))) + end
    assert (word := pastes.shown(text)) == "[Pasted #1 5,000 lines]"
    assert pastes.whole(f"a {word} b") == f"a {text} b"
    assert pastes.shown("x\n" * FOLD_LINES) == f"[Pasted #2 {FOLD_LINES} lines]"
    assert pastes.shown("x\n" * (FOLD_LINES - 1)) == "x\n" * (FOLD_LINES - 1)
    assert pastes.shown("x" * 3_000 + end).endswith(f"{3_000 + len(end):,} characters]")
