"""What may run: deny before ask before allow, whatever the mode; and each mode as the design has it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from agentsh.engine.calls import what_it_does
from agentsh.engine.policy import Decision, Request, decide, withheld
from agentsh.engine.rules import BadRule, Rules, parse_rule, parse_rules, suggested
from agentsh.engine.shell.judge import Part, judge
from agentsh.events.session import Mode
from agentsh.ports.workspace import Workspace
from agentsh.tools.shell import TOOL as SHELL
from agentsh.tools.web_fetch import TOOL as WEB
from agentsh.workspace.local import LocalWorkspace
from tests.engine.rig import NoWorkspace


class Anywhere:
    """A tree in which everything relative is inside."""

    def real(self, path: str) -> str | None:
        return None if path.startswith(("/", "..")) else path

    def expands(self, pattern: str) -> list[str]:
        return []


def shell(line: str, mode: Mode, rules: Rules | None = None, **more: Any) -> Decision:
    found = judge(line, Anywhere())
    more.setdefault("sandboxed", False)
    return decide(
        Request(
            effects={"exec"},
            mode=mode,
            rules=rules or Rules(),
            parts=None if found.unreadable else found.parts,
            unreadable=found.unreadable or "",
            **more,
        )
    )


def tool(name: str, path: str, mode: Mode, rules: Rules | None = None, **more: Any) -> Decision:
    reads = name in ("read", "grep")
    part = Part(name, f"{name} {path}", (), (path,), None if reads else "it changes files")
    more.setdefault("sandboxed", False)
    return decide(
        Request(effects={"read" if reads else "write"}, mode=mode, rules=rules or Rules(), parts=(part,), **more)
    )


def rules(allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> Rules:
    return Rules(*(tuple(map(parse_rule, texts)) for texts in (allow, ask, deny)))


def test_where_keys_are_kept_nothing_is_read_unasked() -> None:
    keys = frozenset({".ssh", ".config/gh", ".netrc"})
    allowed = rules(allow=["read(.ssh/config)"])
    for mode in ("ask", "auto", "plan"):
        for path in (".ssh/id_rsa", ".ssh", ".netrc", ".config/gh/hosts.yml"):
            assert tool("read", path, mode, keys=keys).action == "ask", (mode, path)
        assert tool("read", ".ssh/config", mode, allowed, keys=keys).action == "allow"
        assert tool("read", ".ssh/id_rsa", mode, allowed, keys=keys).action == "ask"
        assert tool("read", ".config/other", mode, keys=keys).action == "allow"
        assert tool("read", ".ssh/id_rsa", mode).action == "allow", "another workspace has no such places"
        for line in ("cat .ssh/id_rsa", "ls && head -1 .netrc", "grep -r x .", "rg x", "cat < .netrc"):
            assert shell(line, mode, keys=keys).action == "ask", (mode, line)
            assert shell(line, mode, keys=keys, sandboxed=True).action == "allow", "they are hidden there"
            assert shell(line, mode, keys=keys, sandboxed=True, leaving=True).action in ("ask", "deny")
        assert shell("ls -la && cat notes", mode, keys=keys).action == "allow"
    assert tool("read", ".ssh/id_rsa", "yolo", keys=keys).action == "allow"
    held = withheld(allowed, "auto", keys)
    assert held is not None
    assert [held(path) for path in (".ssh/id_rsa", ".ssh/config", "src/.ssh", "a")] == [True, False, False, False]
    assert withheld(allowed, "yolo", keys) is None


@pytest.mark.parametrize(
    ("mode", "sandboxed", "harmless", "command", "edit"),
    [
        ("ask", True, "allow", "ask", "ask"),
        ("ask", False, "allow", "ask", "ask"),
        ("auto", True, "allow", "allow", "allow"),
        ("auto", False, "allow", "ask", "allow"),
        ("plan", True, "allow", "deny", "deny"),
        ("yolo", False, "allow", "allow", "allow"),
    ],
)
def test_modes(mode: Mode, sandboxed: bool, harmless: str, command: str, edit: str) -> None:
    assert shell("ls -la | head", mode, sandboxed=sandboxed).action == harmless
    assert shell("make", mode, sandboxed=sandboxed).action == command
    assert shell("ls > out", mode, sandboxed=sandboxed).action == edit
    assert tool("edit", "src/a.py", mode, sandboxed=sandboxed).action == edit
    assert tool("read", "src/a.py", mode, sandboxed=sandboxed).action == "allow"


@pytest.mark.parametrize("mode", ["ask", "auto", "plan", "yolo"])
def test_deny_holds_in_every_mode(mode: Mode) -> None:
    forbids = rules(allow=["shell(rm *)", "write"], ask=["shell(rm *)"], deny=["shell(rm *)", "write(secrets/)"])
    assert shell("ls && rm x", mode, forbids, sandboxed=True).action == "deny"
    assert shell("ls && rm x", mode, forbids, sandboxed=True, granted=True, preapproved=True).action == "deny"
    assert tool("edit", "secrets/a", mode, forbids, sandboxed=True).action == "deny"
    assert tool("apply_patch", "a/secrets/b", mode, forbids, sandboxed=True).action == "deny"
    assert shell("echo x > secrets/a", mode, forbids, sandboxed=True).action == "deny"


def test_ask_goes_before_allow() -> None:
    both = rules(allow=["shell(git *)"], ask=["shell(git push *)"])
    assert shell("git commit -m x", "ask", both).action == "allow"
    assert shell("git push", "ask", both).action == "ask"
    assert shell("git push", "auto", both, sandboxed=True).action == "ask"
    assert shell("git push", "auto", both, sandboxed=True, granted=True).label == "session"
    assert shell("git push", "yolo", both).action == "allow"


def test_what_cannot_be_read_may_be_forbidden() -> None:
    forbids = rules(deny=["shell(rm *)"])
    for line in ("rm (", "$X y", "echo ${x@P}"):
        assert shell(line, "auto", forbids, sandboxed=True).action == "ask"
        assert shell(line, "yolo", forbids).action == "deny"
        assert shell(line, "auto", sandboxed=True).action == "allow"
    hides = rules(deny=["read(.env)"])
    assert shell("cat $F", "auto", hides, sandboxed=True).action == "ask"
    assert shell("make", "auto", hides, sandboxed=True).action == "allow"
    assert tool("grep", ".env", "auto", hides).action == "deny"
    assert tool("edit", ".env", "auto", hides).action == "deny"


def test_leaving_the_sandbox_is_asked_about() -> None:
    everything = rules(allow=["shell"])
    assert shell("ls", "auto", everything, sandboxed=True, leaving=True).action == "ask"
    assert shell("ls", "auto", everything, sandboxed=True, leaving=True, granted=True).action == "allow"
    assert shell("ls", "plan", sandboxed=True, leaving=True).action == "deny"
    assert shell("ls", "yolo", sandboxed=True, leaving=True).action == "allow"


def test_files_that_others_run_are_guarded() -> None:
    everything = rules(allow=["write"])
    assert tool("write", ".git/hooks/pre-commit", "auto", sandboxed=True).action == "ask"
    assert tool("edit", "sub/.git/config", "ask", everything, granted=True).action == "ask"
    assert shell("echo x > .git/config", "auto").action == "ask"
    assert tool("write", ".agentsh/agentsh.toml", "auto", everything, sandboxed=True).action == "ask"
    assert tool("write", ".gitignore", "auto").action == "allow"


def test_a_workspace_in_the_home_of_agentsh_is_not_guarded_for_its_absolute_paths(tmp_path: Path) -> None:
    root = tmp_path / ".agentsh" / "workspaces" / "20260101-aaaaaa"
    root.mkdir(parents=True)
    workspace = LocalWorkspace(root, session="test-policy")
    for line, action in ((f"touch {root}/x", "allow"), (f"touch {root}/.agentsh/x", "ask")):
        parts = judge(line, workspace).parts
        assert decide(Request({"exec"}, "ask", False, rules(allow=["shell(touch *)"]), parts)).action == action


def test_hooks_that_are_in_the_workspace_are_guarded() -> None:
    for path, action in (("hooks/h", "ask"), ("hooks", "ask"), ("hooks/h2", "allow"), ("hook", "allow")):
        part = Part("write", f"write {path}", (), (path,), "it changes files")
        request = Request({"write"}, "auto", True, Rules(), (part,), guarded={"hooks/h"})
        assert decide(request).action == action


@pytest.mark.parametrize(
    ("mode", "given", "action"),
    [
        ("ask", Rules(), "ask"),
        ("auto", Rules(), "ask"),
        ("plan", Rules(), "ask"),  # it changes nothing
        ("yolo", Rules(), "allow"),
        ("auto", rules(allow=["web_fetch(*.python.org)"]), "allow"),
        ("plan", rules(allow=["web_fetch(docs.python.org)"]), "allow"),
        ("auto", rules(allow=["web_fetch(python.org)"]), "ask"),
        ("auto", rules(allow=["web_fetch"], deny=["web_fetch(docs.*)"]), "deny"),
        ("yolo", rules(deny=["web_fetch(docs.python.org)"]), "deny"),
        ("auto", rules(allow=["read(*)", "shell", "write"]), "ask"),
    ],
)
def test_the_web_is_judged_by_host(mode: Mode, given: Rules, action: str) -> None:
    does = what_it_does(WEB, {"url": "https://u@Docs.Python.org:443/3/x?q=1"}, cast(Workspace, NoWorkspace()))
    request = Request(effects={"net"}, mode=mode, sandboxed=True, rules=given, parts=does.parts)
    assert decide(request).action == action
    assert suggested(does.parts) == ("web_fetch(docs.python.org)",)


def test_a_url_that_is_none_matches_no_rule() -> None:
    does = what_it_does(WEB, {"url": "http://[::1"}, cast(Workspace, NoWorkspace()))
    given = rules(allow=["web_fetch(*)"])
    assert (
        decide(Request(effects={"net"}, mode="auto", sandboxed=True, rules=given, parts=does.parts)).action == "ask"
    )


def test_a_line_is_judged_where_it_will_run(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    workspace = LocalWorkspace(tmp_path, session="test-policy")
    forbids = rules(deny=["read(secret)"])
    for line, directory, action in (
        ("cat secret", ".", "deny"), ("cat ../secret", "sub", "deny"), ("cat ../../x", "sub", "ask"),
        ("cat ../x", "sub", "allow"), ("cat ../x", ".", "ask"), ("cd ..; cat x", "sub", "allow"),
    ):  # fmt: skip
        does = what_it_does(SHELL, {"command": line}, workspace, directory)
        request = Request(effects={"exec"}, mode="ask", sandboxed=False, rules=forbids, parts=does.parts)
        assert decide(request).action == action, (line, directory)


@pytest.mark.parametrize("text", ["", "shell()", "Shell(x)", "shell(x", "x y", "shell(x) y"])
def test_no_rule(text: str) -> None:
    with pytest.raises(BadRule):
        parse_rule(text)
    assert parse_rules([text, "edit"]) == (parse_rule("edit"),)


@pytest.mark.parametrize(
    ("rule", "line", "matches"),
    [
        ("shell(make)", "make", True),
        ("shell(make)", "make all", False),
        ("shell(make *)", "make", True),
        ("shell(make *)", "make -j2 all", True),
        ("shell(python3* -m pytest *)", "python3.12 -m pytest -q", True),
        ("shell(python3* -m pytest *)", "python3.12 -m http.server", False),
        ("shell(rm *)", "rmdir x", False),
        ("shell", "anything at all", True),
        ("edit", "make", False),
    ],
)
def test_rules_for_commands(rule: str, line: str, matches: bool) -> None:
    part = judge(line, Anywhere()).parts[-1]
    assert parse_rule(rule).matches(part) == matches


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("npm test -- -u", ("shell(npm test *)",)),
        ("cargo build && cargo test --all", ("shell(cargo build *)", "shell(cargo test *)")),
        ("rm -rf build", ("shell(rm -rf build)",)),
        ("ls && make", ("shell(make)",)),
        ("git -C sub commit -m x", ("shell(git commit *)",)),
        ("make > log", ("write", "shell(make)")),
        ("echo $(x) > $Y", ()),
        ('python -c "print(1)"', ()),
        ("$X", ()),
        ("make; make a; make b; make c; make d", ("shell(make)", *(f"shell(make {x} *)" for x in "abcd"))[:0]),
    ],
)
def test_what_a_lasting_yes_would_allow(line: str, offered: tuple[str, ...]) -> None:
    parts = judge(line, Anywhere()).parts
    assert sorted(suggested(parts)) == sorted(offered)
    for rule in offered:
        parse_rule(rule)
    if offered:
        assert shell(line, "ask", rules(allow=offered)).action == "allow"
