"""Columns stay straight with wide and combining characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh.base.text import age
from agentsh.cli.columns import fit, width
from agentsh.cli.ls import count


@given(st.text(), st.integers(1, 60))
def test_fit_gives_exactly_the_columns(text: str, columns: int) -> None:
    assert width(fit(text, columns)) == columns


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("修复", 4), ("é", 1), ("e\u0301", 1), ("a\u200bb", 2)])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0"), (999, "999"), (1000, "1.0k"), (99_940, "99.9k"), (99_960, "100k"), (999_960, "1.0M")]
)
def test_count(n: int, text: str) -> None:
    assert count(n) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0s"), (59, "59s"), (60, "1m"), (86400 * 13, "13d"), (86400 * 14, "2w")]
)
def test_age(seconds: float, text: str) -> None:
    assert age(seconds) == text
