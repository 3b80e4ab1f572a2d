"""Field reports O206 (secrets in transcripts), O208, O209 and O217 (who may read them), each named by its number."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentsh.stores.blobs import FileBlobs
from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell, of_type

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]
DOTENV = (
    "# of production\n"
    "DB_PASSWORD=hunter2\n"
    "PAYMENT_TOKEN=3f9a1c77e2b04d5896aa\n"
    'STRIPE="sk_live_51Habcdefghijklmnopqrstu"\n'
    "DATABASE_URL=postgres://app:tr0ub4dor@db.internal/app\n"
    "DEBUG=1\n"
)
VALUES = ("hunter2", "3f9a1c77e2b04d5896aa", "sk_live_51Habcdefghijklmnopqrstu", "tr0ub4dor")
TYPED = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
OF_THE_SHELL = "deploy-7Qz91xVm4"


@pytest.fixture
def project(shell: Shell) -> Path:
    (shell.cwd / ".env").write_text(DOTENV)
    return shell.cwd


def state_files(shell: Shell) -> Iterator[tuple[Path, bytes]]:
    """Yield all that agentsh keeps, but for workspaces, whose bytes are the user's files and stay exact."""
    for place, _, names in os.walk(shell.home):
        if Path(place).is_relative_to(shell.home / "workspaces"):
            continue
        for path in (Path(place) / name for name in names):
            data = path.read_bytes()
            if path.is_relative_to(shell.home / "blobs") and path.suffix == ".zst":
                data = FileBlobs(shell.home / "blobs").get(f"sha256:{path.stem}")
                if hashlib.sha256(data).digest() in exact(shell):
                    continue  # a file of the workspace, as a snapshot keeps it
            yield path, data


def exact(shell: Shell) -> set[bytes]:
    return {
        hashlib.sha256(path.read_bytes()).digest()
        for path in (shell.home / "workspaces").rglob("*")
        if path.is_file() and not path.is_symlink()
    } | {hashlib.sha256(DOTENV.encode()).digest()}


def nowhere(shell: Shell, server: ScriptedServer, values: tuple[str, ...]) -> None:
    """Check that no value is in the state or went to the model."""
    seen = 0
    for path, data in state_files(shell):
        seen += 1
        assert not [value for value in values if value.encode() in data], path
    assert seen > 3
    for request in server.requests:
        assert not [value for value in values if value.encode() in request.body]


def test_o206_what_a_command_or_a_tool_reads_is_not_kept(shell: Shell, serve: Serve, project: Path) -> None:
    server = serve(
        reply(
            "Looking.", calls=[call("read", {"path": ".env"}), call("shell", {"command": "cat .env; sleep 1.2; env"})]
        ),
        reply("It holds secrets."),
        reply(calls=[call("shell", {"command": "for i in $(seq 3000); do cat .env; done"})]),
        reply("Long."),
    )
    typed = f"my token is {TYPED}, use it"
    done = shell.run("new", typed, "--json", "--mode", "yolo", "--from", str(project), DEPLOY_SECRET=OF_THE_SHELL)
    assert done.code == 0, done.err
    assert shell.run("resume", "--last", "-p", f"and {OF_THE_SHELL}?", DEPLOY_SECRET=OF_THE_SHELL).code == 0
    assert shell.run("ls").code == 0
    nowhere(shell, server, (*VALUES, TYPED, OF_THE_SHELL))
    texts = [result["for_model"] for result in of_type(done.events, "tool_result")]
    assert all(re.search("DB_PASSWORD=‹secret:[0-9a-f]{8}›", text) for text in texts)
    assert "postgres://app:‹secret:" in texts[0]
    assert "DEBUG=1" in texts[0]
    assert "@db.internal/app" in texts[0]
    replayed = shell.run("replay", "--last")
    assert not [value for value in VALUES if value.encode() in replayed.out]
    assert (shell.home / "secrets.key").stat().st_mode & 0o777 == 0o600


def seen_by(shell: Shell) -> str:
    """Return the placeholder that the newest result of the session holds."""
    texts = [result["for_model"] for result in of_type(shell.events(), "tool_result")]
    (found,) = {match for text in texts for match in re.findall("DB_PASSWORD=(‹secret:[0-9a-f]{8}›)", text)}
    return str(found)


def test_o206_what_is_written_is_the_value_or_nothing(shell: Shell, serve: Serve, project: Path) -> None:
    server = serve(reply(calls=[call("read", {"path": ".env"})]), reply("Read."))
    assert shell.run("new", "read it", "-p", "--mode", "yolo", "--from", str(project)).code == 0
    placeholder = seen_by(shell)
    server = serve(
        reply(calls=[call("write", {"path": "b", "content": f"password: {placeholder}\n"})]),
        reply(calls=[call("read", {"path": ".env"})]),
        reply(
            calls=[
                call("write", {"path": "c.yml", "content": f"password: {placeholder}\n"}),
                call("edit", {"path": ".env", "old": f"DB_PASSWORD={placeholder}", "new": f"DB_PW={placeholder}"}),
                call("shell", {"command": f"printf %s '{placeholder}' > d"}),
                call("write", {"path": "e", "content": "x ‹secret:00000000› y"}),
            ]
        ),
        reply("Done."),
    )
    done = shell.run("resume", "--last", "-p", "write it", "--json")
    results = of_type(done.events, "tool_result")
    assert [result["status"] for result in results] == ["error", "ok", "ok", "ok", "ok", "error"]
    assert "not known any more" in results[0]["for_model"]
    workspace = shell.workspace()
    assert not (workspace / "b").exists()
    assert not (workspace / "e").exists()
    assert (workspace / "c.yml").read_text() == "password: hunter2\n"
    assert (workspace / "d").read_text() == "hunter2"
    assert (workspace / ".env").read_text() == DOTENV.replace("DB_PASSWORD", "DB_PW")
    nowhere(shell, server, VALUES)


def test_o206_it_can_be_switched_off(shell: Shell, serve: Serve, project: Path) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text("[secrets]\nredact = false\n")
    server = serve(reply(calls=[call("read", {"path": ".env"})]), reply("Read."))
    assert shell.run("new", "read it", "-p", "--mode", "yolo", "--from", str(project)).code == 0
    assert b"DB_PASSWORD=hunter2" in server.requests[-1].body


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_o208_o209_o217_nobody_else_can_read_a_session(shell: Shell, serve: Serve, umask: int) -> None:
    serve(
        reply(
            calls=[call("write", {"path": "a.txt", "content": "x" * 30_000}), call("shell", {"command": "cat a.txt"})]
        ),
        reply("Done."),
    )
    before = os.umask(umask)
    try:
        assert shell.run("new", "go", "-p", "--mode", "yolo", "--name", "n").code == 0
        assert shell.run("ls").code == 0
        assert shell.run("verify", "--all").code == 0
    finally:
        os.umask(before)
    files = directories = 0
    for place, _, names in os.walk(shell.home):
        assert stat.S_IMODE(os.stat(place).st_mode) & 0o077 == 0 or "/workspaces/" in place, place
        directories += 1
        if Path(place).is_relative_to(shell.home / "workspaces"):
            continue  # what is in there has the modes of the project
        for name in names:
            mode = stat.S_IMODE(os.lstat(os.path.join(place, name)).st_mode)
            assert mode in (0o600, 0o400), (place, name, oct(mode))
            files += 1
    assert files > 4
    assert directories > 6


@pytest.mark.parametrize("words", [15, 25, 30, 40])
def test_o206_no_half_of_a_secret_is_left_by_a_cut(shell: Shell, serve: Serve, words: int) -> None:
    filler = "a " * words
    command = f"rm {filler * 2}{TYPED}; rm {filler * 3}{TYPED}"
    serve(reply(calls=[call("shell", {"command": command})]), reply("Not allowed."))
    done = shell.run("new", f"{filler}{TYPED}", "--json", "--mode", "ask", "--empty")
    assert done.code == 8, done.err
    assert shell.run("ls").code == 0
    pieces = [TYPED[n : n + 12].encode() for n in range(len(TYPED) - 11)]
    for path, data in state_files(shell):
        assert not [piece for piece in pieces if piece in data], path
