"""The tools as a provider sees them, from the first request to a session that goes on with another model."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agentsh.app.wiring import TOOLS
from agentsh.testing.server import ScriptedServer, call, reply
from tests.e2e.harness import Shell, of_type

Serve = Callable[..., ScriptedServer]
MAX_FIRST_REQUEST_BYTES = 12_000
WAYS = ("apply_patch", "edit")
PATCH = """\
*** Begin Patch
*** Update File: a.py
@@
-x = 1
+x = 2
*** Update File: old.txt
*** Move to: new/name.txt
*** Add File: b.py
+y = 1
*** Delete File: gone.txt
*** End Patch
"""


def names(body: bytes) -> list[str]:
    return [tool["function"]["name"] for tool in json.loads(body)["tools"]]


def configured(shell: Shell, **models: dict[str, Any]) -> None:
    lines = [
        f"[models.{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in profile.items())
        for name, profile in models.items()
    ]
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text("\n".join(lines))


@pytest.mark.parametrize("way", WAYS)
def test_the_first_request_is_small_and_offers_one_way_to_edit(shell: Shell, serve: Serve, way: str) -> None:
    server = serve(reply("Hello."))
    configured(shell, scripted={"model": "some-model", "edit": way})
    assert shell.inside("new", "hello", "-p", "--empty").code == 0
    (request,) = server.requests
    assert len(request.body) < MAX_FIRST_REQUEST_BYTES
    offered = names(request.body)
    assert [name for name in offered if name in WAYS] == [way]
    assert {name for name, target in TOOLS.items() if "agentsh.tools" in target} - set(WAYS) >= set(offered) - {way}
    assert {"read", "list", "glob", "grep", "write", "shell"} <= set(offered)


def test_a_patch_is_one_edit_a_file_and_can_be_taken_back(shell: Shell, serve: Serve) -> None:
    for name, text in {"a.py": "x = 1\n", "old.txt": "o\n", "gone.txt": "g\n"}.items():
        (shell.cwd / name).write_text(text)
    serve(reply(calls=[call("apply_patch", {"patch": PATCH})]), reply("Done."))
    done = shell.inside("new", "change it", "--json", "--mode", "yolo", "--from", ".")
    assert done.code == 0, done.err
    (result,) = of_type(done.events, "tool_result")
    assert result["status"] == "ok"
    edits = of_type(done.events, "code_edit")
    assert [(e["path"], e["before"] is None, e["after"] is None) for e in edits] == [
        ("a.py", False, False),
        ("old.txt", False, True),
        ("new/name.txt", True, False),
        ("b.py", True, False),
        ("gone.txt", False, True),
    ]
    assert all(e["snapshot"] for e in edits)
    root = shell.workspace()
    files = {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}
    assert files == {"a.py": "x = 2\n", "new/name.txt": "o\n", "b.py": "y = 1\n"}
    shown = shell.inside("replay", "--last").text
    assert "● apply_patch a.py, old.txt, new/name.txt, b.py, gone.txt  +3 -3 · " in shown
    (first,) = [e["seq"] for e in done.events if e["type"] == "user_message"]
    assert shell.inside("rewind", shell.ids[-1], "--to", str(first - 1)).code == 0
    files = {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}
    assert files == {"a.py": "x = 1\n", "old.txt": "o\n", "gone.txt": "g\n"}


def test_a_patch_is_judged_by_every_path_that_it_names(shell: Shell, serve: Serve) -> None:
    """Blanks before a section's marker, and a move, hide no path from a rule."""
    shell.home.mkdir(parents=True)
    (shell.home / "agentsh.toml").write_text('[permissions]\ndeny = ["write(secret/**)"]\n')
    sections = ("  *** Add File: secret/a\n+x\n", "*** Add File: b\n+x\n*** Update File: b\n*** Move to: secret/b\n")
    calls = [call("apply_patch", {"patch": f"*** Begin Patch\n{section}*** End Patch"}) for section in sections]
    serve(reply(calls=calls), reply("Done."))
    done = shell.inside("new", "change it", "--json", "--mode", "yolo", "--empty")
    assert [r["status"] for r in of_type(done.events, "tool_result")] == ["denied", "denied"]
    assert not (shell.workspace() / "secret").exists()
    assert not (shell.workspace() / "b").exists()


def test_a_search_shows_no_file_that_a_rule_holds_back(shell: Shell, serve: Serve) -> None:
    """grep finds files that its call does not name: rules for reading hold for each of them."""
    for name in ("secret.txt", "open.txt", "asked.txt", "d/secret.txt"):
        (shell.cwd / name).parent.mkdir(exist_ok=True)
        (shell.cwd / name).write_text(f"needle in {name}\n")
    shell.home.mkdir(parents=True)
    (shell.home / "agentsh.toml").write_text(
        '[permissions]\ndeny = ["read(secret.txt)", "write(open.txt)"]\nask = ["read(asked.txt)"]\n'
    )
    searches = [
        call("grep", {"pattern": p, "path": d}) for p, d in (("needle", "."), ("n.e.*", "."), ("needle", "d"))
    ]
    serve(reply(calls=searches), reply("Done."))
    done = shell.inside("new", "search", "--json", "--mode", "ask", "--in-place")
    first, second, third = [r["for_model"] for r in of_type(done.events, "tool_result")]
    assert first == second == "open.txt:1:needle in open.txt\n[3 files left out by a rule of the user]"
    assert third == "[no match]\n[1 file left out by a rule of the user]"
    serve(reply(calls=searches[:1]), reply("Done."))
    done = shell.inside("new", "search", "--json", "--mode", "yolo", "--in-place")
    (result,) = of_type(done.events, "tool_result")
    assert "asked.txt:1:needle" in result["for_model"]
    assert "secret.txt" not in result["for_model"]


def test_another_model_is_told_of_its_other_tool_and_the_old_one_still_works(shell: Shell, serve: Serve) -> None:
    """The messages that are there stay word for word; what changed is told at the start of the next one."""
    edit = call("edit", {"path": "a", "old": "one", "new": "two"})
    server = serve(
        reply(calls=[call("write", {"path": "a", "content": "one\n"})]),
        reply("Written."),
        reply(calls=[edit]),
        reply("Edited."),
    )
    configured(shell, scripted={"model": "one"}, claude={"model": "claude-x"})
    assert shell.inside("new", "write a", "-p", "--empty", "--mode", "yolo").code == 0
    assert shell.inside("resume", "--last", "edit it", "-p", "--model", "claude").code == 0
    first, second, third, _ = [json.loads(r.body) for r in server.requests]
    assert [name for name in names(server.requests[0].body) if name in WAYS] == ["apply_patch"]
    assert [name for name in names(server.requests[2].body) if name in WAYS] == ["edit"]
    assert third["messages"][: len(second["messages"])] == second["messages"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    told = third["messages"][-1]["content"]
    assert "The tools you are offered have changed (new: edit; gone: apply_patch)." in told
    assert told.endswith("edit it")
    assert (shell.workspace() / "a").read_text() == "two\n"


def test_a_call_of_the_way_that_is_not_offered_runs(shell: Shell, serve: Serve) -> None:
    serve(
        reply(calls=[call("write", {"path": "a", "content": "one\n"})]),
        reply(calls=[call("edit", {"path": "a", "old": "one", "new": "two"})]),
        reply("Done."),
    )
    done = shell.inside("new", "go", "--json", "--empty", "--mode", "yolo")
    assert [r["status"] for r in of_type(done.events, "tool_result")] == ["ok", "ok"]
    assert (shell.workspace() / "a").read_text() == "two\n"
