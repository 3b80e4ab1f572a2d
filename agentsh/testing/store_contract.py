"""What every place for logs and blobs must pass: subclass, give a fixture `store` or `blobs`, run pytest.

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path): return MyStore(tmp_path)
"""

# ruff: noqa: D102 - the names of the tests are the promises

import asyncio
import gc
from collections.abc import Iterable
from typing import Any

import pytest

from agentsh.base.errors import LogWriteFailed, SessionExists, SessionHeld, SessionMissing
from agentsh.log.record import Draft, Record
from agentsh.log.spill import MAX_LINE_BYTES
from agentsh.log.store import BlobStore, EventStore, Folded

SESSION = "20261129-k3v9qd"
OTHER = "20261129-k3v9qe"
BY = "contract 1"
TS = "2026-11-29T16:20:01.123456Z"

TRICKY = {
    "nul": "a\0b",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x85\x9f",
    "separators": "\u2028\u2029\x85\x1c\x1d\x1e",
    "bidi": "\u202e\u2066\u2069\u200f\u061c",
    "bom": "\ufeff",
    "lone high": "x\ud800y",
    "lone low": "\udfff",
    "two lows": "\udc00\udc00",
    "emoji": "😀🇩🇪👩\u200d👩\u200d👧",
    "scripts": "修复失败的测试 ميزة שלום ไทย Ünï",
    "quotes": '"\\/\b\f\n\r\t',
    "crc": ',"crc":"00000000"}\n',
    "record": '{"seq":1,"ts":"x"}\n',
    "empty": "",
    "newlines": "\r\n\n\r",
}
"""Texts that have broken logs elsewhere (field reports A6 to A9, A30, A36)."""


def note(text: str = "hello", *, kind: str = "note", cause: int | None = None, **more: Any) -> Draft:
    """Return a draft to append."""
    return Draft(kind, TS, {"text": text, **more}, cause)


def texts(records: Iterable[Record]) -> list[str]:
    """Return the texts of records made by `note`."""
    return [record.payload["text"] for record in records]


class StoreContract:
    """The promises of `EventStore` and `OpenLog`."""

    @pytest.fixture
    def store(self) -> EventStore:
        """Return a fresh, empty store; a subclass must."""
        raise NotImplementedError

    def again(self, store: EventStore) -> EventStore:
        """Return the store as another process would find it; a subclass whose logs outlive the object should."""
        return store

    async def test_a_new_log_is_empty(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        assert (log.session, log.last_seq, log.durable_seq) == (SESSION, 0, 0)
        assert list(store.read(SESSION)) == []
        assert list(store.damages(SESSION)) == []
        await log.close()
        opened = await store.open(SESSION)
        assert list(opened.records) == []
        assert not opened.recovery
        await opened.log.close()

    async def test_records_come_back_as_they_were_returned(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        one = await log.append([note("one"), note("two", cause=1)])
        two = await log.append([note("three")])
        assert [r.seq for r in one + two] == [1, 2, 3]
        assert [r.cause for r in one + two] == [None, 1, None]
        assert log.last_seq == 3
        assert list(store.read(SESSION)) == one + two
        await log.close()
        opened = await self.again(store).open(SESSION)
        assert list(opened.records) == one + two
        assert len(opened.records) == 3
        assert opened.records[-1] == two[0]
        assert opened.log.last_seq == 3
        await opened.log.close()

    async def test_seq_goes_on_without_a_gap(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        for n in range(5):
            await log.append([note(str(n))] * (n + 1))
            await log.close()
            log = (await self.again(store).open(SESSION)).log
        assert [r.seq for r in store.read(SESSION)] == list(range(1, 16))
        await log.close()

    async def test_read_beyond_a_seq(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note(str(n)) for n in range(1, 11)])
        for after in (0, 1, 9, 10, 11, 10**12):
            assert texts(store.read(SESSION, after_seq=after)) == [str(n) for n in range(after + 1, 11)]
        await log.close()

    async def test_an_append_of_nothing(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        assert await log.append([]) == []
        assert log.last_seq == 0
        await log.close()

    async def test_appends_keep_the_order_of_the_calls(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        tasks = [asyncio.ensure_future(log.append([note(f"{n}a"), note(f"{n}b")])) for n in range(20)]
        records = [record for batch in await asyncio.gather(*tasks) for record in batch]
        assert [r.seq for r in records] == list(range(1, 41))
        assert texts(store.read(SESSION)) == [f"{n}{x}" for n in range(20) for x in "ab"]
        await log.close()

    async def test_a_batch_is_all_or_nothing(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note("kept")])
        with pytest.raises((ValueError, TypeError)):
            await log.append([note("fine"), note("bad", number=float("nan")), note("fine")])
        assert log.last_seq == 1
        assert texts(store.read(SESSION)) == ["kept"]
        await log.append([note("after")])
        assert texts(store.read(SESSION)) == ["kept", "after"]
        await log.close()

    @pytest.mark.parametrize("name", TRICKY)
    async def test_tricky_text_comes_back_exactly(self, store: EventStore, name: str) -> None:
        text = TRICKY[name]
        log = await store.create(SESSION, by=BY)
        (record,) = await log.append([Draft("note", TS, {"text": text, text: [text, {"deep": text}]})])
        assert record.payload == {"text": text, text: [text, {"deep": text}]}
        assert list(store.read(SESSION)) == [record]
        assert len(record.raw.splitlines()) == 1
        assert len(record.raw.decode().splitlines()) == 1
        assert record.raw.endswith(b"\n")
        await log.close()
        assert list(self.again(store).read(SESSION)) == [record]

    async def test_numbers_and_nulls_come_back_exactly(self, store: EventStore) -> None:
        payload = {
            "text": "",
            "n": 2**63,
            "minus": -1,
            "f": 0.1,
            "big": 1e300,
            "null": None,
            "yes": True,
            "l": [],
            "d": {},
        }
        log = await store.create(SESSION, by=BY)
        await log.append([Draft("note", TS, payload)])
        (record,) = store.read(SESSION)
        assert record.payload == payload
        assert list(record.payload) == list(payload)
        await log.close()

    async def test_a_type_that_nobody_knows_is_kept(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([Draft("from_the_future", TS, {"x": {"y": [1, 2]}})])
        await log.close()
        opened = await self.again(store).open(SESSION)
        assert [(r.type, r.payload) for r in opened.records] == [("from_the_future", {"x": {"y": [1, 2]}})]
        await opened.log.close()

    @pytest.mark.parametrize("size", [24_000, 30_000, 1_000_000])
    async def test_no_line_is_longer_than_its_limit(self, store: EventStore, size: int) -> None:
        log = await store.create(SESSION, by=BY)
        (record,) = await log.append([note("é" * size, short="s")])
        assert len(record.raw) <= MAX_LINE_BYTES
        reference = record.payload["text"]
        assert (reference["bytes"], record.payload["short"]) == (2 * size, "s")
        assert self.blobs_of(store).get(reference["blob"]).decode() == "é" * size
        assert list(store.read(SESSION)) == [record]
        await log.close()

    def blobs_of(self, store: EventStore) -> BlobStore:
        """Return the blobs that the store spills into."""
        blobs: BlobStore = store.blobs  # type: ignore[attr-defined]  # every store of ours has them
        return blobs

    async def test_what_has_no_form_as_a_line_is_refused(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        many = {f"member {n}": n for n in range(5000)}
        with pytest.raises(LogWriteFailed):
            await log.append([note("fine"), Draft("note", TS, many)])
        assert log.last_seq == 0
        await log.close()

    async def test_durable_means_no_less_than_asked(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        records = await log.append([note(str(n)) for n in range(3)])
        await log.wait_durable(2)
        if store.capabilities.durable:
            assert 2 <= log.durable_seq <= 3
        await log.wait_durable(3)
        (after,) = await log.append([note("after")])
        assert all(r.dur < r.seq for r in [*records, after])
        if store.capabilities.durable:
            assert after.dur == 3
        await log.close()

    async def test_a_checkpoint_stands_for_the_records_before_it(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        assert await log.checkpoint(b"nothing yet", reducer="r", keep=3) is None
        await log.append([note(str(n)) for n in range(5)])
        saved = log.checkpoint(b"five\0\n\xff", reducer="r", keep=3)
        await log.append([note("6"), note("7")])  # while it is being written
        assert await saved
        await log.close()
        opened = await self.again(store).open(SESSION, reducer="r")
        assert opened.folded == Folded(5, b"five\0\n\xff")
        assert ([r.seq for r in opened.records], opened.log.last_seq) == ([6, 7], 7)
        assert await opened.log.checkpoint(b"seven", reducer="r", keep=3)
        await opened.log.close()
        for reducer, folded in (("r", Folded(7, b"seven")), ("of another version", None), (None, None)):
            opened = await self.again(store).open(SESSION, reducer=reducer)
            assert opened.folded == folded
            assert len(opened.records) == (0 if folded else 7)
            assert list(await opened.log.verify_skipped()) == []
            await opened.log.close()

    async def test_a_checkpoint_of_a_log_that_is_closed(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note("one")])
        saved = asyncio.ensure_future(log.checkpoint(b"one", reducer="r", keep=3))
        await log.close()
        await saved  # written or not, but nothing fails
        opened = await self.again(store).open(SESSION, reducer="r")
        assert opened.folded in (None, Folded(1, b"one"))
        await opened.log.close()

    async def test_the_newest_records_come_first(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        assert list(store.newest(SESSION)) == []
        records = await log.append([note(str(n)) for n in range(50)])
        assert list(store.newest(SESSION)) == records[::-1]
        back = store.newest(SESSION)
        assert [next(back).seq, next(back).seq] == [50, 49]
        del back
        gc.collect()
        await log.close()
        assert list(self.again(store).newest(SESSION)) == records[::-1]
        with pytest.raises(SessionMissing):
            list(store.newest(OTHER))

    async def test_a_cancelled_append_is_whole_or_absent(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        for n in range(30):
            task = asyncio.ensure_future(log.append([note(f"{n}a"), note(f"{n}b"), note(f"{n}c")]))
            for _ in range(n % 4):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await log.append([note("end")])
        found = texts(store.read(SESSION))
        assert found[-1] == "end"
        whole = [found[at : at + 3] for at in range(0, len(found) - 1, 3)]
        assert whole == [[f"{batch[0][:-1]}{x}" for x in "abc"] for batch in whole]
        assert [r.seq for r in store.read(SESSION)] == list(range(1, len(found) + 1))
        await log.close()

    async def test_a_cancelled_wait_leaves_the_log_working(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note("one")])
        task = asyncio.ensure_future(log.wait_durable(1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await log.wait_durable(1)
        await log.append([note("two")])
        await log.close()
        assert texts(store.read(SESSION)) == ["one", "two"]

    async def test_sessions_do_not_touch_each_other(self, store: EventStore) -> None:
        one, two = await store.create(SESSION, by=BY), await store.create(OTHER, by=BY)
        await asyncio.gather(*(log.append([note(f"{log.session} {n}")]) for n in range(10) for log in (one, two)))
        for session in (SESSION, OTHER):
            assert texts(store.read(session)) == [f"{session} {n}" for n in range(10)]
        assert sorted(store.sessions()) == [SESSION, OTHER]
        await one.close()
        await two.close()

    async def test_a_session_is_created_once(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note("mine")])
        with pytest.raises(SessionExists):
            await store.create(SESSION, by=BY)
        await log.close()
        with pytest.raises(SessionExists):
            await self.again(store).create(SESSION, by=BY)
        assert texts(store.read(SESSION)) == ["mine"]

    async def test_a_missing_session_is_never_made(self, store: EventStore) -> None:
        with pytest.raises(SessionMissing):
            await store.open(SESSION)
        with pytest.raises(SessionMissing):
            list(store.read(SESSION))
        with pytest.raises(SessionMissing):
            store.damages(SESSION)
        assert store.sessions() == []
        log = await store.create(SESSION, by=BY)
        await log.close()

    async def test_one_writer_at_a_time(self, store: EventStore) -> None:
        assert store.sessions() == []
        log = await store.create(SESSION, by=BY)
        holder = store.holder(SESSION)
        assert holder is not None
        assert holder.pid > 0
        for other in (store, self.again(store)):
            with pytest.raises(SessionHeld) as refused:
                await other.open(SESSION)
            assert str(holder.pid) in refused.value.holder
        await log.append([note("still mine")])
        await log.close()
        assert store.holder(SESSION) is None
        opened = await self.again(store).open(SESSION)
        assert texts(opened.records) == ["still mine"]
        await opened.log.close()

    async def test_asking_who_holds_it_never_takes_it(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.close()
        for _ in range(20):
            assert store.holder(SESSION) is None
            opened = await store.open(SESSION)
            assert store.holder(SESSION) is not None
            await opened.log.close()

    async def test_close_is_idempotent_and_final(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note("one")])
        await log.close()
        await log.close()
        with pytest.raises(LogWriteFailed):
            await log.append([note("late")])
        opened = await store.open(SESSION)
        await log.close()  # must not give back what is not its own any more
        with pytest.raises(SessionHeld):
            await store.open(SESSION)
        assert texts(opened.records) == ["one"]
        await opened.log.close()

    async def test_reading_while_it_is_written(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        seen = []
        for n in range(20):
            await log.append([note(str(n)), note(str(n))])
            seen.append(len(list(store.read(SESSION))))
        assert seen == list(range(2, 42, 2))
        assert list(store.damages(SESSION)) == []
        await log.close()

    async def test_a_reader_that_stops_early(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note(str(n)) for n in range(10)])
        reader = store.read(SESSION)
        assert next(reader).seq == 1
        del reader
        gc.collect()
        await log.close()
