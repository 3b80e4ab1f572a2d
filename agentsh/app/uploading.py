"""Copies of sessions elsewhere: which bucket, what was brought there lately, and bringing it. See docs/upload.md."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from agentsh import __version__
from agentsh.app.catalog import Place, places, with_summaries
from agentsh.app.hosts import is_address
from agentsh.app.paths import Home
from agentsh.app.upload_state import State, now, remember, remember_failure, state_of
from agentsh.app.wiring import BUCKETS, load
from agentsh.base.errors import AgentshError, StorageRefused
from agentsh.log.files import RealFiles
from agentsh.log.lease import holder_of

if TYPE_CHECKING:
    from agentsh.stores.bucket import Bucket
    from agentsh.stores.pull import Puller
    from agentsh.stores.push import Pushed, Pusher

ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""Where the client looks for another server than the service's own; one on loopback needs no encryption."""
ANSWER_WAIT_S = 0.2
ANSWER_STEP_S = 0.01
"""At the end of a session whose copier has not answered once; more would be felt, and the next command tells too."""
END_WAIT_S = 5.0
END_STEP_S = 0.05
HEADERS = (
    "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_TOKEN", "GOOGLE_BEARER_TOKEN",
)  # fmt: skip
"""What becomes part of a header as it is: obstore panics where it cannot, as it does where an address is none."""
SHOWN = ("title", "created", "updated", "turns", "project", "tags")
"""Of a summary, what the manifest repeats for `pull --list`."""


def open_bucket(url: str, timeout_s: float, env: Mapping[str, str]) -> "Bucket":
    """Return the place that a checked URL names.

    Raises:
        UsageProblem: it needs a package that is not installed.
        StorageRefused: its settings cannot be.
    """
    scheme = urlsplit(url).scheme
    make = load(BUCKETS[scheme])
    if scheme == "file":
        bucket: Bucket = make(unquote(urlsplit(url).path))
    else:
        _check_environment(url, scheme, env)
        endpoint = next((env[name] for name in ENDPOINTS[scheme] if env.get(name)), None)
        bucket = make(url, timeout_s=timeout_s, endpoint=endpoint)
    return bucket


def _check_environment(url: str, scheme: str, env: Mapping[str, str]) -> None:
    for name in HEADERS:
        if any(ord(c) < 32 or ord(c) == 127 for c in env.get(name, "")):
            raise StorageRefused(f"{url}: {name} holds a control character", hint="a line end behind it?")
    for name in ENDPOINTS[scheme]:
        if name in env and not is_address(env[name]):
            raise StorageRefused(f"{url}: {name} is not the address of a server", hint="such as https://host:9000")


def pusher(home: Home, bucket: "Bucket", progress: Callable[[int], None] | None = None) -> "Pusher":
    """Return what brings sessions of a home to a bucket."""
    from agentsh.stores.push import Pusher

    return Pusher(
        bucket, str(home.sessions), str(home.blobs), by=f"agentsh {__version__}", host=socket.gethostname(),
        stamp=now, progress=progress,
    )  # fmt: skip


def puller(home: Home, bucket: "Bucket", progress: Callable[[int], None] | None = None) -> "Puller":
    """Return what brings sessions from a bucket into a home."""
    from agentsh.stores.pull import Puller

    return Puller(bucket, str(home.root), progress=progress)


def push(
    place: Place, url: str, by: "Pusher", *, durable_seq: int = 0, replace: bool = False, kept: bool = True
) -> "Pushed":
    """Bring one session to where `by` brings them, and remember how that went. Raises as `Pusher.push`.

    durable_seq: told by the session that runs; then its title and such are not looked up anew each time. kept: it is
    where its copies go; else nothing is remembered, and it is still behind there.
    """
    about = None if durable_seq else _about(place)
    is_open = _is_open(place.home, place.id)
    try:
        done = by.push(place.id, durable_seq=durable_seq, about=about, replace=replace)
    except AgentshError as error:
        if kept:
            remember_failure(place.home, place.id, url, error.message)
        raise
    if kept:
        at = now()
        stamp = "" if is_open else place.stamp  # of a session that is open only what is durable was brought
        remember(place.home, place.id, State(url, stamp, done.last_seq, at, asked=at))
    return done


def pulled(home: Home, session: str, url: str, last_seq: int) -> None:
    """Remember that a session here is what is there: nobody has to bring it up."""
    place = place_of(home, session)
    if place is not None:
        at = now()
        remember(home, session, State(url, place.stamp, last_seq, at, asked=at))


def _about(place: Place) -> dict[str, Any]:
    ((_, summary),) = with_summaries([place])
    return {name: summary[name] for name in SHOWN if summary.get(name) is not None}


def _is_open(home: Home, session: str) -> bool:
    return holder_of(RealFiles(), str(home.sessions / session)) is not None


def wait_for_the_end(home: Home, session: str) -> None:
    """Wait until nobody has a session open, for END_WAIT_S at most: then all that is in its log counts.

    A process that is killed gives its pipe back before its lock, on a busy machine long before.
    """
    for _ in range(int(END_WAIT_S / END_STEP_S)):
        if not _is_open(home, session):
            return
        time.sleep(END_STEP_S)


async def trouble(home: Home, session: str, url: str, since: str) -> str | None:
    """Return why the copy of a session that has just ended is behind, or None where that is not known.

    since: when the session was opened. Waits for ANSWER_WAIT_S at most, and only where nothing was heard since then.
    """
    if (lacks := lacking(url)) is not None:
        return lacks
    for _ in range(int(ANSWER_WAIT_S / ANSWER_STEP_S)):
        state = state_of(home, session)
        if state is None or state.url != url or state.answered(since):
            break
        await asyncio.sleep(ANSWER_STEP_S)
    state = state_of(home, session)
    return state.problem if state is not None and state.url == url else None


def lacking(url: str) -> str | None:
    """Return what uploads to `url` lack on this machine, as far as that is known without a look at the place."""
    if url.startswith("file:") or find_spec("obstore") is not None:
        return None
    return f"{url} needs the package obstore (`pip install 'agentsh[upload]'` brings it)"


def pending(home: Home, url: str) -> Iterator[Place]:
    """Yield the sessions whose copy was begun there and may lack something, unless they are open; newest first."""
    for place in places([home]):
        state = state_of(home, place.id)
        behind = state is not None and state.url == url and (state.stamp != place.stamp or bool(state.problem))
        if behind and not _is_open(home, place.id):
            yield place


def place_of(home: Home, session: str) -> Place | None:
    """Return a session as it is now."""
    return next((place for place in places([home]) if place.id == session), None)
