"""/config and the bundle: where settings come from, and nothing that is nobody's business."""

from pathlib import Path

from agentsh.app.bundling import Private, length_of, redacted
from agentsh.app.explaining import explained
from agentsh.app.paths import Home, Homes
from agentsh.log.record import Record


def test_each_setting_with_its_origin_the_last_source_wins(tmp_path: Path) -> None:
    own, project = tmp_path / ".agentsh", tmp_path / "project"
    for directory, text in (
        (own, 'model = "mine"\n[session]\nmax_steps = 7\nmode = "ask"\n[permissions]\nallow = ["read"]\n'),
        (project, '[session]\nmax_steps = 9\n[models.x]\noptions = { api_key_id = "hush", temperature = 1 }\n'),
    ):
        directory.mkdir()
        (directory / "agentsh.toml").write_text(text)
    homes = Homes((), Home(project, trusted=True))
    env = {"HOME": str(tmp_path), "AGENTSH_MODEL": "named"}
    found = {e.name: (e.value, e.origin) for e in explained(homes, env)}
    assert found["model"] == ("named", "AGENTSH_MODEL")
    assert found["session.max_steps"] == ("9", str(project / "agentsh.toml"))
    assert found["session.mode"] == ("ask", str(own / "agentsh.toml"))
    assert found["permissions.allow"] == ('["read"]', str(own / "agentsh.toml"))
    assert found["ui.notify"] == ("true", "default")
    assert found["session.max_cost_usd"] == ("-", "default")
    assert found["models.x.options"] == (
        '{"api_key_id": "(hidden)", "temperature": 1}', str(project / "agentsh.toml")
    )  # fmt: skip
    assert found["models.x.wire"][1] == "default"
    assert not [name for name, (value, origin) in found.items() if value == "(hidden)"], "a default hides nothing"


def test_a_record_keeps_what_happened_and_not_what_was_said() -> None:
    payload = {
        "text": "my secret", "attachments": [{"name": "key.pem", "media_type": "text/plain", "content": "abc"}],
        "status": "ok", "exit": 3, "name": "shell", "reason": "done", "bytes": 12, "my secret": 1,
        "request": {"wire": "chat", "host": "http://inside.example"}, "mode": "auto; my secret", "error": None,
    }  # fmt: skip
    (line,) = redacted([Record(seq=1, ts="t", type="turn_finished", dur=0, cause=None, payload=payload, raw=b"")])
    assert '"status": "ok"' in line
    assert '"name": "shell"' in line
    assert '"reason": "done"' in line
    assert '"wire": "chat"' in line
    assert '"exit": 3' in line
    for private in ("secret", "key.pem", "abc", "inside"):
        assert private not in line.replace("media_type", "")
    assert length_of("abc") == "‹3 characters›"


def test_who_somebody_is_is_left_out(tmp_path: Path) -> None:
    private = Private({"HOME": "/home/ana"})
    said = private.without("/home/ana/shop at http://ana:pw@inside:1/v1 and s3://bucket/x.")
    assert said == "~/shop at ‹address› and ‹address›"
