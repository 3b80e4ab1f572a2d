"""What an input can go on with, and what is sent along."""

import base64
import re
from importlib import import_module
from pathlib import Path

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.utils import get_cwidth

from agentsh.repl.attach import MAX_BYTES, attachments
from agentsh.repl.commands import COMMANDS
from agentsh.repl.complete import MAX_SHOWN, Files, command_candidates, file_word, mention, mentions
from agentsh.repl.panel import Panel
from agentsh.repl.rows import wrapped
from agentsh.workspace.local import LocalWorkspace
from tests.context.driver import DOT


def test_commands_by_their_beginning() -> None:
    assert "/model " in [c.text for c in command_candidates("/mo")]
    assert command_candidates("/model x") == []
    assert command_candidates("say /mo") == []
    assert command_candidates("/etc/ho") == []
    assert len(command_candidates("/")) >= 4


@pytest.mark.parametrize(
    ("before", "typed"),
    [("@", ""), ("see @src/a", "src/a"), ("a@b", None), ("@a b", None), ("", None), ("x\n@y", "y")],
)
def test_where_a_file_begins(before: str, typed: str | None) -> None:
    assert file_word(before) == typed


def test_files_by_parts_of_their_path_the_best_first() -> None:
    files = Files(
        ["src/app/main.py", "main.md", "tests/domain.py", "src/main/x.py", "m/a/i/n.txt", "README", "Ünï.md"]
    )
    assert files.best("main") == ["main.md", "src/app/main.py", "tests/domain.py", "src/main/x.py", "m/a/i/n.txt"]
    assert (
        files.best("MAIN.P") == ["src/app/main.py", "tests/domain.py"] or files.best("MAIN.P")[0] == "src/app/main.py"
    )
    assert files.best("ünï") == ["Ünï.md"]
    assert files.best("zz") == []
    assert files.best("")[0] == "README"


def test_narrowing_finds_what_looking_at_all_finds() -> None:
    paths = [f"p{n % 7}/m{n % 31}/file_{n}.py" for n in range(2_000)]
    slow, typed = Files(paths), "p3m1e_1"
    for end in range(len(typed) + 1):
        assert slow.best(typed[:end]) == Files(paths).best(typed[:end])
    assert slow.best("p5") == Files(paths).best("p5")
    assert len(slow.best("file")) == MAX_SHOWN


def test_mentions_are_what_was_put_in() -> None:
    paths = ["a.py", "with space.txt", "修/复.md"]
    assert mentions("look at " + " and ".join(mention(p) for p in paths)) == paths
    assert mentions("me@example.org @a.py @a.py") == ["a.py"]


def test_files_that_are_mentioned_go_along(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print('修')\n", encoding="utf-8")
    (tmp_path / "big").write_bytes(b"x" * (MAX_BYTES + 1))
    (tmp_path / "bin").write_bytes(b"\xff\xfe\0")
    (tmp_path / "d").mkdir()
    workspace = LocalWorkspace(tmp_path, session="20261129-k3v9qd")
    found = attachments("@a.py @big @bin @d @gone @../outside @/etc/passwd @\x00", workspace)
    assert [(a.name, a.content) for a in found] == [("a.py", "print('修')\n")]
    assert attachments("@a.py", None) == ()


def test_images_that_are_mentioned_go_along_and_damaged_ones_say_so(tmp_path: Path) -> None:
    data = base64.b64decode(DOT)
    (tmp_path / "dot").write_bytes(data)
    (tmp_path / "torn.png").write_bytes(data[:40])
    (tmp_path / "noise").write_bytes(data + b"x" * MAX_BYTES)
    workspace = LocalWorkspace(tmp_path, session="20261129-k3v9qd")
    dot, torn, noise = attachments("@dot @torn.png @noise", workspace)
    assert (dot.name, dot.media_type, dot.content, dot.width) == ("dot", "image/png", DOT, 1)
    assert torn.media_type == "text/plain"
    assert str(torn.content).startswith("[torn.png is damaged: ")
    assert noise.media_type == "image/png", "longer than a text may be"


def test_the_list_fits_and_the_chosen_one_is_put_in() -> None:
    buffer = Buffer(document=Document("/"))
    panel = Panel(list, lambda: None)
    panel.follow(buffer)
    for columns in (20, 40, 80):
        for row in panel.rows(columns):
            assert sum(get_cwidth(part[1]) for part in row) <= columns
    panel.move(1)
    second = panel.candidates[1].text
    panel.take(buffer)
    assert buffer.text == second
    buffer.document = Document("/")
    panel.follow(buffer)
    panel.close(buffer)
    panel.follow(buffer)
    assert panel.candidates == []


@pytest.mark.parametrize("columns", [5, 12, 40, 80])
@pytest.mark.parametrize(
    "text", ["", "  /help   what can be typed here and what it does", "修" * 30, "x" * 99, "   " + "ab " * 40]
)
def test_notices_are_wrapped_and_nothing_is_lost(text: str, columns: int) -> None:
    rows = wrapped(text, columns)
    assert all(get_cwidth(row) <= columns for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


def test_the_page_names_every_command_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "repl.md").read_text(encoding="utf-8")
    table = page.partition("| command | what it does |\n|---|---|")[2].partition("\n\n")[0]
    assert set(re.findall(r"`/([a-z-]+)", table.replace("| see", ""))) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there(name: str) -> None:
    module, _, function = COMMANDS[name].target.partition(":")
    assert callable(getattr(import_module(module), function))
