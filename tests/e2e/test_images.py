"""Images from a file to the wire: attached by `--image`, refused in one line, dropped where a provider refuses."""

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from agentsh.testing.server import Request, ScriptedServer, error, reply
from tests.e2e.harness import Shell, of_type

Serve = Callable[..., ScriptedServer]
PROFILE = '[models.seeing]\nmodel = "scripted"\nimages = true\nbase_url = "{url}"\napi_key_env = "OPENAI_API_KEY"\n'


def png(path: Path, *, side: int = 300) -> bytes:
    written = io.BytesIO()
    Image.effect_noise((side, side), 90).save(written, "PNG")
    path.write_bytes(written.getvalue())
    return written.getvalue()


def configure(shell: Shell, server: ScriptedServer) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(PROFILE.format(url=server.base_url))


def urls(request: Request) -> list[str]:
    return [
        part["image_url"]["url"]
        for message in request.json["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def test_an_image_is_sent_kept_as_a_blob_and_sent_again_after_a_resume(shell: Shell, serve: Serve) -> None:
    server = serve(reply("noise"), reply("the same"))
    configure(shell, server)
    data = png(shell.cwd / "shot.png")
    done = shell.run("new", "what is it?", "-p", "--image", "shot.png", "--model", "seeing", "--empty")
    assert (done.code, done.text) == (0, "noise\n"), done.err
    assert shell.run("resume", "--last", "and now?", "-p").code == 0
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    assert [urls(request) for request in server.requests] == [[url], [url]]
    assert server.problems == []
    (message, _) = of_type(shell.events(), "user_message")
    (attachment,) = message["attachments"]
    assert (attachment["name"], attachment["width"], attachment["height"]) == ("shot.png", 300, 300)
    assert attachment["content"]["blob"].startswith("sha256:")
    told = json.loads(shell.run("context", "--last", "--json").text)
    assert told["exact"] is True
    assert told["tokens"] < 3_000, "tiles, and not the length of the base64"
    assert shell.run("verify", "--contexts", "--all").code == 0


def test_what_is_no_image_is_refused_before_anything_is_made(shell: Shell, serve: Serve) -> None:
    server = serve(reply("never"))
    configure(shell, server)
    (shell.cwd / "page.png").write_text("<html></html>")
    for path, why in (("page.png", "is no PNG"), ("gone.png", "No such file")):
        done = shell.run("new", "look", "-p", "--image", path, "--model", "seeing")
        assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
        assert why in done.err
    assert (shell.ids, server.requests) == ([], [])


def test_field_i149_i151_an_image_that_a_provider_refuses_is_dropped_and_told(shell: Shell, serve: Serve) -> None:
    refusal = error(400, "The image data you provided does not represent a valid image.")
    server = serve(refusal, reply("without it"), reply("fine"), error(400, "Your request is odd."))
    configure(shell, server)
    png(shell.cwd / "a.png", side=20)
    done = shell.run("new", "look", "-p", "--image", "a.png", "--model", "seeing", "--empty")
    assert (done.code, done.text) == (0, "without it\n"), done.err
    assert [len(urls(request)) for request in server.requests] == [1, 0]
    (dropped,) = of_type(shell.events(), "image_dropped")
    assert dropped["image"] == "a.png"
    assert "valid image" in dropped["reason"]
    assert shell.run("resume", "--last", "again", "-p", "--image", "a.png").code == 0
    assert len(urls(server.requests[-1])) == 1, "one that was attached later is another matter"
    assert shell.run("resume", "--last", "and?", "-p").code == 6, "what speaks of no image drops none"
    assert len(of_type(shell.events(), "image_dropped")) == 1
