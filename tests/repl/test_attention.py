"""Who has looked away is called; who is there is left in peace."""

from typing import Any, cast

from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from agentsh.repl.attention import (
    FOCUS_OFF,
    FOCUS_ON,
    GIVE_TITLE_BACK,
    KEEP_TITLE,
    LONG_S,
    TYPING_S,
    Attention,
    shows_777,
)


class Keeping(DummyOutput):
    def __init__(self) -> None:
        self.raw = ""

    def write_raw(self, data: str) -> None:
        self.raw += data


def attention(*, rings: bool = True, titles: bool = True) -> tuple[Attention, Keeping, list[float]]:
    output, now_s = Keeping(), [100.0]
    return Attention(lambda: output, rings=rings, titles=titles, now_s=lambda: now_s[0]), output, now_s


def test_a_question_calls_who_has_not_typed_for_a_while() -> None:
    some, output, now_s = attention()
    some.call("asks")
    assert output.raw == ""
    now_s[0] += TYPING_S
    some.call("asks: shell \x1b]0;evil\x07")
    assert output.raw.startswith("\x07\x1b]9;agentsh: asks: shell")
    assert output.raw.count("\x1b") == 1


class Keyboard:
    """As much of an input as is listened to."""

    def __init__(self) -> None:
        self.heard = ""
        self.vt100_parser = self

    def feed(self, data: str) -> None:
        self.heard += data


def test_the_terminal_is_believed_when_it_tells_of_its_focus() -> None:
    some, output, now_s = attention()
    keyboard = Keyboard()
    some.listen(cast(Input, keyboard))
    some.watch()
    assert output.raw == FOCUS_ON
    keyboard.vt100_parser.feed("a\x1b[")
    keyboard.vt100_parser.feed("O")
    some.call("done", after_s=1.0)  # at once: nobody looks
    assert output.raw.count("\x07\x1b]9;agentsh: done") == 1
    keyboard.vt100_parser.feed("\x1b[I")
    now_s[0] += 1_000
    some.call("done", after_s=1_000.0)
    assert output.raw.count("done") == 1
    assert keyboard.heard == "a\x1b[O\x1b[I"
    some.close()
    assert output.raw.endswith(FOCUS_OFF)


def test_what_is_no_key_is_not_typed() -> None:
    keys: list[Any] = []
    parser = Vt100Parser(keys.append)
    for piece in ("\x1b", "[O", "x", "\x1b[", "I"):
        parser.feed(piece)
    assert [key.key for key in keys] == [Keys.Ignore, "x", Keys.Ignore]


def test_the_message_is_one_that_the_terminal_knows() -> None:
    output, now_s = Keeping(), [100.0]
    some = Attention(lambda: output, rings=True, titles=False, with_777=True, now_s=lambda: now_s[0])
    now_s[0] += TYPING_S
    some.call("asks: shell a;b")
    assert output.raw == "\x07\x1b]777;notify;agentsh;asks: shell a,b\x07"
    assert shows_777({"TERM": "foot-extra"})
    assert shows_777({"TERM": "xterm-256color", "VTE_VERSION": "7600"})
    assert not shows_777({"TERM": "foot", "TMUX": "x"})
    assert not shows_777({"TERM": "xterm-kitty"})


def test_only_a_long_turn_calls() -> None:
    some, output, now_s = attention()
    now_s[0] += TYPING_S
    some.call("done", after_s=TYPING_S)
    assert output.raw == ""
    now_s[0] += LONG_S
    some.seen()
    some.call("done", after_s=LONG_S)
    assert output.raw == ""
    now_s[0] += LONG_S
    some.call("done", after_s=LONG_S)
    assert "done" in output.raw


def test_the_window_is_named_and_gets_its_name_back() -> None:
    some, output, _ = attention()
    some.title("agentsh · a\x1b]2;b")
    some.title("agentsh · a\x1b]2;b")
    some.close()
    assert output.raw.count("\x1b]2;") == 1
    assert output.raw.startswith(KEEP_TITLE)
    assert output.raw.endswith(GIVE_TITLE_BACK)


def test_neither_where_neither_is_wanted() -> None:
    some, output, now_s = attention(rings=False, titles=False)
    now_s[0] += 1_000
    some.call("asks")
    some.title("x")
    some.close()
    assert output.raw == ""
