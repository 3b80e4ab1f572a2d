"""Each precaution of the log is missed by one story when it is taken out, in every test run and not by luck."""

from pathlib import Path

import pytest

from tests.crash.directed import STORIES, Story, a_log_that_lost_its_end
from tests.crash.laboratory import Options
from tests.crash.ledger import Violation


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.mutant)
def test_the_log_keeps_its_promises_to_the_end_of_the_story(story: Story) -> None:
    story.told(Options())


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.mutant)
def test_the_mutant_does_not(story: Story) -> None:
    with pytest.raises(Violation):
        story.told(story.broken)


def test_the_list_follows_a_log_that_lost_its_end(tmp_path: Path) -> None:
    a_log_that_lost_its_end(tmp_path)


def test_a_trusted_index_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh.app.catalog._is_of", lambda stamp, place: bool(stamp))
    with pytest.raises(Violation, match="by the index"):
        a_log_that_lost_its_end(tmp_path)
