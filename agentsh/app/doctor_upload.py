"""What `doctor` looks at where copies of sessions are kept elsewhere: the package, the place, what is behind."""

from collections.abc import Iterator, Mapping

from agentsh.app.catalog import places
from agentsh.app.doctor import Line, fail, ok, warn
from agentsh.app.paths import Home, Homes
from agentsh.app.settings import load_settings
from agentsh.app.upload_state import State, state_of
from agentsh.app.uploading import open_bucket, pending
from agentsh.base.errors import AgentshError
from agentsh.base.text import plural
from agentsh.stores.manifest import MARKER_KEY
from agentsh.stores.pull import INCOMING

PROBE_S = 5.0
MAX_NAMED = 5


def uploads(homes: Homes, env: Mapping[str, str]) -> Iterator[Line]:
    """Look at the uploads of the home that is written to."""
    try:
        settings = load_settings(homes, env)
    except AgentshError:  # told where the models are looked at
        return
    url, home = settings.checkpoint.upload, homes.write
    if url is None:
        yield ok("upload", "not configured")
        return
    try:
        states = [(place.id, state_of(home, place.id)) for place in places([home])]
    except AgentshError:  # told where the home is looked at
        return
    failed = [(session, state) for session, state in states if state is not None and _failed(state, url)]
    reached = list(_reached(url, min(settings.checkpoint.upload_timeout_s, PROBE_S), env))
    # That it can be asked is no good news where what was brought there was refused.
    yield from (line for line in reached if line.state != "ok" or not failed)
    for session, state in failed[:MAX_NAMED]:
        yield warn("upload", f"{session}: {state.problem}", f"`agentsh push {session}`")
    behind = sum(1 for _ in pending(home, url))
    if behind > len(failed):
        text = f"{plural(behind - len(failed), 'session')} went on since the last upload"
        yield ok("upload", f"{text}; the next session brings it up, or `agentsh push --all`")
    never = sum(1 for _, state in states if state is None or state.url != url)
    if never:
        yield ok("upload", f"{plural(never, 'session')} of before never came there; `agentsh push --all` brings them")
    yield from _unfinished(home)


def _failed(state: State, url: str) -> bool:
    return state.url == url and state.problem is not None


def _reached(url: str, timeout_s: float, env: Mapping[str, str]) -> Iterator[Line]:
    try:
        bucket = open_bucket(url, timeout_s, env)
        bucket.ready()
        there = bucket.read(MARKER_KEY) is not None  # not `head`: only this tells a bucket that is not there
    except AgentshError as error:
        yield fail("upload", error.message, error.hint or "see docs/upload.md")
        return
    yield ok("upload", f"{url} answers{'' if there else '; nothing was brought there yet'}")


def _unfinished(home: Home) -> Iterator[Line]:
    place = home.root / INCOMING
    names = sorted(p.name for p in place.iterdir() if p.is_dir()) if place.is_dir() else []
    if names:
        what = ", ".join(names[:MAX_NAMED])
        yield warn("pull", f"{what}: not finished", f"`agentsh pull {names[0]}` goes on, or rm -r {place}")
