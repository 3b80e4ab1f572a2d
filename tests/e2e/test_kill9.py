"""kill -9 at random moments: nothing acknowledged is lost, nothing runs twice, the session goes on."""

import pytest

from agentsh.testing.server import ScriptedServer, forever
from tests.e2e.harness import Shell
from tests.e2e.kills import Killer, next_step


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.timeout(900)
def test_sessions_of_twenty_steps_survive_being_killed(shell: Shell, seed: int) -> None:
    """Five times five kills; the server is strict and refuses what OpenAI would refuse."""
    with ScriptedServer([forever(next_step)]) as server:
        shell.base_url = server.base_url
        killer = Killer(shell, seed)
        killer.run(5)
    assert server.problems == []
    assert killer.kills == 5


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_five_hundred_kills(shell: Shell) -> None:
    with ScriptedServer([forever(next_step)]) as server:
        shell.base_url = server.base_url
        killer = Killer(shell, 2026)
        killer.run(500)
    print(f"\n{killer.kills} kills in {killer.sessions} sessions; {killer.unknown} calls told as unknown")
    print(f"{len(server.requests)} requests, {len(server.problems)} refused")
    assert server.problems == []
    assert killer.unknown, "some kill must have met a running tool"
