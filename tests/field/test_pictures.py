"""Field reports I: pictures in a session. I146, I148, I149 and I151 have their tests where images are made and sent.

The table in test_every_row.py names them.
"""

import base64
import zlib
from collections.abc import Callable

import zstandard

from agentsh.testing.server import ScriptedServer, call, forever, reply
from tests.context.driver import DOT
from tests.e2e.conftest import serve, shell
from tests.e2e.harness import Shell, of_type

__all__ = ["serve", "shell"]

Serve = Callable[..., ScriptedServer]


def test_i150_the_bytes_of_a_picture_on_stdout_stay_out_of_the_context(shell: Shell, serve: Serve) -> None:
    data = base64.b64decode(DOT) + zlib.compress(bytes(range(256)) * 40, 0)
    server = serve(reply(calls=[call("shell", {"command": "cat dot.png"})]), forever(reply("I saw a note.")))
    (shell.cwd / "dot.png").write_bytes(data)
    assert shell.run("new", "look", "-p", "--mode", "yolo", "--from", ".").code == 0
    assert shell.run("resume", "--last", "and now?", "-p").code == 0
    (result,) = of_type(shell.events(), "tool_result")
    note = result["for_model"]
    assert note.startswith(f"exit 0\n[binary output, {len(data):,} bytes")
    assert "89 50 4e 47" in note, "its first bytes in hexadecimal"
    assert len(note) < 1_000
    blob = result["output"]["blob"].removeprefix("sha256:")
    packed = (shell.home / "blobs" / blob[:2] / f"{blob}.zst").read_bytes()
    kept = zstandard.ZstdDecompressor().decompressobj().decompress(packed).decode()
    assert kept == data.decode("utf-8", "replace"), "the whole of it, as text"
    for request in server.requests:
        assert data[:4] not in request.body
        assert "\ufffd" not in request.body.decode()
        assert DOT[:40] not in request.body.decode()


def test_i148_a_page_named_png_bricks_no_session(shell: Shell, serve: Serve) -> None:
    server = serve(reply(calls=[call("read", {"path": "a.png"})]), forever(reply("It is a page.")))
    (shell.cwd / "a.png").write_text("<html>\n")
    assert shell.run("new", "look", "-p", "--from", ".").code == 0
    assert shell.run("resume", "--last", "and now?", "-p").code == 0
    (result,) = of_type(shell.events(), "tool_result")
    assert (result["status"], result["for_model"]) == ("ok", "<html>\n")
    assert server.problems == []
    assert all(b"image_url" not in request.body for request in server.requests)
