"""Every key of the prompt in a real terminal of 40, 80 and 200 columns; docs/repl.md and /help name the same keys."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from agentsh.repl.asked import ARM_S
from agentsh.repl.keys import HELP
from tests.repl.pty import Terminal
from tests.repl.test_pty import ready

UP, DOWN, PAGE_UP, PAGE_DOWN, ESC = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b"
HUMAN_S = 0.35
"""Between two keys of a sequence, as a person types them."""


@pytest.fixture(params=[40, 80, 200])
def columns(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory of files, an editor, a history of earlier."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "cart.py").write_text("x = 1\n")
    (place / "cargo.toml").write_text("[package]\n")
    (place / "node_modules").mkdir()
    (place / "node_modules" / "cart.js").write_text("")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\n[ -n "$FAIL" ] && exit 3\nprintf "and \\351dited\\nof two lines\\n" >> "$1"\n')
    editor.chmod(0o755)
    (tmp_path / "history").write_text('"asked in an earlier session"\n"the last one"\n')
    yield place
    assert not (place / "ran").exists()


def terminal(columns: int, place: Path, **more: str) -> Terminal:
    tmp = place.parent
    more.setdefault("VISUAL", str(tmp / "editor"))
    return Terminal(columns, 24, cwd=None, TALK_HISTORY=str(tmp / "history"), TALK_WORKSPACE=str(place), **more)


def typed(t: Terminal, text: str) -> None:
    """Wait until this, and no more, stands in the one prompt."""
    mark = re.compile(r"\n[›:] ?" + re.escape(text) + r" *\n[^\n]*(?:20261129-k3v9qd|again to leave)$")
    t.wait(lambda: mark.search(t.page) is not None)


def test_editing(columns: int, place: Path) -> None:
    """Alt-Enter, Ctrl-J, Ctrl-Z, Ctrl-_, Ctrl-C, Up, Ctrl-R, Ctrl-X Ctrl-E, Enter."""
    with terminal(columns, place) as t:
        t.type("one two thre")
        typed(t, "one two thre")
        t.type("\x1a")
        typed(t, "one two")
        t.type("\x1f")
        typed(t, "one")
        t.paste(" pasted words")
        typed(t, "one pasted words")
        t.type("\x1a")
        typed(t, "one")
        t.type("\x1b\rtwo\nthree ")
        t.wait(lambda: "› one\n  two\n  three" in t.page)
        t.type("\x18")
        t.look(HUMAN_S)
        t.type("\x05")
        t.wait(lambda: "  three and \ufffddited\n  of two lines\n" in t.page)
        t.type("\x03")
        typed(t, "")
        t.type(UP)
        t.wait(lambda: "of two lines" in t.page)
        t.type("\x1b\r\x03")  # a new line more, and cleared again
        typed(t, "")
        t.type("\x12earli")
        t.wait(lambda: "› asked in an earlier session" in t.page)
        t.type("\r")
        t.wait(lambda: "search" not in t.page)
        t.type("\r")
        ready(t, 1)
        assert "You said: asked in an earlier session" in t.page
        t.type("\x03\x04")
        assert t.ended() in (0, 130)
        assert t.restored


def test_an_editor_that_fails_changes_nothing(place: Path) -> None:
    with terminal(80, place, FAIL="1") as t:
        t.type("keep me\x18\x05")
        t.wait(lambda: "the editor ended with 3" in t.page)
        typed(t, "keep me")
        t.type("\r")
        ready(t, 1)
    with terminal(80, place, VISUAL="/nowhere/ed") as t:
        t.type("keep me\x18\x05")
        t.wait(lambda: "there is no /nowhere/ed: set EDITOR" in t.page)
        typed(t, "keep me")


def test_keys_of_vi(columns: int, place: Path) -> None:
    with terminal(columns, place, TALK_VI="1") as t:
        t.type("hello wrld")
        typed(t, "hello wrld")
        t.type(ESC)
        t.wait(lambda: "\n: hello wrld" in t.page)
        t.type("ba")
        t.look(HUMAN_S)
        t.type("o")
        typed(t, "hello world")
        t.type(ESC)
        t.wait(lambda: "\n: hello world" in t.page)
        t.type("u")
        typed(t, "hello wrld")
        t.type("ddisleep")
        typed(t, "sleep")
        t.type("\r")
        t.wait(lambda: "running" in t.page)
        t.type("late\r")
        t.wait(lambda: "queued: late" in t.page)
        t.type("not yet" + ESC)
        t.wait(lambda: "\n: not yet" in t.page)
        assert "running" in t.page, "the first Esc is vi's own"
        t.type(ESC)
        t.wait(lambda: "■ interrupted" in t.page)
        t.wait(lambda: re.search(r"\n[›:] late\n +not yet\n", t.page) is not None)
        t.type("ggdG")
        typed(t, "")
        t.type("itouch\r")
        t.wait(lambda: "? touch x" in t.page)
        t.look(ARM_S + 0.1)
        t.type("y")
        t.wait(lambda: "✓ approved" in t.page)
        typed(t, "")
        t.type("text " + ESC + "v")
        t.wait(lambda: "of two lines" in t.page)


def test_private_leaves_nothing_in_the_history(columns: int, place: Path) -> None:
    file = place.parent / "history"
    with terminal(columns, place) as t:
        t.type("kept\r")
        ready(t, 1)
        t.type("/private\r")
        t.wait(lambda: "private · unsandboxed" in t.page)
        t.type("unkept\r")
        ready(t, 2)
        t.type(UP)
        typed(t, "unkept")  # within the session it comes back
        t.type("\x03/private off\r")
        t.wait(lambda: "kept in the history again" in t.page.replace("\n  ", " "))
        t.type("kept too\r")
        ready(t, 3)
        t.type("/exit\r")
        assert t.ended() == 0
    kept = file.read_text().splitlines()[2:]
    assert '"kept"' in kept
    assert '"kept too"' in kept
    assert "unkept" not in "".join(kept)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_queue_steer_recall_and_interrupt(columns: int, place: Path) -> None:
    """Enter, Ctrl-S, Up, Esc; what is mentioned with @ goes along with a text that steers."""
    with terminal(columns, place) as t:
        t.type("sleep\r")
        t.wait(lambda: "running" in t.page)
        t.type("one\rtwo\r")
        t.wait(lambda: "queued: two" in t.page)
        t.type(UP)
        typed(t, "two")
        assert "queued: two" not in t.page
        t.type("\x13")
        t.wait(lambda: "steers: two" in t.page and "queued: one" in t.page)
        t.type("draft")
        typed(t, "draft")
        t.type(ESC)
        t.wait(lambda: "■ interrupted" in t.page and "› one\n\n  two\n  draft\n" in t.page)
        assert "steers" not in t.page
        t.type("\r")
        ready(t, 2)
        assert "You said 4 lines." in t.page
        t.type("\x03")
        t.type("sleep\r")
        t.wait(lambda: t.count("running") == 1)
        t.type("see @cart.py \x13")
        t.wait(lambda: "steers: see" in t.page)
        t.type("\x03")
        ready(t, 3, "see @cart.py")
        assert t.page.count("queued") == 0


def test_completion(columns: int, place: Path) -> None:
    """/, @, Tab, Down, Up, Esc; Tab alone sets in."""
    with terminal(columns, place) as t:
        t.type("/mod")
        t.wait(lambda: "▸ /model [NAME]" in t.page)
        t.type(DOWN)
        t.wait(lambda: "▸ /mode [NAME]" in t.page)
        t.type(UP + "\t")
        typed(t, "/model")
        t.type("\x03/mo" + ESC)
        t.wait(lambda: "▸" not in t.page and "› /mo" in t.page)
        t.type("\x03\tset in, look at @car")
        t.wait(lambda: "▸ cart.py" in t.page and "cargo.toml" in t.page)
        assert "node_modules" not in t.page
        t.type(DOWN)
        t.wait(lambda: "▸ cargo.toml" in t.page)
        t.type("\t")
        t.wait(lambda: "@cargo.toml" in t.page and "▸" not in t.page)
        t.type("\r")
        ready(t, 1)
        assert "+ cargo.toml (text/plain)" in t.page
        assert "›     set in" in t.page


def test_images_are_put_in_by_their_path(columns: int, place: Path) -> None:
    tmp = place.parent
    names = ("shot one.png", "b'\x1b]0;x\x07.png", "c.png")
    for name in names:
        Image.new("RGB", (9, 9), "red").save(tmp / name, "PNG")
    (tmp / "torn.png").write_bytes((tmp / "c.png").read_bytes()[:40])
    with terminal(columns, place) as t:
        t.paste(str(tmp / names[0]).replace(" ", "\\ "))
        typed(t, "[Image #1 shot one.png]")
        t.paste("file://" + str(tmp / names[2]))
        t.wait(lambda: "[Image #2 c.png]" in t.page.replace("\n  ", "").replace("\n", ""))
        t.type("\x1a")
        typed(t, "[Image #1 shot one.png]")
        (tmp / names[0]).unlink()  # it was read when it came
        t.type("what is it?\r")
        ready(t, 1)
        assert "+ shot one.png (image/png, 9 × 9)" in t.page
        assert "+ c.png" not in t.page, "its word was taken back"
        t.paste(f"'{tmp / 'torn.png'}' {tmp / 'c.png'}")
        t.type("both\r")
        ready(t, 2)
        assert t.count("+ torn.png (text/plain)") == t.count("+ c.png (image/png, 9 × 9)") == 1
        t.paste(f"{tmp / 'c.png'} is a path in a text")
        t.wait(lambda: "text" in t.page.rpartition("›")[2])
        assert "[Image" not in t.page.rpartition("›")[2]
        t.type("\x03")
        t.type("sleep\r")
        t.wait(lambda: "running" in t.page)
        t.paste(str(tmp / names[1]))
        t.wait(lambda: "[Image #5 b'.png]" in t.page)
        t.type("queued\r")
        t.wait(lambda: "queued: [Image #5" in t.page)
        t.type(ESC)
        t.wait(lambda: "› [Image #5 b'.png] queued" in t.page)  # given back, and sent as it was
        t.type("\r")
        ready(t, 4)
        assert "+ b'.png (image/png, 9 × 9)" in t.page
        assert "\x1b]0;x" not in t.raw


def test_large_pastes_and_one_without_an_end(columns: int, place: Path) -> None:
    """Field reports K161, K164 (an end that is lost), K172."""
    with terminal(columns, place) as t:
        t.paste("\n".join(f"pasted line {n}" for n in range(5_000)))
        typed(t, "[Pasted #1 5,000 lines]")
        t.type(" \r")
        ready(t, 1)
        assert t.count("… 4,940 more lines") == t.count("\n  pasted line 4999\n") == 1
        t.type("\x1b[200~abc")
        t.wait(lambda: "› abc" in t.page, 2.5)
        t.type("def\r")
        ready(t, 2)
        assert "You said: abcdef" in t.page


def test_answers_to_an_approval(columns: int, place: Path) -> None:
    """y, s, n, e and why, Ctrl-C, Esc; keys that were typed before it was seen are text."""
    with terminal(columns, place) as t:
        for turn, (keys, shown) in enumerate(
            (("n", "✗ refused"), ("enot today\r", "✗ refused: not today"), (ESC, "■ interrupted"),
             ("\x03", "■ interrupted"), ("y", "✓ approved"), ("s", "✓ approved")), 1
        ):  # fmt: skip
            t.type("touch\r")
            t.wait(lambda: "? touch x" in t.page and "no, and say why" in t.page.replace("\n", " "))
            t.look(ARM_S + 0.1)
            t.type(keys)
            ready(t, turn)
            assert shown in t.page
            assert "? touch" not in t.page
        t.type("touch\r")  # it is not asked any more
        ready(t, 7)
        assert "\x1b]52" not in t.raw


def test_folds_and_pages(columns: int, place: Path) -> None:
    """Ctrl-O, Ctrl-T, PgDn, PgUp, Esc."""
    with terminal(columns, place) as t:
        t.type("\x0f")
        t.wait(lambda: "nothing was printed yet" in t.page)
        t.type("chatter\r")
        ready(t, 1)
        assert t.count("… 192 more lines") == 1
        assert "row-100" not in t.page
        t.type("half a text\x0f")
        t.wait(lambda: "row-009" in t.page)
        for _ in range(25):
            t.type(PAGE_DOWN)
        t.wait(lambda: t.count("row-199") == 2)
        t.type(PAGE_UP)
        t.wait(lambda: t.count("row-199") == 1 and "lines above" in t.page)
        t.type(ESC)
        t.wait(lambda: "lines above" not in t.page and t.count("row-000") == 1)
        typed(t, "half a text")
        t.type("\x0f")
        t.wait(lambda: t.count("row-001") == 2)
        t.type("\x0f")
        t.wait(lambda: t.count("row-001") == 1)
        t.type("\x03think\r")
        ready(t, 2)
        t.type("\x14")
        t.wait(lambda: "thought-000" in t.page)
        t.type("\x14")
        t.wait(lambda: "thought-000" not in t.page)


def test_commands_of_the_users(columns: int, place: Path) -> None:
    """!cmd, !!cmd, and Esc; Ctrl-O shows all of one."""
    with terminal(columns, place) as t:
        t.type("!seq 500\r")
        t.wait(lambda: "exit 0" in t.page)
        t.type("\x0f")
        t.wait(lambda: "lines below" in t.page and t.count("\n  1\n") == 2)
        t.type("\x0f!!echo hid''den\r")
        t.wait(lambda: "\n  hidden\n" in t.page)
        t.type("!sleep 60\r")
        t.wait(lambda: "Esc interrupts" in t.page)
        t.type(ESC)
        t.wait(lambda: "interrupted by the user" in t.page.replace("\n", " "))


@pytest.mark.parametrize(("keys", "code"), [("\x04", 0), ("\x03\x03", 130), ("/exit\r", 0)])
def test_ways_out(columns: int, place: Path, keys: str, code: int) -> None:
    """Ctrl-D, Ctrl-C twice, /exit: idle, and while a turn runs; field report K171. Signals: test_pty.py."""
    with terminal(columns, place) as t:
        if columns == 80:
            t.type("sleep\r")
            t.wait(lambda: "running" in t.page)
        for key in keys if keys[0] == "\x03" else [keys]:
            t.type(key)
            t.look(0.1)  # the kernel makes one signal of two in the same moment
        assert t.ended() == (0 if columns != 80 else code)
        assert t.restored


def test_the_page_the_help_and_these_tests_name_the_same_keys() -> None:
    here = Path(__file__)
    page = (here.parents[2] / "docs" / "repl.md").read_text(encoding="utf-8")
    table = page.partition("| key | what it does |\n|---|---|\n")[2].partition("\n\n")[0]
    told = {key for row in table.splitlines() for key in re.findall(r"`([^`]+)`", row.split("|")[1])}
    known = {key for keys, _ in HELP for key in keys.split(", ")}
    assert known == told
    source = here.read_text(encoding="utf-8")
    missing = [key for key in known if key not in source.replace("|", "")]
    assert not missing
