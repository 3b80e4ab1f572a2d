"""What Ctrl-O opens: all of it, also where the screen was given the ends alone."""

import pytest

from agentsh.base.text import ends_of
from agentsh.events.base import Text
from agentsh.events.tool import ToolResult
from agentsh.repl.outputs import Outputs, Printed
from tests.render.rig import Story


def text(value: Text) -> str:
    assert isinstance(value, str)
    return value


@pytest.mark.parametrize("spilled", [False, True])
def test_what_was_left_out_for_the_screen_is_shown(spilled: bool) -> None:
    lines = [str(n) for n in range(31)]
    fact = ToolResult(
        call="c", status="ok", exit=0, duration_ms=1, for_model="exit 0\n" + "\n".join(lines),
        for_user="\n".join(["seq 0 30 · exit 0", *ends_of(lines, 20)]), output="\n".join(lines) if spilled else None,
    )  # fmt: skip
    outputs = Outputs(text)
    outputs.on(Story().event(fact))
    assert outputs.printed(0) == Printed("seq 0 30 · exit 0", "\n".join(lines))


def test_what_the_screen_has_whole_is_shown_as_there() -> None:
    fact = ToolResult(call="c", status="ok", duration_ms=1, for_model="1\tline\n", for_user="read x\nline", exit=None)
    outputs = Outputs(text)
    outputs.on(Story().event(fact))
    assert outputs.printed(0) == Printed("read x", "line")


def test_what_the_screen_only_counts_is_shown_as_the_model_was_told() -> None:
    fact = ToolResult(
        call="c", status="ok", duration_ms=1, for_model="a.py\t12\nsrc/", for_user="list . · 2 entries", exit=None
    )
    outputs = Outputs(text)
    outputs.on(Story().event(fact))
    assert outputs.printed(0) == Printed("list . · 2 entries", "a.py\t12\nsrc/")
