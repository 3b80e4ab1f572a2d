"""Themes: by setting, by what the terminal says of its background, by command; NO_COLOR wins over all."""

import re

import pytest

from agentsh.base.palette import DARK, LIGHT, Palette
from agentsh.repl.looks import ASK, Looks, ThemeName, deep, looks_of, told_background
from tests.repl.pty import Terminal

WHITE, BLACK = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\", "\x1b]11;rgba:00/00/00/ff\x07"
COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|38;[25];[0-9;]+|48;[25];[0-9;]+)[0-9;]*m")


def asked(t: Terminal) -> None:
    t.wait(lambda: ASK in t.raw)


def painted(text: str, palette: Palette, colour: int) -> bool:
    """Whether something was written in one of the 256, by the renderer or by prompt-toolkit."""
    return re.search(rf"38;5;{palette.number(colour)}(?!\d)", text) is not None


@pytest.mark.parametrize(("answer", "palette", "other"), [(WHITE, LIGHT, DARK), (BLACK, DARK, LIGHT)])
def test_the_background_decides_and_the_answer_is_not_typed(answer: str, palette: Palette, other: Palette) -> None:
    with Terminal(COLORFGBG="", COLORTERM="") as t:
        asked(t)
        t.type("be" + answer + "fore")
        t.wait(lambda: "› before" in t.page)
        t.type("\r")
        t.wait(lambda: "You said: before" in t.page and "1 step" in t.page)
        t.type("say `this`\r")
        t.wait(lambda: t.count("— 1 step") == 2)
        assert painted(t.raw, palette, 6)  # code
        assert painted(t.raw, palette, 8)  # what stands back
        assert not painted(t.raw, other, 6)
        assert t.raw.count(ASK) == 1
        assert "rgb" not in t.page


def test_an_answer_in_two_pieces_and_none_at_all() -> None:
    with Terminal(COLORFGBG="") as t:
        asked(t)
        t.type(WHITE[:9])
        t.look(0.05)
        t.type(WHITE[9:] + "hello\r")
        t.wait(lambda: "You said: hello" in t.page)
        assert "rgb" not in t.page
    with Terminal(COLORFGBG="") as t:  # nobody waits for it
        asked(t)
        t.type("hello\r")
        t.wait(lambda: "You said: hello" in t.page)


def test_nothing_is_asked_where_it_is_known_or_of_no_use() -> None:
    known = looks_of("auto", {"TERM": "xterm-256color", "COLORFGBG": "0;15"}, possible=True)
    assert (known.question(), known.palette) == ("", LIGHT)
    for theme, env, possible in (
        ("dark", {"TERM": "xterm-256color"}, True),
        ("auto", {"TERM": "xterm-256color"}, False),
        ("auto", {"TERM": "xterm"}, True),
        ("auto", {"TERM": "linux", "COLORTERM": "truecolor"}, True),
        ("auto", {"TERM": "screen-256color"}, True),
    ):
        assert looks_of(theme, env, possible=possible).question() == ""  # type: ignore[arg-type]
    assert looks_of("auto", {"TERM": "screen-256color", "TMUX": "x"}, possible=True).question() == ASK


def test_without_256_colours_the_terminals_own_are_used() -> None:
    assert looks_of("light", {"TERM": "xterm"}, possible=True).palette is None
    assert looks_of("light", {"TERM": "xterm", "COLORTERM": "truecolor"}, possible=True).palette is LIGHT
    assert deep({"TERM": "xterm-kitty"})
    assert not deep({})


@pytest.mark.parametrize(
    ("text", "background"),
    [("15;0", "dark"), ("0;default;15", "light"), ("0;7", "light"), ("", ""), ("x;y", ""), ("0;99", "")],
)
def test_colorfgbg(text: str, background: str) -> None:
    assert told_background({"COLORFGBG": text}) == background


def test_a_key_that_looks_like_the_beginning_of_an_answer_comes_through() -> None:
    looks = Looks(deep=True, asks=True)
    assert looks.take("\x1b]") == "\x1b]"  # nothing was asked
    assert looks.question() == ASK
    assert looks.take("a\x1b]1") == "a"
    assert looks.take("x") == "\x1b]1x"
    assert looks.take(BLACK) == ""
    assert looks.palette is DARK
    assert looks.take("\x1b]1") == "\x1b]1"


def test_the_command_changes_prompt_and_answers_and_plain_is_plain() -> None:
    with Terminal(COLORFGBG="15;0", TALK_THEME="dark", COLORTERM="") as t:
        t.type("say `a`\r")
        t.wait(lambda: t.count("— 1 step") == 1)
        assert painted(t.raw, DARK, 6)
        t.type("/theme light\r")
        t.wait(lambda: "theme: light" in t.page)
        at = len(t.raw)
        t.type("say `b`\r")
        t.wait(lambda: t.count("— 1 step") == 2)
        assert painted(t.raw[at:], LIGHT, 6)
        assert not painted(t.raw[at:], DARK, 6)
        t.type("/theme\r")
        t.wait(lambda: "Which colours?" in t.page)
        t.type("plai\r")
        t.wait(lambda: "theme: plain" in t.page)
        at = len(t.raw)
        t.type("say `c`\r")
        t.wait(lambda: t.count("— 1 step") == 3)
        assert COLOUR.findall(t.raw[at:]) == []
        t.type("/theme pink\r")
        t.wait(lambda: "there is no theme 'pink'" in t.page)


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_no_color_wins(theme: ThemeName) -> None:
    with Terminal(NO_COLOR="1", TALK_THEME=theme, COLORFGBG="0;15", COLORTERM="truecolor") as t:
        t.type("say `a`\r")
        t.wait(lambda: t.count("— 1 step") == 1)
        t.type("/theme light\r")
        t.wait(lambda: "NO_COLOR is set" in t.page)
        t.type("/sta\t")
        t.wait(lambda: "/status" in t.page)
        assert COLOUR.findall(t.raw) == []
        assert ASK not in t.raw
