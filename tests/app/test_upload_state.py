"""What is remembered of a copy is a cache: whatever stands in its place, nobody is kept from anything by it."""

from pathlib import Path

import pytest

from agentsh.app.paths import Home
from agentsh.app.upload_state import STATE, State, remember_asked, remember_failure, state_of
from tests.log.logs import SESSION

GOOD = '{"url":"s3://a","stamp":"b","last_seq":7,"at":"2026-11-30T10:00:00Z","problem":null}'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "sessions" / SESSION).mkdir(parents=True)
    return Home(tmp_path, trusted=True)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", GOOD[:-1], *(GOOD.replace("7,", f"{n},") for n in ("1e999", "-1e999", "NaN", "{}", '"x"')),
     GOOD.replace('"url":"s3://a",', ""), "[" * 100_000, GOOD.replace("7", "7" * 5_000),
     GOOD.replace("b", "b" * 70_000)],
)  # fmt: skip
def test_a_garbled_one_is_none_and_written_anew(home: Home, text: str) -> None:
    place = home.sessions / SESSION / STATE
    place.write_text(text)
    assert state_of(home, SESSION) is None
    remember_failure(home, SESSION, "s3://a", "no")
    remember_asked(home, SESSION, "s3://a")
    found = state_of(home, SESSION)
    assert found is not None
    assert (found.problem, found.url) == ("no", "s3://a")
    assert found.asked


def test_members_of_a_newer_version_are_passed_over(home: Home) -> None:
    (home.sessions / SESSION / STATE).write_text(GOOD.replace("{", '{"more":{"x":[1]},', 1))
    assert state_of(home, SESSION) == State("s3://a", "b", 7, "2026-11-30T10:00:00Z")


def test_what_is_no_file_is_left_alone(home: Home) -> None:
    place = home.sessions / SESSION / STATE
    place.mkdir()
    remember_failure(home, SESSION, "s3://a", "no")
    assert state_of(home, SESSION) is None
    assert [path.name for path in place.parent.iterdir()] == [STATE]
