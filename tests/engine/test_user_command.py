"""Commands of the user's own, on an engine on memory and a real workspace: recorded, told, interrupted, repaired."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh.base.errors import LogWriteFailed, UsageProblem
from agentsh.context.state import CommandItem
from agentsh.context.state_codec import decode_state, encode_state
from agentsh.events.codec import decode
from agentsh.events.tool import PartialOutput
from agentsh.events.user import UserCommand, UserCommandEnded
from agentsh.models.scripted import Say
from agentsh.testing import MemoryStore
from agentsh.workspace.local import LocalWorkspace
from tests.engine import rig


def place(tmp_path: Path) -> LocalWorkspace:
    return LocalWorkspace(tmp_path, session=rig.ID)


def sent(r: rig.Rig, n: int = -1) -> list[str]:
    """The user's side of a request, as the model got it."""
    return [m["text"] for m in json.loads(r.model.requests[n])["messages"] if m["role"] == "user"]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - whatever it is has no event
            await asyncio.sleep(0.005)


async def test_d93_command_and_output_join_the_context_unless_told_not_to(tmp_path: Path) -> None:
    store = MemoryStore()
    r = await rig.new([Say(("one",)), Say(("two",))], store=store, place=place(tmp_path))
    assert await r.session.run_command("echo seen; exit 3", joins=True)
    assert await r.session.run_command("echo hidden", joins=False)
    await r.session.submit("what did I run?")
    (told, asked) = sent(r)
    assert told.startswith("<user_command>")
    assert "$ echo seen; exit 3\nexit 3\nseen\n" in told
    assert asked == "what did I run?"
    assert not any("hidden" in text for text in sent(r))
    await r.session.close()
    again = await rig.again(store, [Say(("three",))], place=place(tmp_path))  # and after a resume
    await again.session.submit("and now?")
    assert sent(again)[:2] == [told, "what did I run?"]
    assert not any("hidden" in text for text in sent(again))
    ends = [e.fact for e in map(decode, store.read(rig.ID)) if isinstance(e.fact, UserCommandEnded)]
    assert [(e.status, e.exit, e.text) for e in ends] == [("ok", 3, "seen\n"), ("ok", 0, "hidden\n")]
    await again.session.close()


async def test_the_intent_is_durable_before_it_starts(tmp_path: Path) -> None:
    r = await rig.new([], place=place(tmp_path))
    r.log.full = lambda drafts: True
    with pytest.raises(LogWriteFailed):
        await r.session.run_command("touch started", joins=True)
    assert not (tmp_path / "started").exists(), "what is not on record is not run"
    r.log.full = lambda drafts: False
    await r.session.run_command("touch started", joins=True)
    assert (tmp_path / "started").exists()
    await r.session.close()


async def test_an_interruption_kills_it_and_keeps_what_was_seen(tmp_path: Path) -> None:
    r = await rig.new([Say(("ok",))], place=place(tmp_path))
    running = asyncio.create_task(r.session.run_command("echo begun; sleep 60; echo never", joins=True))
    await until(lambda: r.screen.signals)
    with pytest.raises(UsageProblem, match="running"):
        await r.session.run_command("echo second", joins=True)
    assert r.session.interrupt()
    assert await asyncio.wait_for(running, 30) is False
    (end,) = r.facts(UserCommandEnded)
    assert (end.status, end.exit, end.text) == ("interrupted", None, "begun\n")
    await r.session.submit("go on")
    assert "interrupted by the user\nbegun" in sent(r)[0]
    await r.session.close()


async def test_a_command_that_a_dead_process_left_is_closed_once_and_not_run_again(tmp_path: Path) -> None:
    store = MemoryStore()
    r = await rig.new([], store=store, place=place(tmp_path))
    start = await r.journal.record(UserCommand(command="touch ran", joins=True, sandbox="none"), durable=True)
    await r.journal.record(PartialOutput(call="", text="half\n"), cause=start.seq)
    assert decode_state(encode_state(r.session.state)) == r.session.state, "a checkpoint may fall into it"
    await r.log.close()
    again = await rig.again(store, [Say(("ok",))], place=place(tmp_path))
    (end,) = again.facts(UserCommandEnded)
    assert (end.status, end.exit, end.text) == ("unknown", None, "half\n")
    assert not (tmp_path / "ran").exists()
    await again.session.submit("what happened?")
    assert "it may have run: the session stopped meanwhile\nhalf" in sent(again)[0]
    await again.session.close()
    third = await rig.again(store, [], place=place(tmp_path))
    assert third.facts(UserCommandEnded) == []
    await third.session.close()


async def test_long_output_is_cut_for_the_model_and_kept_whole(tmp_path: Path) -> None:
    r = await rig.new([Say(("ok",))], place=place(tmp_path))
    await r.session.run_command("seq 1 20000", joins=True)
    (end,) = r.facts(UserCommandEnded)
    assert isinstance(end.text, str)
    assert "bytes left out" in end.text
    assert end.output is not None
    items = r.session.state.talk
    assert [type(item) for item in items] == [CommandItem]
    await r.session.submit("hm")
    assert len(sent(r)[0].encode()) < 31_000
    await r.session.close()


async def test_nothing_in_its_output_can_steer_a_terminal_or_the_model(tmp_path: Path) -> None:
    r = await rig.new([], place=place(tmp_path))
    await r.session.run_command("printf 'a\\033]52;c;aGk=\\007b\\033[2Jc\\rd\\n'", joins=True)
    (end,) = r.facts(UserCommandEnded)
    assert end.text == "d\n"
    await r.session.run_command("printf 'a\\033]52;c;aGk=\\007b\\033[2Jc\\n'", joins=True)
    assert r.facts(UserCommandEnded)[-1].text == "abc\n"
    await r.session.close()


async def test_one_that_waited_leaves_the_queue(tmp_path: Path) -> None:
    r = await rig.new([], place=place(tmp_path))
    seq = await r.session.queue("!true", steer=False)
    assert seq in r.session.state.queue
    await r.session.run_command("true", joins=True, cause=seq)
    assert not r.session.state.queue
    await r.session.close()


async def test_o206_a_secret_that_it_prints_is_neither_kept_nor_told(tmp_path: Path) -> None:
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
    (tmp_path / ".env").write_text(f"API_KEY={key}\n")
    store = MemoryStore()
    r = await rig.new([Say(("ok",))], store=store, place=place(tmp_path))
    await r.session.run_command("cat .env", joins=True)
    await r.session.submit("well?")
    assert "‹secret:" in sent(r)[0]
    (shown,) = re.findall("‹secret:[0-9a-f]{8}›", sent(r)[0])
    await r.session.run_command(f"echo {shown} > copy", joins=False)  # what the screen shows can be used again
    assert (tmp_path / "copy").read_text() == key + "\n"
    whole = b"".join(e.raw for e in map(decode, store.read(rig.ID))).decode() + repr(r.screen.signals)
    assert key not in whole
    with pytest.raises(UsageProblem, match="not known"):
        await r.session.run_command("echo ‹secret:00000000›", joins=True)
    await r.session.close()
