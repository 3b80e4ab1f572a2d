"""`agentsh rm` and `agentsh restore`: to the trash, with everything that belongs to a session, and back."""

from agentsh.app.lifecycle import remove, unexported
from agentsh.app.lifecycle import restore as take_back
from agentsh.base.errors import SessionMissing
from agentsh.base.text import clean, plural, short_path
from agentsh.cli.writable import agreed, find_writable, trusted_homes

MAX_NAMED = 5


def rm(sessions: list[str], *, yes: bool, now: bool = False) -> int:
    """Move sessions to the trash; return 0, or 1 where the user said no. now: remove them for good."""
    code = 0
    for text in sessions:
        place = find_writable(text)
        if now:
            if not yes and not agreed(f"Remove {place.id}, its log and its workspace, for good?"):
                print("Nothing was changed.")
                code = 1
                continue
            remove(place, now=True)
            print(f"{place.id} is removed; long texts that only it named go with a later `agentsh gc`")
            continue
        if not yes and (found := unexported(place)) is not None:
            source, files = found
            count = "a lot of files" if files is None else plural(len(files), "file")
            where = "that are nowhere else" if source == "nothing" else f"that {source} does not have like that"
            print(clean(f"The workspace of {place.id} holds {count} {where}:"))
            for name in (files or [])[:MAX_NAMED]:
                print(f"  {short_path(name)}")
            if files is not None and len(files) > MAX_NAMED:
                print(f"  … and {len(files) - MAX_NAMED:,} more")
            if not agreed("Move it to the trash with them?"):
                print("Nothing was changed.")
                code = 1
                continue
        where = remove(place)
        print(f"{place.id} is in {place.home.root / where}; `agentsh restore {place.id}` takes it back")
    return code


def restore(session: str) -> int:
    """Take a session back from the trash; return 0."""
    problem: SessionMissing | None = None
    for home in trusted_homes():
        try:
            found = take_back(home, session)
        except SessionMissing as error:
            problem = problem or error
            continue
        print(f"{found.session} is back, {'with' if found.has_workspace else 'without'} a workspace of its own")
        return 0
    raise problem or SessionMissing(f"no session {session!r} in the trash")
