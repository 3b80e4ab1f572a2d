"""Field reports K: what reaches the terminal, and how it is left. Each row is named by its number.

Others are elsewhere: the table in test_every_row.py names them.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from agentsh.testing.server import ScriptedServer, call, forever, reply
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import COMMAND, Shell, of_type
from tests.e2e.test_replay import ended_turns, terminal

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]
HOSTILE = "\x1b]52;c;aGk=\x07\x1b]0;evil\x07\x1b[2J\x1b[6n\x9b31m\u202e"
BREAKS_OUT = ("\x1b]52", "\x1b]0;evil", "\x1b[2J", "\x1b[6n", "\x9b", "\u202e", "\x07")


def test_k168_a_replay_wraps_at_the_width_of_today(shell: Shell, serve: Serve) -> None:
    serve(reply("many " * 40 + "words."))
    with terminal(shell, 40, "new", "go", "--empty") as t:
        t.wait(lambda: ended_turns(shell) == 1)
        t.type("/exit\r")
        assert t.ended() == 0
        narrow = [line for line in t.lines if "many" in line]
    wide = terminal(shell, 120, "replay", "--last")
    assert wide.ended() == 0
    lines = [line for line in wide.lines if "many" in line]
    wide.__exit__()
    assert max(map(len, narrow)) <= 40
    assert len(lines) < len(narrow)
    assert max(map(len, lines)) > 80


@pytest.mark.parametrize("words", [["new", "go", "--empty"], ["replay", "--last"], ["ls"], ["show", "--last"]])
def test_k170_into_a_file_or_a_pipe_goes_plain_text(
    shell: Shell, serve: Serve, tmp_path: Path, words: list[str]
) -> None:
    serve(forever(reply("**Fine**, and 修复.")))
    assert shell.run("new", "before", "-p", "--empty").code == 0
    with open(tmp_path / "out", "wb") as file:
        argv, env = [str(COMMAND), *words], shell.env()
        done = subprocess.run(argv, cwd=shell.cwd, env=env, stdin=subprocess.DEVNULL, stdout=file, check=False)
    assert done.returncode == 0
    out = (tmp_path / "out").read_text()
    assert out
    assert "\x1b" not in out
    piped = subprocess.run(
        f"{COMMAND} {' '.join(words)} | cat", shell=True, cwd=shell.cwd, env=env, capture_output=True, check=True
    )
    assert b"\x1b" not in piped.stdout
    assert piped.stdout


def test_k172_a_paste_of_5000_lines_is_stored_whole(shell: Shell, serve: Serve) -> None:
    """K172; that it is shown as one word stands in tests/repl/test_keys.py."""
    serve(reply("Much."))
    text = "\n".join(f"pasted line {n} 修 \U0001f9d1\u200d\U0001f4bb" for n in range(5_000))
    with terminal(shell, 80, "new", "--empty") as t:
        t.paste(text)
        t.wait(lambda: "› [Pasted #1 5,000 lines]" in t.page)
        t.type("\r")
        t.wait(lambda: ended_turns(shell) == 1)
        t.type("/exit\r")
        assert t.ended() == 0
    (said,) = of_type(shell.events(), "user_message")
    digest = said["text"]["blob"].removeprefix("sha256:")
    packed = (shell.home / "blobs" / digest[:2] / f"{digest}.zst").read_bytes()
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed).decode() == text


def test_k173_controls_of_tools_models_and_titles_stay_out_of_the_live_view(shell: Shell, serve: Serve) -> None:
    command = "printf '\\033]52;c;aGk=\\007\\033]0;evil\\007\\033[2J\\033[6n\\302\\233visible\\n'; sleep 0.3"
    serve(
        reply("text " + HOSTILE, reasoning="thought " + HOSTILE, calls=[call("shell", {"command": command})]),
        reply(calls=[call("write", {"path": "a", "content": HOSTILE}), call("nonsense" + HOSTILE, {})]),
        reply("over"),
    )
    with terminal(shell, 80, "new", "go", "--mode", "yolo", "--empty", "--name", "title " + HOSTILE) as t:
        t.wait(lambda: ended_turns(shell) == 1)
        t.look(0.3)
        begun = t.raw
        t.type("/exit\r")
        assert t.ended() == 0
    own = begun.replace("\x1b]0;agentsh", "").replace("\x1b]2;", "").split("\x07")
    for part in BREAKS_OUT[:-1]:
        assert not [text for text in own if part in text], part
    assert "visible" in begun
    for words in (["ls"], ["show", "--last"], ["replay", "--last"]):
        other = terminal(shell, 80, *words)
        assert other.ended() == 0
        assert not [part for part in BREAKS_OUT[:4] if part in other.raw], words
        other.__exit__()


def test_k174_k175_half_characters_stop_nothing(shell: Shell, serve: Serve, tmp_path: Path) -> None:
    server = serve(
        reply(
            "half \ud83d of one",
            calls=[call("shell", {"command": "printf '\\355\\240\\275 \\377'; touch $'\\377.txt'"})],
        ),
        reply(calls=[call("list", {"path": "."})]),
        forever(reply("fine")),
    )
    with terminal(shell, 80, "new", "--mode", "yolo", "--empty") as t:
        t.type_bytes(b"typed \xed\xa0\xbd\xff half\r")
        t.wait(lambda: ended_turns(shell) == 1)
        t.type_bytes(b"\x1b[200~pasted \xed\xa0\xbd half\x1b[201~\r")
        t.wait(lambda: ended_turns(shell) == 2)
        t.type("/exit\r")
        assert t.ended() == 0
        assert "Traceback" not in t.raw
    assert len(of_type(shell.events(), "user_message")) == 2
    for request in server.requests:
        request.body.decode("utf-8", "strict")
        json.loads(request.body)
    history = (shell.home / "history").read_text()
    assert [json.loads(line).split()[0] for line in history.splitlines()][:2] == ["typed", "pasted"]
    assert shell.run("replay", "--last").code == 0
    again = terminal(shell, 80, "resume", "--last")
    again.wait(lambda: "›" in again.page)
    again.type("\x1b[A")
    again.wait(lambda: "pasted" in again.page)
    again.type("\x03\x04")
    assert again.ended() in (0, 130)
    again.__exit__()
