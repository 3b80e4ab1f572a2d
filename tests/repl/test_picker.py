"""Menus and long notices: what is shown at each width, what the keys do; nothing in them steers a terminal."""

import asyncio
import threading
from collections.abc import Mapping, Sequence

import pytest
from prompt_toolkit.utils import get_cwidth

from agentsh.repl.notice import Notice
from agentsh.repl.picker import QUIET_S, Item, Menu, Picker, numbered
from agentsh.repl.prompt import Prompt
from agentsh.repl.rows import Row
from tests.repl.pty import Terminal
from tests.repl.test_loop import ended, piped, talking, until

ITEMS = [
    Item("a", "fix the cart 修复失败的测试 and all of its many, many tests", ("2h", "idle", "$0.02")),
    Item("b", "rename\x1b[2J a\x07 thing", ("3d", "running"), "what was first asked"),
    Item("c", "", ("1w",)),
]


def plain(rows: Sequence[Row]) -> list[str]:
    return [row if isinstance(row, str) else "".join(part[1] for part in row) for row in rows]


def picker(**more: object) -> Picker:
    return Picker(Menu("Sessions", ITEMS, **more), lambda: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
async def test_rows_fit_and_hold_no_controls(columns: int) -> None:
    shown = plain(picker().rows(columns, 12))
    assert all(get_cwidth(row) < columns for row in shown)
    assert not any(ord(char) < 32 or char == "\x7f" for row in shown for char in row), "K173"
    assert shown[0].startswith("Sessions")
    assert shown[1].startswith("▸ ")
    if columns >= 40:
        assert "2h" in shown[1]
    if columns >= 80:
        assert "2h · idle · $0.02" in shown[1]
        assert (
            len({get_cwidth(row.partition(age)[0]) for row, age in zip(shown[1:3], ("2h", "3d"), strict=True)}) == 1
        )


async def test_typing_filters_labels_notes_and_what_is_not_shown() -> None:
    p = picker()
    for typed, keys in (("CART", "a"), ("thing rename", "b"), ("first asked", "b"), ("idle", "a"), ("zzz", "")):
        p.filter(typed)
        assert [item.key for item in p.shown] == list(keys)
    assert "nothing fits" in "".join(plain(p.rows(80, 12)))
    p.choose()
    assert not p.chosen.done(), "there was nothing to take"
    p.filter("")
    p.move(1)
    p.choose()
    assert p.chosen.result() == "b"
    p.cancel()
    assert p.chosen.result() == "b"


async def test_it_begins_where_it_is_told_and_stops_at_the_ends() -> None:
    p = picker(at="c")
    p.move(5)
    p.move(-1)
    p.choose()
    assert p.chosen.result() == "b"


async def test_what_takes_longer_to_find_is_added_when_it_is_there() -> None:
    asked: list[str] = []
    drawn = asyncio.Event()

    def search(text: str, stop: threading.Event) -> Mapping[str, str]:
        asked.append(text)
        return {"c": "…the \x1b]0;x\x07zebra is striped"} if text == "zebra" else {}

    p = Picker(Menu("Sessions", ITEMS, search=search), drawn.set)
    p.filter("ze")
    p.filter("zebra")
    assert [item.key for item in p.shown] == []
    assert "searching" in plain(p.rows(80, 12))[0]
    await asyncio.wait_for(drawn.wait(), 8 + QUIET_S)
    assert [item.key for item in p.shown] == ["c"]
    assert asked == ["zebra"], "not for every letter"
    assert "…the zebra is striped" in plain(p.rows(80, 12))[1]
    p.close()


async def test_a_search_or_a_preview_that_fails_says_so() -> None:
    drawn = asyncio.Event()

    def search(text: str, stop: threading.Event) -> Mapping[str, str]:
        if text == "cart":
            return {}
        raise OSError("the disk\x1b[2J is gone")

    def preview(key: str) -> Sequence[str]:
        raise KeyError

    p = Picker(Menu("Sessions", ITEMS, search=search, preview=preview), drawn.set)
    p.rows(80, 12)
    await asyncio.wait_for(drawn.wait(), 8)
    assert "  no preview: KeyError" in plain(p.rows(80, 12))
    drawn.clear()
    p.filter("zzz")
    await asyncio.wait_for(drawn.wait(), 8 + QUIET_S)
    shown = plain(p.rows(80, 12))
    assert "  search failed: the disk is gone" in shown
    assert not any("nothing fits" in row for row in shown)
    assert all(get_cwidth(row) < 20 for row in plain(p.rows(20, 12)))
    assert len(p.rows(80, 4)) <= 4
    p.filter("cart")
    assert not any("failed" in row for row in plain(p.rows(80, 12)))
    p.close()


@pytest.mark.parametrize("how", ["typed on", "closed"])
async def test_a_search_that_nobody_waits_for_ends(how: str) -> None:
    begun, ended = threading.Event(), threading.Event()

    def search(text: str, stop: threading.Event) -> Mapping[str, str]:
        if text == "zebra":
            begun.set()
            if stop.wait(30):
                ended.set()
        return {}

    p = Picker(Menu("Sessions", ITEMS, search=search), lambda: None)
    p.filter("zebra")
    assert await asyncio.to_thread(begun.wait, 8 + QUIET_S)
    if how == "closed":
        p.close()
    else:
        p.filter("zebras")
    assert await asyncio.to_thread(ended.wait, 8)
    p.close()


async def test_a_preview_of_what_is_marked_comes_when_it_is_there() -> None:
    drawn = asyncio.Event()
    p = Picker(Menu("Sessions", ITEMS, preview=lambda key: [f"about {key}\x1b[2J", "more"]), drawn.set)
    p.rows(80, 12)
    await asyncio.wait_for(drawn.wait(), 8)
    assert [row for row in plain(p.rows(80, 12)) if "about" in row] == ["  about a"]
    assert not any("about" in row for row in plain(p.rows(80, 6))), "a small window shows what there is to choose"
    p.close()


def test_where_no_keys_can_be_taken_rows_have_numbers() -> None:
    rows = numbered(Menu("Sessions", ITEMS), 60)
    assert rows[0].startswith("    1  fix the cart")
    assert rows[1] == "    2  rename a thing · 3d · running"
    assert all(get_cwidth(row) <= 60 for row in rows)
    many = numbered(Menu("m", [Item(str(n), str(n)) for n in range(40)]), 60)
    assert many[-1] == "       … and 25 more"


def test_a_long_notice_is_paged_through_and_wrapped_anew_at_another_width() -> None:
    notice = Notice()
    notice.say("notice", [f"line {n:03}" for n in range(30)])
    first = plain(notice.rows(80, 11))
    assert (first[0], first[9], len(first)) == ("line 000", "line 009", 11)
    assert first[-1] == "  … PgUp, PgDn: 20 lines below"
    assert notice.long
    notice.turn(1)
    assert plain(notice.rows(80, 11))[0] == "line 010"
    notice.turn(5)
    last = plain(notice.rows(80, 11))
    assert (last[9], last[-1]) == ("line 029", "  … PgUp, PgDn: 20 lines above")
    notice.turn(-1)
    assert plain(notice.rows(80, 11))[0] == "line 010"
    assert all(get_cwidth(row) < 12 for row in plain(notice.rows(12, 11)))
    notice.clear()
    notice.say("notice", ["x"])
    assert plain(notice.rows(80, 11)) == ["x"]
    assert not notice.long


async def test_keys_of_a_menu_and_what_was_typed_comes_back() -> None:
    with piped() as (keys, io):
        async with talking([], io) as (r, task):
            await until(lambda: io.pick is not None)
            assert io.pick is not None
            prompt: Prompt = io.pick.__self__  # type: ignore[attr-defined]
            picking = asyncio.ensure_future(io.pick(Menu("Which?", ITEMS)))
            await asyncio.sleep(0)
            keys.send_text("thing\r")
            assert await asyncio.wait_for(picking, 5) == "b"
            keys.send_text("half a message")
            await until(lambda: prompt.buffer.text == "half a message")
            picking = asyncio.ensure_future(io.pick(Menu("Which?", ITEMS)))
            await asyncio.sleep(0)
            keys.send_text("\x1b[B\x1b")  # down, and away
            assert await asyncio.wait_for(picking, 5) is None
            assert prompt.buffer.text == "half a message"
            keys.send_text("\x15/model\r")
            await until(lambda: prompt.picking is not None)
            keys.send_text("b\r")
            await until(lambda: r.session.state.model == "b")
            picking = asyncio.ensure_future(io.pick(Menu("Which?", ITEMS)))
            await asyncio.sleep(0)
            task.cancel()  # whoever leaves does not wait for a menu
            assert await asyncio.wait_for(picking, 5) is None
            assert ended(r) == 0


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_menu_in_a_terminal_leaves_nothing_behind(columns: int) -> None:
    with Terminal(columns, 24) as t:
        t.type("/mode\r")
        t.wait(lambda: "▸ ask" in t.page and "yolo" in t.page)
        t.type("pl")
        t.wait(lambda: "▸ plan" in t.page and "yolo" not in t.page)
        t.type("\x7f\x7f")
        t.wait(lambda: "yolo" in t.page)
        t.type("\x1b[B\x1b[B\r")
        t.wait(lambda: "— mode: plan —" in t.page and "▸" not in t.page)
        t.type("/help\r")
        t.wait(lambda: "PgUp, PgDn" in t.page)
        t.type("\x1b[6~")
        t.wait(lambda: "above" in t.page)
        t.type("\x1b")
        t.wait(lambda: "PgUp" not in t.page)
        t.look(0.15)  # so that the next key is not taken for one with Alt
        t.type("/exit\r")
        assert t.ended() == 0
        assert t.restored
        assert "▸" not in t.page
