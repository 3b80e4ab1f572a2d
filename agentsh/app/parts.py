"""From settings to the parts of a session."""

from collections.abc import Mapping
from pathlib import Path

from agentsh.app.rooms import room_of
from agentsh.app.settings import OFFLINE, Choice, Settings
from agentsh.engine.rules import Rules, parse_rules
from agentsh.engine.step import Price, StepSettings
from agentsh.engine.turn import Limits
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

    return [
        CommandHook(name, tuple(h.command), frozenset(h.events), h.timeout_s, about)
        for name, h in settings.hooks.items()
    ]


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


def project_name(cwd: Path) -> str | None:
    """Return the name of the git repository around `cwd`, else of `cwd` itself; a tag for people, never a key."""
    root = next((p for p in (cwd, *cwd.parents) if (p / ".git").exists()), cwd)
    return root.name or None
