"""Copies of sessions elsewhere: which bucket, what was brought there lately, and bringing it. See docs/upload.md."""

import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from agentsh import __version__
from agentsh.app.catalog import Place, places, with_summaries
from agentsh.app.paths import Home
from agentsh.app.wiring import BUCKETS, load
from agentsh.base.clock import timestamp
from agentsh.base.errors import AgentshError
from agentsh.log.files import RealFiles
from agentsh.log.lease import holder_of
from agentsh.log.plain import open_plain

if TYPE_CHECKING:
    from agentsh.stores.bucket import Bucket
    from agentsh.stores.pull import Puller
    from agentsh.stores.push import Pushed, Pusher

STATE = "upload.json"
"""In a session's directory: what its last push did. A cache: without it, a push compares with what is there."""
SHOWN = ("title", "created", "updated", "turns", "project", "tags")
"""Of a summary, what the manifest repeats for `pull --list`."""


class State(NamedTuple):
    """What the last push of a session did. stamp: the log that it brought, "" for none yet. problem: or why not."""

    url: str
    stamp: str
    last_seq: int
    at: str
    problem: str | None = None


def open_bucket(url: str, timeout_s: float, env: Mapping[str, str]) -> "Bucket":
    """Return the place that a checked URL names.

    Raises:
        UsageProblem: it needs a package that is not installed.
        StorageRefused: its settings cannot be.
    """
    make = load(BUCKETS[urlsplit(url).scheme])
    if url.startswith("file:"):
        bucket: Bucket = make(unquote(urlsplit(url).path))
    else:
        bucket = make(
            url, timeout_s=timeout_s, endpoint=env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
        )
    return bucket


def pusher(home: Home, bucket: "Bucket", progress: Callable[[int], None] | None = None) -> "Pusher":
    """Return what brings sessions of a home to a bucket."""
    from agentsh.stores.push import Pusher

    return Pusher(
        bucket, str(home.sessions), str(home.blobs), by=f"agentsh {__version__}", host=socket.gethostname(),
        stamp=_now, progress=progress,
    )  # fmt: skip


def puller(home: Home, bucket: "Bucket", progress: Callable[[int], None] | None = None) -> "Puller":
    """Return what brings sessions from a bucket into a home."""
    from agentsh.stores.pull import Puller

    return Puller(bucket, str(home.root), progress=progress)


def push(place: Place, url: str, by: "Pusher", *, durable_seq: int = 0, replace: bool = False) -> "Pushed":
    """Bring one session to where `by` brings them, and remember how that went. Raises as `Pusher.push`.

    durable_seq: told by the session that runs; then its title and such are not looked up anew each time.
    """
    about = None if durable_seq else _about(place)
    try:
        done = by.push(place.id, durable_seq=durable_seq, about=about, replace=replace)
    except AgentshError as error:
        remember_failure(place, url, error)
        raise
    remember(place, State(url, place.stamp, done.last_seq, _now()))
    return done


def _about(place: Place) -> dict[str, Any]:
    ((_, summary),) = with_summaries([place])
    return {name: summary[name] for name in SHOWN if summary.get(name) is not None}


def state_of(place: Place) -> State | None:
    """Return how the last push of a session went, or None where there was none, or nobody knows."""
    try:
        with open(place.home.sessions / place.id / STATE, "rb", opener=open_plain) as file:
            value = json.loads(file.read(65_536))
        return State(
            str(value["url"]), str(value["stamp"]), int(value["last_seq"]), str(value["at"]),
            None if value["problem"] is None else str(value["problem"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def problem_since(home: Home, session: str, since: str) -> str | None:
    """Return why the last push of a session failed, if it was later than the timestamp `since`."""
    place = place_of(home, session)
    state = state_of(place) if place is not None else None
    return state.problem if state is not None and state.at >= since else None


def lacking(url: str) -> str | None:
    """Return what uploads to `url` lack on this machine, as far as that is known without a look at the place."""
    if url.startswith("file:") or find_spec("obstore") is not None:
        return None
    return f"{url} needs the package obstore (`pip install 'agentsh[upload]'` brings it)"


def remember_failure(place: Place, url: str, error: AgentshError) -> None:
    """Keep that a push did not work, and why."""
    remember(place, State(url, "", 0, _now(), error.message))


def remember(place: Place, state: State) -> None:
    """Keep how a push went, where that can be."""
    path = os.path.join(place.home.sessions, place.id, STATE)
    new = f"{path}.{secrets.token_hex(4)}.new"
    with suppress(OSError):
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(state._asdict(), file)
        os.replace(new, path)


def pending(home: Home, url: str) -> Iterator[Place]:
    """Yield the sessions whose copy was begun there and may lack something, unless they are open; newest first."""
    for place in places([home]):
        state = state_of(place)
        behind = state is not None and state.url == url and (state.stamp != place.stamp or bool(state.problem))
        if behind and holder_of(RealFiles(), str(home.sessions / place.id)) is None:
            yield place


def place_of(home: Home, session: str) -> Place | None:
    """Return a session as it is now."""
    return next((place for place in places([home]) if place.id == session), None)


def _now() -> str:
    return timestamp(datetime.now(UTC))
