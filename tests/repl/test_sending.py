"""What goes along with a text, whether it is sent, queued or steers, and an Esc at the moments between two things."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from agentsh.events.turn import TextQueued, UserMessage
from agentsh.repl.images import image_paths
from agentsh.repl.loop import Repl
from agentsh.repl.terminal import ReplIO
from agentsh.workspace.local import LocalWorkspace
from tests.engine import rig
from tests.repl.test_loop import NoScreen, ended, said
from tests.repl.test_typed_commands import Paced, Talk


class SlowDisk(LocalWorkspace):
    """Reads `slow` once it may."""

    reading, go_on = threading.Event(), threading.Event()

    def read_bytes(self, path: str, *, max_bytes: int) -> bytes:
        if path == "slow":
            self.reading.set()
            assert self.go_on.wait(30)
        return super().read_bytes(path, max_bytes=max_bytes)


@asynccontextmanager
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    SlowDisk.reading, SlowDisk.go_on = threading.Event(), threading.Event()
    model, place = Paced(), SlowDisk(tmp_path, session=rig.ID)
    for name in ("slow", "a.txt"):
        (tmp_path / name).write_text(f"what {name} holds")
    with create_pipe_input() as keys:
        r = await rig.new([], model=model, place=place)
        io = ReplIO(NoScreen(), input=keys, output=DummyOutput(), workspace=place)
        loop = Talk(r, model, keys, Repl(r.session, io))
        try:
            yield loop
            SlowDisk.go_on.set()
            loop.leave()
            await asyncio.wait_for(loop.running, 30)
        finally:
            SlowDisk.go_on.set()
            loop.running.cancel()
            await asyncio.gather(loop.running, return_exceptions=True)
            await r.session.close()


def along(t: Talk) -> list[list[str]]:
    return [[a.name for a in fact.attachments] for fact in t.r.facts(UserMessage)]


async def test_an_esc_while_files_are_read_gives_the_text_back_and_what_waits_behind_it(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        t.keys.send_text("see @slow now\r")
        await t.shows(lambda _: SlowDisk.reading.is_set())
        t.keys.send_text("second\r")
        await t.shows(lambda t: t.r.facts(TextQueued))
        t.keys.send_text("draft\x1b")
        await t.shows(lambda t: t.typed == "see @slow now\nsecond\ndraft")
        SlowDisk.go_on.set()
        t.model.go_on.set()
        t.keys.send_text("\r")
        await t.shows(lambda t: ended(t.r) == 1)
        assert said(t.r) == ["see @slow now\nsecond\ndraft"]
        assert along(t) == [["slow"]]


async def test_an_esc_while_files_of_a_text_that_steers_are_read(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        t.keys.send_text("work\r")
        await t.shows(lambda t: t.r.session.state.turn)
        t.keys.send_text("see @slow\x13")
        await t.shows(lambda _: SlowDisk.reading.is_set())
        t.keys.send_text("and this\r")
        await asyncio.sleep(0.05)
        t.keys.send_text("\x1b")
        await t.shows(lambda t: ended(t.r) == 1)
        await t.shows(lambda t: t.typed == "see @slow\n\nand this")
        assert t.r.facts(TextQueued) == []
        assert said(t.r) == ["work"]


async def test_an_esc_while_an_ended_turn_tidies_up_stops_what_would_come_next(tmp_path: Path) -> None:
    async with talk(tmp_path) as t:
        tidying, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            tidying.set()
            await go_on.wait()

        t.r.log.turn_ended = slow  # type: ignore[method-assign]
        t.keys.send_text("work\r")
        await t.shows(lambda t: t.r.session.state.turn)
        t.keys.send_text("later\r")
        await t.shows(lambda t: t.r.facts(TextQueued))
        t.model.go_on.set()
        await t.shows(lambda _: tidying.is_set())
        t.keys.send_text("\x1b")
        await t.shows(lambda t: t._loop._interrupted)
        go_on.set()
        await t.shows(lambda t: t.typed == "later")
        assert said(t.r) == ["work"]


async def test_files_and_images_go_along_with_texts_that_wait_or_steer(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "shot.png")
    async with talk(tmp_path) as t:
        t.keys.send_text("work\r")
        await t.shows(lambda t: t.r.session.state.turn)
        t.keys.send_text(f"see @a.txt \x1b[200~{tmp_path / 'shot.png'}\x1b[201~\x13")
        await t.shows(lambda t: len(t.r.facts(TextQueued)) == 1)
        t.keys.send_text(f"\x1b[200~{tmp_path / 'shot.png'}\x1b[201~and @a.txt\r")
        await t.shows(lambda t: len(t.r.facts(TextQueued)) == 2)
        (tmp_path / "a.txt").write_text("something new")
        t.model.go_on.set()
        await t.shows(lambda t: ended(t.r) == 2)
        assert along(t) == [[], ["shot.png", "a.txt"], ["shot.png", "a.txt"]]
        steers, waited = t.r.facts(UserMessage)[1:]
        assert steers.attachments[1].content == "what a.txt holds", "as it was when it was typed"
        assert waited.attachments[1].content == "something new", "as it is when it is sent"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{0}/a b.png", ["a b.png"]),
        ("'{0}/a b.png'", ["a b.png"]),
        ("{0}/a\\ b.png {0}/c.jpg ", ["a b.png", "c.jpg"]),
        ("{0}/a b.png\n{0}/c.jpg\n", ["a b.png", "c.jpg"]),
        ("file://{0}/a%20b.png", ["a b.png"]),
        ("file://elsewhere{0}/c.jpg", []),
        ("a b.png", []),
        ("see {0}/c.jpg", []),
        ("{0}/page.png", []),
        ("{0}/gone.png", []),
        ("{0}", []),
        ("{0}/pipe.png", []),
        ("/dev/zero", []),
        ("{0}/c.jpg 'unclosed", []),
        ("\0{0}/c.jpg", []),
        ("", []),
    ],
)
def test_what_is_taken_for_images(tmp_path: Path, text: str, names: list[str]) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a b.png")
    Image.new("RGB", (4, 4)).save(tmp_path / "c.jpg")
    (tmp_path / "page.png").write_text("<html>")
    os.mkfifo(tmp_path / "pipe.png")
    assert [path.name for path in image_paths(text.format(tmp_path))] == names
