"""`!command` in a terminal: live output, Esc, waiting for a turn's end, the replay; and /copy, custom commands."""

import base64
import io
from pathlib import Path

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from agentsh.app.texts import BlobTexts
from agentsh.base.errors import UsageProblem
from agentsh.models.scripted import Say
from agentsh.repl import commands
from agentsh.repl.commands import OwnCommand, SlashContext, filled_in, own_command
from agentsh.repl.slash import copy
from agentsh.repl.terminal import ReplIO
from tests.engine import rig
from tests.repl.pty import Terminal
from tests.repl.test_loop import NoScreen


@pytest.mark.parametrize("columns", [40, 80])
def test_commands_of_the_users_run_wait_are_interrupted_and_replayed(columns: int, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with Terminal(columns, TALK_WORKSPACE=str(place), TALK_REPLAY=str(tmp_path / "replay")) as t:
        t.type("!echo be''gun; sleep 60\r")
        t.wait(lambda: "begun" in t.page and "Esc interrupts" in t.page)
        t.type("!echo queu''ed\r")
        t.wait(lambda: "⏎ queued: !echo" in t.page)
        t.type("\x1b")
        t.wait(lambda: "interrupted by the user" in t.page)
        t.wait(lambda: "› !echo queu''ed" in t.page)  # the queue comes back to the input
        t.type("\r")
        t.wait(lambda: "\n  queued\n" in t.page and "exit 0" in t.page)
        t.type("!!no-such-program\r")
        t.wait(lambda: "exit 127" in t.page)
        t.type(" !not a command\r")
        t.wait(lambda: t.count("You said:") == 1)
        t.type("!\r")
        t.wait(lambda: "!COMMAND runs it" in t.page)
        t.type("/exit\r")
        assert t.ended() == 0
        assert t.restored
        replay = (tmp_path / "replay").read_text(encoding="utf-8")
        assert t.page.split("\n") == replay.rstrip("\n").split("\n")


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("!ls -la", OwnCommand("ls -la", True)),
        ("!!ls", OwnCommand("ls", False)),
        ("! a\nb ", OwnCommand("a\nb", True)),
        (" !ls", None),
        ("!", None),
        ("!!", None),
        ("wow!", None),
    ],
)
def test_what_is_a_command(text: str, own: OwnCommand | None) -> None:
    assert own_command(text) == own


@pytest.mark.parametrize(
    ("text", "argument", "sent"),
    [
        ("Look at $ARGUMENTS.", "a.py b.py", "Look at a.py b.py."),
        ("From $1 to $2, not $3", "x y", "From x to y, not"),
        ("Costs $100 and $10", "x", "Costs $100 and $10\n\nx"),
        ("$1", "$ARGUMENTS $2", "$ARGUMENTS"),
        ("Do it.\n", "", "Do it."),
        ("Do it.\n", "now", "Do it.\n\nnow"),
    ],
)
def test_arguments_of_a_custom_command(text: str, argument: str, sent: str) -> None:
    assert filled_in(text, argument) == sent


async def test_copy_takes_the_answer_or_a_block_of_code_and_no_more_than_terminals_take() -> None:
    out = io.StringIO()
    display = Vt100_Output(out, lambda: Size(24, 80))
    answer = "Do:\n\n```sh\nls\n```\n\nand\n~~~~\nx ```\n~~~~\n"
    r = await rig.new([Say((answer,)), Say(("y" * 80_000,))])
    context = SlashContext(r.session, ReplIO(NoScreen(), output=display, text=BlobTexts(r.store.blobs).text))

    async def copied(argument: str) -> str:
        out.seek(0)
        out.truncate()
        await commands.run("copy", argument, context)
        sequence = out.getvalue().removeprefix("\x1b]52;c;")
        return base64.b64decode(sequence.partition("\x07")[0]).decode()

    assert (await commands.run("copy", "", context)).rows == ["  there is no answer yet"]
    await r.session.submit("how?")
    assert await copied("") == answer.strip("\n")
    assert await copied("code") == "x ```"
    assert await copied("code 1") == "ls"
    for wrong in ("code 3", "code x", "all"):
        with pytest.raises(UsageProblem):
            await commands.run("copy", wrong, context)
    await r.session.submit("more")
    with pytest.raises(UsageProblem, match="80,000 bytes"):
        await commands.run("copy", "", context)
    await r.session.close()


def test_a_clipboard_within_tmux_goes_through_it() -> None:
    through = copy.sequence(b"x", tmux=True)
    assert "\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\" in through
    assert copy.sequence(b"x", tmux=False) == "\x1b]52;c;eA==\x07"
