"""Who has looked away is called; who is there is left in peace."""

from prompt_toolkit.output import DummyOutput

from agentsh.repl.attention import GIVE_TITLE_BACK, KEEP_TITLE, LONG_S, TYPING_S, Attention


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
