"""Sessions that are copied elsewhere: homes on this machine that stand for machines."""

import asyncio
import itertools
import os
from pathlib import Path

from agentsh.app.uploading import open_bucket
from agentsh.log.record import Draft
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.bucket import Bucket
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.pull import Puller
from agentsh.stores.push import Pusher

SESSION = "20261129-k3v9qd"
TS = "2026-11-29T16:20:01.123456Z"
_CLOCK = itertools.count(1)


def bucket_of(url: str) -> Bucket:
    return open_bucket(url, 20.0, os.environ)


class Machine:
    """A home, with one session in it. segment_bytes: small, so that a log has several segments."""

    def __init__(self, root: Path, url: str, *, segment_bytes: int = 64 << 20) -> None:
        self.root = root
        self.url = url
        self.segment_bytes = segment_bytes
        self.directory = root / "sessions" / SESSION

    @property
    def store(self) -> JsonlStore:
        return JsonlStore(
            self.root / "sessions", FileBlobs(self.root / "blobs"), segment_bytes=self.segment_bytes
        )  # fmt: skip

    def begin(self) -> None:
        asyncio.run(self._begin())

    async def _begin(self) -> None:
        await (await self.store.create(SESSION, by=str(self.root))).close()

    def write(self, *texts: str, turns: int = 1) -> None:
        """Append a note for each text, and end a turn, several times."""
        asyncio.run(self._write(texts, turns))

    async def _write(self, texts: tuple[str, ...], turns: int) -> None:
        opened = await self.store.open(SESSION)
        for _ in range(turns):
            now = f"2026-11-29T16:{next(_CLOCK) // 60 % 60:02}:{next(_CLOCK) % 60:02}.{next(_CLOCK):06}Z"
            await opened.log.append([Draft("note", now, {"text": text}) for text in texts])
            await opened.log.wait_durable(opened.log.last_seq)
            await opened.log.turn_ended()
        await opened.log.close()

    def texts(self) -> list[str]:
        return [str(record.payload["text"]) for record in self.store.read(SESSION)]

    def lines(self) -> list[bytes]:
        return [record.raw for record in self.store.read(SESSION)]

    def pusher(self, bucket: Bucket | None = None) -> Pusher:
        return Pusher(
            bucket or bucket_of(self.url), str(self.root / "sessions"), str(self.root / "blobs"), by="agentsh test",
            host=self.root.name, stamp=lambda: TS,
        )  # fmt: skip

    def puller(self) -> Puller:
        return Puller(bucket_of(self.url), str(self.root))


def long_text(n: int, size: int = 60_000) -> str:
    """Return a text that has to live in a blob, another for each n."""
    return f"{n} {'words that fill a line ' * (size // 23)}"
