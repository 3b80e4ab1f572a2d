"""Field reports P: a run that failed never ends with 0, and the code says how it failed."""

from collections.abc import Callable

from agentsh.testing.server import ScriptedServer, call, error, forever, hang, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell, stop

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]


def test_p218_p219_four_ways_to_fail_have_four_codes(shell: Shell, serve: Serve) -> None:
    works = reply(calls=[call("shell", {"command": "touch x"})])
    codes = {}
    serve(error(401))
    codes["API error"] = shell.run("new", "go", "-p", "--empty").code
    serve(forever(works))
    codes["max steps"] = shell.run("new", "go", "-p", "--empty", "--mode", "yolo", "--max-steps", "2").code
    serve(works, reply("I was not allowed to."))
    codes["denied"] = shell.run("new", "go", "-p", "--empty", "--mode", "ask").code
    server = serve(hang("thinking"))
    process = shell.start("new", "go", "-p", "--empty")
    server.wait_for_requests(1, 60)
    codes["interrupted"] = stop(process, 2)[0]
    assert 0 not in codes.values()
    assert len(set(codes.values())) == 4, codes
    serve(works, reply("Done."))
    assert shell.run("new", "go", "-p", "--empty", "--mode", "yolo").code == 0
