"""Chooses what holds commands, by the settings, and makes the workspace in it."""

import os
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from agentsh.app.paths import Home, user_home
from agentsh.app.settings import Settings
from agentsh.events.session import Mode
from agentsh.workspace.bounds import bounds_of, keys_in
from agentsh.workspace.git_guard import make_hooks, named
from agentsh.workspace.sandbox import Kind, choose, make
from agentsh.workspace.sandbox_port import Bounds, Limits
from agentsh.workspace.temporary import make_tmp

if TYPE_CHECKING:
    from agentsh.workspace.local import LocalWorkspace


def choice(settings: Settings) -> tuple[Kind, str | None]:
    """Return the kind of sandbox that commands will run in, and what should be said about it."""
    return choose(settings.sandbox.kind)


def choose_early(settings: Settings) -> None:
    """Begin to find out which kind works, while the rest is loaded: another process does that, and takes 20 ms."""
    Thread(target=choice, args=(settings,), name="sandbox", daemon=True).start()


def first_mode(settings: Settings, asked: str | None, *, in_place: bool = False) -> tuple[Mode, str | None]:
    """Return the mode of a new session, and what should be said. asked: by the command line."""
    kind, why = choice(settings)
    mode = asked or settings.session.mode
    if mode is None:
        mode = "ask" if kind == "none" else "auto"
        return _MODES[mode], (why if kind == "none" else unsandboxed(mode, kind, why, in_place=in_place))
    return _MODES[mode], unsandboxed(mode, kind, why, in_place=in_place)


def unsandboxed(mode: str, kind: Kind, why: str | None, *, in_place: bool) -> str | None:
    """Return what should be said of a mode that counts on a sandbox where there is none, or not enough of one."""
    if kind == "landlock" and in_place and mode == "auto":
        return "in place, Landlock does not hold hooks and configuration of git: each command is asked about"
    if kind != "none":
        return None
    if mode == "auto":
        return f"{why or 'the sandbox is off'}: each command is asked about"
    return f"{why}: commands run unsandboxed" if mode == "yolo" and why else None


_MODES: dict[str, Mode] = {"ask": "ask", "auto": "auto", "plan": "plan", "yolo": "yolo"}


def make_workspace(
    root: Path, *, session: str, in_place: bool, start: str | None, home: Home, settings: Settings
) -> "LocalWorkspace":
    """Return the workspace of a session; where a private temporary directory cannot be made, without a sandbox.

    start: see `LocalWorkspace`.
    """
    from agentsh.workspace.local import LocalWorkspace

    wanted = settings.sandbox
    limits = Limits(**wanted.limits.model_dump())
    kind, _ = choice(settings)
    try:
        tmp = None if kind == "none" else make_tmp(str(home.sessions / session))
    except OSError:
        tmp = None
    if tmp is None:
        return LocalWorkspace(root, session=session, in_place=in_place, start=start, limits=limits, watched=True)
    make_hooks(os.path.realpath(root))
    bounds = bounds_of(
        root,
        tmp=tmp,
        in_place=in_place,
        homes=[home.root, user_home(os.environ)],
        writable=wanted.writable,
        readable=wanted.readable,
        unreadable=wanted.unreadable,
        guarded=hook_files(root, settings),
        network=wanted.network,
        limits=limits,
    )
    sandbox = make(kind, bounds)
    return LocalWorkspace(
        root,
        session=session,
        in_place=in_place,
        start=start,
        sandbox=sandbox,
        limits=limits,
        tmp=tmp,
        watched=True,
        unguarded=in_place and sandbox is not None and _open(bounds, guards=sandbox.guards),
    )


def _open(bounds: Bounds, *, guards: bool) -> bool:
    """Tell whether commands can change what decides about other programs: a `.git` that is a link cannot be held."""
    link = os.path.islink(os.path.join(bounds.root, ".git"))
    return link or (not guards and any(map(os.path.lexists, bounds.guarded)))


def keys_of(root: Path, home: Home) -> frozenset[str]:
    """Return the places of a workspace, relative to it, that hold keys or sessions: reading them is asked about."""
    return keys_in(root, [home.root, user_home(os.environ)])


def guarded_files(root: Path, settings: Settings, *, in_place: bool) -> frozenset[str]:
    """Return the files of a workspace, relative to it, that programs outside of the sandbox run, but for `.git`."""
    here = os.path.realpath(root)
    git = (os.path.relpath(path, here) for path in named(here)) if in_place else ()
    return hook_files(root, settings).union(git)


def hook_files(root: Path, settings: Settings) -> frozenset[str]:
    """Return the files of hooks that are in the workspace, relative to it: they are run outside of the sandbox."""
    here, found = os.path.realpath(root), set()
    for hook in settings.hooks.values():
        for word in hook.command:
            path = os.path.realpath(word)  # a hook runs where agentsh was started
            if os.path.isfile(path) and path.startswith(here.rstrip("/") + "/"):
                found.add(os.path.relpath(path, here))
    return frozenset(found)
