"""What every store must pass that can fork: mix `ForkContract` into a subclass of `StoreContract`."""

# ruff: noqa: D102 - the names of the tests are the promises

import pytest

from agentsh.base.errors import SessionExists, SessionHeld, SessionMissing, UsageProblem
from agentsh.log.store import EventStore
from agentsh.testing.store_contract import BY, OTHER, SESSION, StoreContract, note, texts


class ForkContract(StoreContract):
    """The promises of `EventStore.fork`, beside all others."""

    async def test_a_fork_has_the_past_and_a_future_of_its_own(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        records = await log.append([note(str(n)) for n in range(1, 6)])
        child = await store.fork(SESSION, OTHER, upto_seq=3, by=BY)
        assert (child.session, child.last_seq, child.durable_seq) == (OTHER, 3, 3)
        (mine,) = await child.append([note("the child's")])
        assert mine.seq == 4
        await log.append([note("the parent's")])
        assert texts(store.read(OTHER)) == ["1", "2", "3", "the child's"]
        assert list(store.read(OTHER))[:3] == records[:3]
        assert texts(store.read(OTHER, after_seq=2)) == ["3", "the child's"]
        assert texts(store.read(SESSION)) == ["1", "2", "3", "4", "5", "the parent's"]
        assert list(store.damages(OTHER)) == []
        assert set(store.sessions()) == {SESSION, OTHER}
        await child.close()
        await log.close()
        opened = await self.again(store).open(OTHER)
        assert texts(opened.records) == ["1", "2", "3", "the child's"]
        assert not opened.recovery
        await opened.log.append([note("more")])
        await opened.log.close()
        again = self.again(store)
        grandchild = await again.fork(OTHER, "20261129-k3v9qf", by=BY)
        assert grandchild.last_seq == 5
        assert texts(again.read("20261129-k3v9qf")) == ["1", "2", "3", "the child's", "more"]
        await grandchild.close()
        early = await again.fork(OTHER, "20261129-k3v9qg", upto_seq=1, by=BY)
        await early.append([note("early")])
        assert texts(again.read("20261129-k3v9qg")) == ["1", "early"]
        await early.close()

    async def test_a_fork_keeps_each_lease_apart(self, store: EventStore) -> None:
        log = await store.create(SESSION, by=BY)
        await log.append([note()])
        child = await store.fork(SESSION, OTHER, by=BY)
        with pytest.raises(SessionHeld):
            await self.again(store).open(OTHER)
        await child.close()
        assert store.holder(OTHER) is None
        assert store.holder(SESSION) is not None
        await log.append([note("still the parent's writer")])
        await log.close()
        assert store.holder(SESSION) is None

    async def test_a_fork_of_what_is_not_there(self, store: EventStore) -> None:
        with pytest.raises(SessionMissing):
            await store.fork(SESSION, OTHER, by=BY)
        log = await store.create(SESSION, by=BY)
        with pytest.raises(UsageProblem):
            await store.fork(SESSION, OTHER, by=BY)
        await log.append([note()])
        for seq in (0, -1, 2, 10**9):
            with pytest.raises(UsageProblem):
                await store.fork(SESSION, OTHER, upto_seq=seq, by=BY)
        assert store.sessions() == [SESSION]
        with pytest.raises(SessionExists):
            await store.fork(SESSION, SESSION, by=BY)
        await log.close()
