"""`agentsh push`: bring sessions to where their copies are kept, and wait for it."""

import os
import sys

from agentsh.app.catalog import find, places
from agentsh.app.hosts import check_bucket_url
from agentsh.app.paths import find_homes, here
from agentsh.app.settings import load_settings
from agentsh.app.upload_state import remember_asked, remember_failure
from agentsh.app.uploading import open_bucket, pending, place_of, push, pusher, wait_for_the_end
from agentsh.base.errors import AgentshError, SessionMissing, StorageError, UsageProblem
from agentsh.base.text import plural
from agentsh.cli.guard import complain
from agentsh.cli.progress import Bar


def run(sessions: list[str], *, everything: bool, to: str | None, replace: bool) -> int:
    """Push sessions; return 0, or the exit code of the first that did not go."""
    homes = find_homes(here(), os.environ)
    if bool(sessions) == everything:
        raise UsageProblem("which session?", hint="`agentsh push ID`, or --all")
    if replace and everything:
        raise UsageProblem("--replace is for one session at a time")
    settings = load_settings(homes, os.environ)
    url, timeout_s = bucket_url(to, settings.checkpoint.upload, "--to"), settings.checkpoint.upload_timeout_s
    wanted = [p for p in places(homes.read) if p.home.trusted] if everything else [find(homes, s) for s in sessions]
    bucket, code = open_bucket(url, timeout_s, os.environ), 0
    bar, kept = Bar(f"pushing to {url}:"), settings.checkpoint.upload in (None, url)
    for place in wanted:
        try:
            done = push(place, url, pusher(place.home, bucket, bar), replace=replace, kept=kept)
        except AgentshError as error:
            bar.wipe()
            complain(error)
            code = code or error.exit_code
            if isinstance(error, StorageError) and error.exit_code == StorageError.exit_code:
                break  # the place itself does not work: the others would say the same
            continue
        bar.wipe()
        what = f"{done.sent:,} bytes sent" if done.changed or done.sent else "it was there already"
        lost = f"; {plural(done.lost, 'blob')} missing here" if done.lost else ""
        print(f"{place.id}  up to event {done.last_seq}: {what}{lost}" if done.last_seq else f"{place.id}  is empty")
    return code


def outbox(session: str, to: str | None) -> int:
    """Be the process beside a session that uploads for it; return 0. to: where. stdin: see `app.outbox`."""
    from agentsh.app.hardening import harden
    from agentsh.app.outbox import SWEEP_LIMIT, serve

    harden()
    os.nice(5)
    homes = find_homes(here(), os.environ)
    home, settings = homes.write, load_settings(homes, os.environ)
    url = bucket_url(to, settings.checkpoint.upload, "--to")
    try:
        bucket = open_bucket(url, settings.checkpoint.upload_timeout_s, os.environ)
    except AgentshError as error:
        remember_failure(home, session, url, error.message)
        raise
    mover = pusher(home, bucket)

    def ready() -> None:
        try:
            mover.ready()
        except AgentshError as error:
            remember_failure(home, session, url, error.message)
            raise
        remember_asked(home, session, url)

    def attempt(durable_seq: int) -> None:
        if not durable_seq:
            wait_for_the_end(home, session)
        place = place_of(home, session)
        if place is None:
            raise SessionMissing(f"no session {session}")
        push(place, url, mover, durable_seq=durable_seq)

    def sweep() -> None:
        others = [place for place in pending(home, url) if place.id != session]
        for place in others[:SWEEP_LIMIT]:
            push(place, url, mover)

    serve(sys.stdin.fileno(), ready, attempt, sweep)
    return 0


def bucket_url(given: str | None, configured: str | None, option: str) -> str:
    """Return the URL to use.

    Raises:
        UsageProblem: there is none, or it cannot be one.
    """
    if given is None:
        if configured is None:
            raise UsageProblem(
                f"no place for copies is configured, and {option} names none",
                hint='`[checkpoint] upload = "s3://bucket/path"` in agentsh.toml; see docs/upload.md',
            )
        return configured
    try:
        return check_bucket_url(given)
    except ValueError as error:
        hint = f"a directory: file://{_quoted(os.path.abspath(given))}" if ":" not in given else None
        raise UsageProblem(f"{option}: {error}", hint=hint) from None


def _quoted(path: str) -> str:
    """Return a path as a URL has it, as far as that cannot do without."""
    return path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
