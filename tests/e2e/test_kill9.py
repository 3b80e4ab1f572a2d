"""kill -9 at random moments: nothing acknowledged is lost, nothing runs twice, the session goes on."""

import pytest

from agentsh.testing.server import ScriptedServer, forever
from tests.e2e.harness import Shell
from tests.e2e.kills import Killer, next_step


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.timeout(170)
def test_a_session_of_twenty_steps_survives_being_killed(shell: Shell, seed: int) -> None:
    with ScriptedServer([forever(next_step)]) as server:  # strict: it refuses what OpenAI would refuse
        shell.base_url = server.base_url
        killer = Killer(shell, seed)
        killer.run(5)
    assert server.problems == []
    assert killer.kills >= 3


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_five_hundred_kills(tmp_path_factory: pytest.TempPathFactory) -> None:
    kills = unknown = sessions = 0
    with ScriptedServer([forever(next_step)]) as server:
        while kills < 500:
            place = tmp_path_factory.mktemp("kill")
            (place / "project").mkdir()
            killer = Killer(Shell(place / ".agentsh", place / "project", server.base_url), sessions + 1000)
            killer.run(12)
            sessions, kills, unknown = sessions + 1, kills + killer.kills, unknown + killer.unknown
    print(f"\n{kills} kills in {sessions} sessions; {unknown} unknown; {len(server.requests)} requests")
    assert server.problems == []
