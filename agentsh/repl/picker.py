"""One choice among many, below the scrollback: type to filter, arrows, Enter, Esc. Never takes the whole screen."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from agentsh.base.text import clean, one_line
from agentsh.repl.rows import cut

QUIET_S = 0.15
"""Typing has to rest for this long before a text is searched for in more than what is shown."""
PREVIEW_ROWS, FEW_PREVIEW_ROWS = 5, 3
ROOM_FOR_ALL = 18
MIN_ROOM_FOR_PREVIEW = 10
LEAST_LABEL = 24
"""Columns that a label keeps before notes beside it are left out."""
KEYS = "type to filter · ↑ ↓ · Enter · Esc"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to choose. key: what choosing it gives. notes: shown beside the label, the last go first where it
    gets narrow. words: what else is looked for in, beside label and notes."""

    key: str
    label: str
    notes: tuple[str, ...] = ()
    words: str = ""


Search = Callable[[str, threading.Event], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Menu:
    """What there is to choose from. at: the key to begin with.

    preview: lines about an item, by its key. search: further keys for a text, each with where it was found; it is to
    end soon once the event is set: nobody waits for it any more. Both may block, and run on a thread.
    """

    title: str
    items: Sequence[Item]
    at: str = ""
    preview: Callable[[str], Sequence[str]] | None = None
    search: Search | None = None


class Picker:
    """One menu while it is open. chosen: the key, or None where it was left. changed: is told to draw it again."""

    def __init__(self, menu: Menu, changed: Callable[[], None]) -> None:
        self.chosen: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.shown: list[Item] = list(menu.items)
        self._menu = menu
        self._changed = changed
        self._haystack = [_haystack(item) for item in menu.items]
        self._at = next((n for n, item in enumerate(menu.items) if item.key == menu.at), 0)
        self._typed = ""
        self._page = 1
        self._found: Mapping[str, str] = {}
        self._failed = ""
        self._previews: dict[str, Sequence[str]] = {}
        self._searching: asyncio.Task[None] | None = None
        self._previewing: asyncio.Task[None] | None = None

    def filter(self, typed: str) -> None:
        """Show what holds each of the words that are typed; then look where that takes longer."""
        typed = typed.strip()
        if typed == self._typed:
            return
        self._typed, self._found, self._failed = typed, {}, ""
        self._narrow()
        if self._searching is not None:
            self._searching.cancel()
            self._searching = None
        if typed and self._menu.search is not None:
            self._searching = asyncio.create_task(self._search(typed, self._menu.search))

    def move(self, by: int) -> None:
        """Go to another row; it stops at the ends."""
        self._at = max(min(self._at + by, len(self.shown) - 1), 0)

    def page(self, by: int) -> None:
        """Go a page up or down."""
        self.move(by * self._page)

    def choose(self) -> None:
        """Take the row that is marked; nothing where there is none."""
        if self.shown:
            self._end(self.shown[self._at].key)

    def cancel(self) -> None:
        """Leave without a choice. Idempotent."""
        self._end(None)

    def rows(self, columns: int, room: int) -> list[StyleAndTextTuples]:
        """Return it as it is shown: a head, the rows around the marked one, and what is known of that."""
        most = 0 if self._menu.preview is None or room < MIN_ROOM_FOR_PREVIEW else FEW_PREVIEW_ROWS
        most = PREVIEW_ROWS if most and room >= ROOM_FOR_ALL else most
        preview = self._preview(most) if most else []
        kept = most and 1 + most
        page = self._page = max(room - 1 - kept - bool(self._failed), 1)
        first = max(min(self._at - page // 2, len(self.shown) - page), 0)
        some = self.shown[first : first + page]
        total, here = len(self._menu.items), len(self.shown)
        count = f"{here:,}" if here == total else f"{here:,} of {total:,}"
        waits = " · searching …" if self._searching is not None else ""
        head = cut(f"{self._menu.title} · {count}{waits}", columns - 1)
        rows: list[StyleAndTextTuples] = [[("class:name", head)]]
        rows += self._items(some, columns, self._at - first)
        if self._failed:
            rows.append([("class:alarm", cut(f"  search failed: {self._failed}", columns - 1))])
        elif not some:
            rows.append([("class:dim", "  nothing fits")])
        if preview:
            rows.append([])
            rows += [[("class:dim", cut("  " + line, columns - 1))] for line in preview]
        return rows

    def close(self) -> None:
        """End what goes on in the background."""
        for task in (self._searching, self._previewing):
            if task is not None:
                task.cancel()

    def _items(self, some: Sequence[Item], columns: int, marked: int) -> list[StyleAndTextTuples]:
        """Return a row for each: the label, and behind the longest of the page the notes, in a column."""
        room = columns - 3
        labels = [one_line(item.label, 500) for item in some]
        longest = max(map(get_cwidth, labels), default=0)
        least = min(longest, LEAST_LABEL)
        notes = [self._note(item, max(room - 2 - least, 0)) for item in some]
        width = min(longest, room - 2 - max(map(get_cwidth, notes), default=0))
        rows: list[StyleAndTextTuples] = []
        for n, (label, note) in enumerate(zip(labels, notes, strict=True)):
            shown = cut(label, width if note else room)
            gap = " " * (width - get_cwidth(shown) + 2) if note else ""
            mark, style = (("class:mark", "▸ "), "class:name") if n == marked else (("", "  "), "")
            rows.append([mark, (style, shown), ("class:dim", gap + note)])
        return rows

    def _note(self, item: Item, room: int) -> str:
        if where := self._found.get(item.key):
            return cut(one_line(where, 200), room)
        notes = [one_line(note, 60) for note in item.notes]
        while len(notes) > 1 and get_cwidth(" · ".join(notes)) > room:
            notes.pop()
        return cut(" · ".join(notes), room)

    def _narrow(self) -> None:
        words = self._typed.casefold().split()
        fits = [n for n, text in enumerate(self._haystack) if all(word in text for word in words)]
        here = {self._menu.items[n].key for n in fits}
        more = [item for item in self._menu.items if item.key in self._found and item.key not in here]
        self.shown = [self._menu.items[n] for n in fits] + more
        self._at = 0

    async def _search(self, typed: str, search: Search) -> None:
        await asyncio.sleep(QUIET_S)
        found: Mapping[str, str] = {}
        stop = threading.Event()
        try:
            found = await asyncio.to_thread(search, typed, stop)
        except Exception as error:  # noqa: BLE001 - what was found by name stays: a search is a comfort
            self._failed = said(error)
        finally:
            stop.set()  # the thread of one that is cancelled goes on until it looks
        marked = self.shown[self._at].key if self.shown else ""
        self._found, self._searching = found, None
        self._narrow()
        self._at = next((n for n, item in enumerate(self.shown) if item.key == marked), 0)
        self._changed()

    def _preview(self, most: int) -> Sequence[str]:
        look = self._menu.preview
        if look is None or not self.shown:
            return ()
        key = self.shown[self._at].key
        if key not in self._previews and self._previewing is None:
            self._previewing = asyncio.create_task(self._look(key, look))
        return [one_line(line, 500) for line in self._previews.get(key, ())[:most]]

    async def _look(self, key: str, look: Callable[[str], Sequence[str]]) -> None:
        lines: Sequence[str] = ()
        try:
            lines = await asyncio.to_thread(look, key)
        except Exception as error:  # noqa: BLE001 - without it everything still works
            lines = [f"no preview: {said(error)}"]
        self._previews[key], self._previewing = lines, None
        self._changed()

    def _end(self, key: str | None) -> None:
        if not self.chosen.done():
            self.chosen.set_result(key)


def said(error: Exception) -> str:
    """Return an error on one line; of one that says nothing its name."""
    return one_line(str(error), 200) or type(error).__name__


def numbered(menu: Menu, columns: int, most: int = 15) -> list[str]:
    """Return a menu as plain rows with numbers, for where no keys can be taken."""
    rows = []
    for number, item in enumerate(menu.items[:most], 1):
        notes = " · ".join(one_line(note, 60) for note in item.notes)
        rows.append(cut(f"  {number:>3}  {one_line(item.label, 200)}" + (f" · {notes}" if notes else ""), columns))
    if len(menu.items) > most:
        rows.append(f"       … and {len(menu.items) - most:,} more")
    return rows


def _haystack(item: Item) -> str:
    return clean(" ".join((item.label, *item.notes, item.words))).casefold()
