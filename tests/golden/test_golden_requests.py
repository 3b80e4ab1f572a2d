"""Requests of old logs are built again byte for byte, for ever: one log for each version of the rules (RULES).

Where this fails, the way from log to messages gives other bytes than it did: give it a new number in context/view.py,
and keep the old way for the old one.
"""

from hashlib import sha256
from pathlib import Path

import pytest
import zstandard

from agentsh.app.catalog import places
from agentsh.app.contexts import Contexts, encoded
from agentsh.app.paths import Home
from agentsh.context.fold import apply
from agentsh.context.request import rebuild
from agentsh.context.state import SessionState
from agentsh.context.view import RULES
from agentsh.events.codec import decode
from agentsh.events.turn import ContextBuilt
from agentsh.log.frame import decode_event
from agentsh.ports.texts import InlineTexts

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "golden" / "requests"


def test_the_sample_of_the_repository() -> None:
    """From before rules were recorded: version 0."""
    (place,) = places((Home(ROOT, trusted=False),))
    checks = Contexts(place).check()
    assert (checks.requests, checks.problems) == (7, ())


HOLDS = {1: (17, 4, 2), 2: (19, 5, 0), 3: (12, 2, 0)}
"""Requests, cuts among them, and changes told at one time. 2: images shown, left out, not shown; a lost call. 3: a
cap that was set, blank texts, arguments that are long, deep or of no finite number."""


def test_every_version_has_its_log() -> None:
    assert set(HOLDS) == set(range(1, RULES + 1))


@pytest.mark.parametrize("rules", HOLDS)
def test_a_log_of_each_version(rules: int) -> None:
    data = zstandard.ZstdDecompressor().decompress((LOGS / f"rules{rules}.jsonl.zst").read_bytes(), 1 << 24)
    state, built, cuts, changes = SessionState(), 0, 0, 0
    for line in data.splitlines(keepends=True):
        event = decode(decode_event(line, 1))
        if isinstance(event.fact, ContextBuilt):
            again = rebuild(state, event.fact, InlineTexts())
            assert event.fact.rules == rules
            assert sha256(encoded(again.wire, again.prompt)).hexdigest() == event.fact.request_sha256, event.seq
            built, cuts = built + 1, cuts + (event.fact.cut is not None)
        apply(state, event)
        changes = max(changes, len(state.changes))
    assert (built, cuts) == HOLDS[rules][:2]
    assert changes >= HOLDS[rules][2]
