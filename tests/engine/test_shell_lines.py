"""The table of shell lines: each is judged as it says, through the parser, the rules and the policy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsh.engine.policy import Request, decide
from agentsh.engine.rules import Rules, parse_rule, suggested
from agentsh.engine.shell.judge import judge
from agentsh.workspace.local import LocalWorkspace

TABLE = Path(__file__).parent / "shell_lines.txt"
RULES = Rules(
    allow=tuple(map(parse_rule, ("shell(npm test *)", "shell(make check)", "shell(pytest *)", "write(notes/**)"))),
    ask=(parse_rule("shell(git push *)"),),
    deny=tuple(
        map(parse_rule, ("shell(git commit *)", "shell(rm *)", "shell(curl *)", "read(.env)", "read(secrets/)"))
    ),
)


PREFIXES = Path(__file__).parent / "prefix_lines.txt"


def lines() -> Iterator[tuple[str, str]]:
    for row in TABLE.read_text(encoding="utf-8").splitlines():
        if row and not row.startswith("#"):
            verdict, _, line = row.partition(" | ")
            yield verdict, line.replace("⏎", "\n")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> LocalWorkspace:
    root = tmp_path_factory.mktemp("lines") / "ws"
    for directory in ("src", "docs", "secrets", "notes", ".git"):
        (root / directory).mkdir(parents=True)
    for name in ("src/main.py", "src/util.py", "src/data.json", "docs/a.md", "README.md", ".env", "secrets/key.pem"):
        (root / name).write_text("x")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    (root / "out").symlink_to(outside)
    (root / "link-to-env").symlink_to(".env")
    return LocalWorkspace(root, session="test-lines")


def verdict(workspace: LocalWorkspace, line: str, rules: Rules = RULES) -> str:
    found = judge(line, workspace)
    request = Request(
        effects={"exec"},
        mode="ask",
        sandboxed=False,
        rules=rules,
        parts=None if found.unreadable else found.parts,
        unreadable=found.unreadable or "",
    )
    return decide(request).action


def test_the_table_is_large_enough() -> None:
    found = list(lines())
    assert len(found) >= 120
    assert len({line for _, line in found}) == len(found)
    assert {verdict for verdict, _ in found} == {"allow", "ask", "deny"}


def test_every_line_is_judged_as_the_table_says(workspace: LocalWorkspace) -> None:
    wrong = [
        f"{expected} but {got}: {line!r}"
        for expected, line in lines()
        if (got := verdict(workspace, line)) != expected
    ]
    assert not wrong, "\n".join(wrong)


def test_a_rule_by_prefix_covers_what_it_means_and_no_more(workspace: LocalWorkspace) -> None:
    wrong = []
    for row in PREFIXES.read_text(encoding="utf-8").splitlines():
        if row.startswith("#"):
            continue
        expected, texts, line = row.split(" | ", 2)
        allow = tuple(parse_rule(text) for text in texts.split(",") if not text.startswith("deny "))
        deny = tuple(parse_rule(text[5:]) for text in texts.split(",") if text.startswith("deny "))
        got = verdict(workspace, line.replace("⏎", "\n"), Rules(allow=allow, deny=deny))
        if got != expected:
            wrong.append(f"{expected} but {got}: {row!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("npm test -- x", ("shell(npm test *)",)),
        ("A=1 npm test", ("shell(A=1 npm test)",)),
        ("./run.sh a", ("shell(./run.sh a)",)),
        ("git log --output=x", ("shell(git log --output=x)",)),
        ("git -c a.b=c commit", ("shell(git -c a.b=c commit)",)),
        ("mkdir /opt/x", ("shell(mkdir /opt/x)",)),
    ],
)
def test_what_is_offered_would_let_this_very_line_run(
    workspace: LocalWorkspace, line: str, rules: tuple[str, ...]
) -> None:
    assert suggested(judge(line, workspace).parts) == rules
    assert verdict(workspace, line, Rules(allow=tuple(map(parse_rule, rules)))) == "allow"


def test_without_rules_what_is_forbidden_is_asked(workspace: LocalWorkspace) -> None:
    """A deny rule narrows what would be a question or harmless; it never makes something else harmless."""
    reads = {"cat .env", "cat ./.env", "cat src/../.env", "grep KEY .env", "cat secrets/key.pem", "cat < .env"}
    for expected, line in lines():
        if expected == "deny" and line not in reads and "rm" in line:
            assert verdict(workspace, line, Rules()) == "ask", line
