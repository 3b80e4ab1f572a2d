"""From settings to the parts of a session."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from agentsh.app.rooms import room_of
from agentsh.app.settings import OFFLINE, Choice, Settings
from agentsh.engine.rules import Rules, parse_rules
from agentsh.engine.step import Price, StepSettings
from agentsh.engine.turn import Limits
from agentsh.engine.upkeep import CheckpointPolicy
from agentsh.ports.hook import Hook


def rules_of(settings: Settings) -> Rules:
    """Return what is allowed, asked about and denied."""
    given = settings.permissions
    return Rules(parse_rules(given.allow), parse_rules(given.ask), parse_rules(given.deny))


def hooks_of(settings: Settings, about: Mapping[str, str]) -> list[Hook]:
    """Return the user's hooks. about: what each is told of the session."""
    if not settings.hooks:
        return []
    from agentsh.hooks.command import CommandHook

    root = os.path.realpath(about["workspace"]) if "workspace" in about else None
    return [
        CommandHook(name, tuple(_behind(w, root) for w in h.command), frozenset(h.events), h.timeout_s, about)
        for name, h in settings.hooks.items()
    ]


def _behind(word: str, root: str | None) -> str:
    """Return what a file of the workspace is a link to now, any other word as it is: a command may turn a link."""
    path = os.path.abspath(word)
    if root is None or not path.startswith(root.rstrip("/") + "/") or not os.path.isfile(path):
        return word
    real = os.path.realpath(path)
    return word if real == path else real


def limits_of(settings: Settings) -> Limits:
    """Return when a turn stops by itself."""
    return Limits(settings.session.max_steps, settings.session.max_cost_usd)


def step_settings(settings: Settings, choice: Choice, budget_tokens: int | None) -> StepSettings:
    """Return how requests to a model are made. budget_tokens: where the command names one."""
    room, price = room_of(settings, choice, budget_tokens), None
    if choice.price is not None:
        cached = choice.price.prompt if choice.price.cached is None else choice.price.cached
        price = Price(choice.price.prompt, cached, choice.price.completion)
    compacts = settings.session.compact == "auto"
    summarises = choice.wire not in OFFLINE
    return StepSettings(room.budget(), price, compacts=compacts, summarises=summarises, room=room)


def checkpoint_policy(settings: Settings) -> CheckpointPolicy:
    """Return when the folded state is saved."""
    c = settings.checkpoint
    return CheckpointPolicy(c.every_events, c.every_bytes, c.every_s, c.keep)


def packing(root: Path, kind: str | None) -> Callable[[], None]:
    """Begin to make a clone independent of its origin, where it is not yet; return what stops that."""
    if kind != "git":
        return lambda: None
    from agentsh.workspace.git_history import HistoryPacker

    packer = HistoryPacker(root)
    packer.start()
    return packer.close


def project_name(cwd: Path) -> str | None:
    """Return the name of the git repository around `cwd`, else of `cwd` itself; a tag for people, never a key."""
    root = next((p for p in (cwd, *cwd.parents) if (p / ".git").exists()), cwd)
    return _main_worktree(root).name or None


def _main_worktree(root: Path) -> Path:
    """Return the main working tree of a repository, where `root` is a linked one: they are one project."""
    with suppress(OSError, UnicodeDecodeError):
        said = (root / ".git").read_text(encoding="utf-8")  # a directory where it is the main one
        inner = (root / said.removeprefix("gitdir:").strip()).resolve()
        if inner.parent.name == "worktrees" and inner.parent.parent.name == ".git":
            return inner.parent.parent.parent
    return root
