"""Field reports A: records of two versions in one log. The old ones are read as what they mean today, and stay."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agentsh.events.upcast import UPCASTERS, Upcaster
from agentsh.testing.server import ScriptedServer, reply
from tests.app.homes import events, log_of
from tests.e2e.harness import Done, of_type
from tests.field.conftest import Case

Serve = Callable[..., ScriptedServer]

RENAMED = {"user_message": ("content", "text"), "turn_finished": ("why", "reason")}
"""Members that had another name once, by the type of event: an agentsh whose table has entries."""

TOMORROW = f"""
import sys
from agentsh.events.upcast import UPCASTERS
def renaming(was, now):
    return lambda old: {{now if name == was else name: old[name] for name in old}}
for kind, names in {RENAMED!r}.items():
    UPCASTERS[kind] = (renaming(*names),)
from agentsh.cli.entry import main
sys.exit(main())
"""


def renaming(was: str, now: str) -> Upcaster:
    return lambda old: {now if name == was else name: old[name] for name in old}


@pytest.fixture(autouse=True)
def _tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let those who look at the home behind the test be of that version too."""
    assert not UPCASTERS.keys() & {"user_message", "turn_finished"}
    for kind, (was, now) in RENAMED.items():
        monkeypatch.setitem(UPCASTERS, kind, (renaming(was, now),))


def run(case: Case, *words: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", TOMORROW, *words], cwd=case.shell.cwd, env=case.shell.env(), stdin=subprocess.DEVNULL,
        capture_output=True, timeout=99, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr.decode(), 0)


def older(drafts: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Return drafts as the version before wrote them."""
    return [(kind, dict(renaming(*RENAMED.get(kind, ("", ""))[::-1])(payload))) for kind, payload in drafts]


@pytest.mark.parametrize("new_before_old", [False, True])
def test_a15_records_of_two_versions(case: Case, serve: Serve, new_before_old: bool) -> None:
    """A15 openai/codex#45150: an upgrade mixed records of two versions. It loads, and new records are of the newer.

    new_before_old: as where an older version was used once more in between.
    """
    drafts = events(case.id, case.shell.home / "workspaces" / case.id, 6)
    half = 1 + 3 * 3
    mixed = [*drafts[:half], *older(drafts[half:])] if new_before_old else [*older(drafts[:half]), *drafts[half:]]
    case.put(log_of(case.id, mixed))
    before = case.log.read_bytes()
    asked = [f"do {n} of {case.id}" for n in range(6)]

    (row,) = run(case, "ls", "--all", "--json").events
    assert (row["title"], row["turns"], row["state"]) == (asked[0], 6, "idle"), row
    assert run(case, "verify", case.id).code == 0
    shown = run(case, "replay", case.id, "--format", "text").text
    assert [text for text in asked if text in shown] == asked
    assert asked[1] in run(case, "search", asked[1]).text

    server = serve(reply("I am back."), reply("And again."))
    done = run(case, "resume", case.id, "go on", "-p")
    assert (done.code, done.text) == (0, "I am back.\n"), done.err
    sent = [m["content"] for m in json.loads(server.requests[0].body)["messages"] if m["role"] == "user"]
    assert [next(text for text in sent if ask in text) for ask in asked] == sent[:6]
    assert "go on" in sent[6]
    data = case.log.read_bytes()
    assert data.startswith(before), "old lines are never rewritten"
    new = [json.loads(line) for line in data[len(before) :].splitlines()]
    assert [p["text"] for p in of_type(new, "user_message")] == ["go on"]
    assert [p["reason"] for p in of_type(new, "turn_finished")] == ["done"]
    assert run(case, "verify", case.id).code == 0

    at = next(event["seq"] for event in new if event["type"] == "context_built")
    told = run(case, "context", case.id, "--at", str(at))
    assert told.code == 0, told.err
    assert "differs" not in told.text + told.err
    assert run(case, "resume", case.id, "once more", "-p").text == "And again.\n"
    child = run(case, "fork", case.id, "--at", str(half), "--json").events[0]["id"]
    shown = run(case, "replay", child, "--format", "text").text
    assert [text for text in asked if text in shown] == asked[:3]
