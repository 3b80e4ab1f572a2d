"""Configuration: agentsh.toml of the user and of the home, the environment, the command line; checked once.

Only files of trusted homes get here (see paths). Later sources win: ~/.agentsh/agentsh.toml, HOME/agentsh.toml,
AGENTSH_MODEL and OPENAI_* variables, then the options of the command.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from agentsh.app.hosts import check_bucket_url, host_of
from agentsh.app.paths import Homes, user_home
from agentsh.app.programs import rooted
from agentsh.app.toolset import Editing, preferred
from agentsh.app.width import read_aloud
from agentsh.app.wiring import WIRES
from agentsh.base.errors import UsageProblem
from agentsh.base.light import dataclass, field
from agentsh.base.typed import Misfit, Value, above, at_least, at_most, below
from agentsh.context.marks import BYTES_PER_TOKEN, HIGH_WATER, LEAST_ITEM_BYTES, LOW_WATER
from agentsh.context.room import LEAST_BUDGET
from agentsh.log.plain import read_plain
from agentsh.log.reserve import MIN_FREE_BYTES
from agentsh.log.roll import SEGMENT_BYTES
from agentsh.models.windows import takes_images
from agentsh.ports.window import Window

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-5"
OFFLINE = frozenset({"demo"})
"""Wires that send the conversation nowhere."""


def _wire(name: str) -> str:
    if name not in WIRES:
        raise ValueError(f"there is no wire {name!r}, only {', '.join(WIRES)}")
    return name


RESERVED = frozenset({"model", "messages", "tools", "stream", "stream_options", "api_key", "authorization"})


def _json(options: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(options, allow_nan=False)
    except (ValueError, TypeError):
        raise ValueError("it holds something that JSON has no form for, such as nan or a date") from None
    if taken := RESERVED & set(options):
        raise ValueError(f"{min(taken)!r} is not an option: agentsh sets it, or it must not get into the log")
    return options


def _pattern(pattern: str) -> str:
    try:
        found = re.compile(pattern).match("")
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    if found is not None:
        raise ValueError(f"{pattern!r} is found in an empty text, so everything would be secret")
    return pattern


class _Section(Value, unknown="refuse"):
    """A table of the file."""


class PriceSettings(_Section):
    """US dollars per million tokens."""

    prompt: Annotated[float, at_least(0)]
    cached: Annotated[float, at_least(0)] | None = None
    completion: Annotated[float, at_least(0)]


class Profile(_Section):
    """A way to reach a model. model: what the provider calls it, where that is not the profile's name.

    wire: a name in the table of wires. api_key_env: the variable that holds the key. context_window: tokens.
    reserve_tokens: kept free for the reply. options: members of the request. edit: the tool for edits that it is
    offered; None for what suits the model. images: whether it is shown images; None for what is known of it.
    merge_user_messages: for servers that refuse two in a row.
    """

    wire: Annotated[str, _wire] = "chat"
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    context_window: Annotated[int, at_least(1000)] | None = None
    reserve_tokens: Annotated[int, at_least(0)] | None = None
    timeout_s: Annotated[float, above(0)] = 120.0
    options: Annotated[Mapping[str, Any], _json] = {}
    price: PriceSettings | None = None
    edit: Editing | None = None
    images: bool | None = None
    merge_user_messages: bool = False


class SessionSettings(_Section):
    """What new sessions start with. mode: None for `auto` where a sandbox works, else `ask`.

    compact: `auto` compacts a conversation that has grown long; `off` cuts it instead, and leaves that to /compact.
    """

    mode: Literal["ask", "auto", "plan", "yolo"] | None = None
    max_steps: Annotated[int, at_least(1)] = 200
    max_cost_usd: Annotated[float, above(0)] | None = None
    compact: Literal["auto", "off"] = "auto"


class ContextSettings(_Section):
    """How much of a model's window requests take; what impossible combinations are, `context.room` says.

    budget_tokens: for a whole request, where that is less than the window leaves. reserve_tokens: kept free for the
    reply. item_tokens: cap of one item. high_water, low_water: shares of the budget: when it is taken back, to what.
    """

    budget_tokens: Annotated[int, at_least(LEAST_BUDGET)] | None = None
    reserve_tokens: Annotated[int, at_least(0)] | None = None
    item_tokens: Annotated[int, at_least(LEAST_ITEM_BYTES // BYTES_PER_TOKEN)] | None = None
    high_water: Annotated[float, above(0), at_most(1)] = HIGH_WATER
    low_water: Annotated[float, above(0), below(1)] = LOW_WATER


class LogSettings(_Section):
    """durability: `ack` syncs what was acknowledged, `always` every event, `none` nothing (tests).

    segment_bytes: from this length on the open segment is closed at a turn's end, and sealed. min_free_bytes: with
    less than that on the disk no tool with effects is started; 0 leaves it to the disk to refuse.
    """

    durability: Literal["ack", "always", "none"] = "ack"
    segment_bytes: Annotated[int, at_least(64 << 10)] = SEGMENT_BYTES
    min_free_bytes: Annotated[int, at_least(0)] = MIN_FREE_BYTES


class SecretSettings(_Section):
    """What is replaced by a placeholder before it is written, shown or sent; see docs/secrets.md.

    patterns: regular expressions of more that is secret: the first group, or all of it. allow: values that are not.
    """

    redact: bool = True
    patterns: Sequence[Annotated[str, _pattern]] = ()
    allow: Sequence[str] = ()


class UiSettings(_Section):
    """notify: ring and send a message when somebody who has looked away is wanted. title: name the window.

    screen_reader: talk line by line, draw nothing over; AGENTSH_SCREEN_READER=1 says the same.
    theme: `auto` asks the terminal what it writes on; `plain` is without colours. keys: for editing the input.
    history: what is typed is kept for later sessions.
    """

    notify: bool = True
    title: bool = True
    screen_reader: bool = False
    theme: Literal["auto", "light", "dark", "plain"] = "auto"
    keys: Literal["emacs", "vi"] = "emacs"
    history: bool = True


class CheckpointSettings(_Section):
    """When the folded state is saved, at the end of a turn: whichever comes first. keep: how many stay.

    upload: where copies of the sessions go, see docs/upload.md. upload_timeout_s: for one request.
    """

    every_events: Annotated[int, at_least(1)] = 1_000
    every_bytes: Annotated[int, at_least(1)] = 8 << 20
    every_s: Annotated[float, above(0)] = 300.0
    keep: Annotated[int, at_least(1), at_most(100)] = 3
    upload: Annotated[str, check_bucket_url] | None = None
    upload_timeout_s: Annotated[float, above(0), at_most(3600)] = 60.0


def _words(command: Sequence[str]) -> Sequence[str]:
    if not command:
        raise ValueError("it is empty")
    return command


class HookSettings(_Section):
    """A command of the user's that judges or annotates calls of tools, or is told what happens to the session."""

    command: Annotated[Sequence[str], _words]
    events: Sequence[Literal["before_tool", "after_tool", "session_opened", "turn_finished", "session_closed"]] = (
        "before_tool",
    )
    timeout_s: Annotated[float, above(0)] = 10.0


def _rules(texts: Sequence[str]) -> Sequence[str]:
    from agentsh.engine.rules import parse_rule

    for text in texts:
        parse_rule(text)
    return texts


class PermissionSettings(_Section):
    """Rules about calls, each `tool`, `tool(path)` or `shell(command)`; deny goes before ask, ask before allow."""

    allow: Annotated[Sequence[str], _rules] = ()
    ask: Annotated[Sequence[str], _rules] = ()
    deny: Annotated[Sequence[str], _rules] = ()


class ToolSettings(_Section):
    """web: offer `web_fetch`; a rule that allows it does so too. web_private: hosts at private addresses that it may
    reach, as they stand in a URL (`localhost:8000`)."""

    web: bool = False
    web_private: Sequence[str] = ()


class LimitSettings(_Section):
    """What one command may use; 0 is no limit. See `workspace.sandbox_port.Limits`."""

    cpu_s: Annotated[int, at_least(0)] = 3_600
    memory_mb: Annotated[int, at_least(0)] = 8_192
    file_mb: Annotated[int, at_least(0)] = 4_096
    processes: Annotated[int, at_least(0)] = 1_024


class SandboxSettings(_Section):
    """What commands may reach. writable, readable, unreadable: further paths; `~` is the user's home."""

    kind: Literal["auto", "bwrap", "landlock", "seatbelt", "none"] = "auto"
    network: bool = False
    writable: Sequence[str] = ()
    readable: Sequence[str] = ()
    unreadable: Sequence[str] = ()
    limits: LimitSettings = LimitSettings()


class Settings(_Section):
    """The whole of agentsh.toml. model: a profile or a model's name."""

    model: str | None = None
    session: SessionSettings = SessionSettings()
    context: ContextSettings = ContextSettings()
    log: LogSettings = LogSettings()
    ui: UiSettings = UiSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    permissions: PermissionSettings = PermissionSettings()
    secrets: SecretSettings = SecretSettings()
    sandbox: SandboxSettings = SandboxSettings()
    tools: ToolSettings = ToolSettings()
    models: Mapping[str, Profile] = {}
    hooks: Mapping[str, HookSettings] = {}


def load_settings(homes: Homes, env: Mapping[str, str]) -> Settings:
    """Return the settings in force.

    Raises:
        UsageProblem: a file is no TOML, or names something unknown or impossible; it says which and where.
    """
    merged: dict[str, Any] = {}
    for _, values in layers(homes, env):
        merged = _merge(merged, values)
    return _check(merged, _files(homes, env))


def layers(homes: Homes, env: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Return what each source says, by its name, the last to win last. Nothing in it is checked.

    Raises:
        UsageProblem: a file is no TOML.
    """
    found = [(str(file), rooted(_read(file), file.parent)) for file in _files(homes, env)]
    if env.get("AGENTSH_MODEL"):
        found.append(("AGENTSH_MODEL", {"model": env["AGENTSH_MODEL"]}))
    if "AGENTSH_SCREEN_READER" in env:
        found.append(("AGENTSH_SCREEN_READER", {"ui": {"screen_reader": read_aloud(env)}}))
    return found


def _files(homes: Homes, env: Mapping[str, str]) -> list[Path]:
    return list(dict.fromkeys([user_home(env) / "agentsh.toml", homes.write.config]))


def _read(file: Path) -> dict[str, Any]:
    try:
        text = read_plain(file).decode("utf-8-sig")
        import tomllib

        return tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageProblem(f"{file} cannot be read: {why}", hint="mend or move the file") from None


def _check(merged: dict[str, Any], files: list[Path]) -> Settings:
    try:
        return Settings.model_validate(merged)
    except Misfit as misfit:
        names = " or ".join(str(file) for file in files if file.exists())
        raise UsageProblem(str(misfit), hint=f"see {names}") from None


def _merge(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    result = dict(low)
    for key, value in high.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _merge(result[key], value) if both else value
    return result


@dataclass(frozen=True, slots=True)
class Choice:
    """A model that was chosen: what the log records of it, and how to reach it.

    listed: its window, as the server that was just found says. editing: the tool for edits that it is offered.
    """

    model: str
    profile: str | None
    wire: str
    base_url: str
    api_key: str | None = field(repr=False)
    timeout_s: float
    options: Mapping[str, Any]
    context_window: int | None
    price: PriceSettings | None
    reserve_tokens: int | None = None
    listed: Window | None = None
    editing: Editing = "apply_patch"
    images: bool = False
    merge_user_messages: bool = False
    item_bytes: int | None = None

    @property
    def host(self) -> str | None:
        """Where requests go, without path, user or key; None where they go nowhere (the demo)."""
        return None if self.wire in OFFLINE else host_of(self.base_url)

    def request(self) -> dict[str, Any]:
        """Return what environment_changed and model_changed record: how requests are made, and where they go."""
        more = {name: v for name in ("images", "merge_user_messages", "item_bytes") if (v := getattr(self, name))}
        return {"wire": self.wire, "profile": self.profile, "options": self.options, "host": self.host, **more}


def choose_model(settings: Settings, env: Mapping[str, str], name: str | None) -> Choice:
    """Return the model that `name` means: a profile, `demo`, or a model of the default endpoint.

    name: from the command line, or from the log on resume; None takes the configured one.

    Raises:
        UsageProblem: nothing is configured.
    """
    name = name or settings.model
    if name is None and not reaches_somewhere(env):
        raise UsageProblem("no model is configured", hint="see `agentsh new --help`")
    name = name or DEFAULT_MODEL
    profile = settings.models.get(name)
    if profile is None:
        profile = Profile(wire="demo" if name == "demo" else "chat")
        label = None
    else:
        label = name
    key_env = profile.api_key_env or "OPENAI_API_KEY"
    # A key of OpenAI's must not go to another host that a profile names, unless the profile says so.
    foreign = profile.base_url is not None and profile.api_key_env is None
    return Choice(
        model=profile.model or name,
        profile=label,
        wire=profile.wire,
        base_url=profile.base_url or env.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL,
        api_key=None if foreign else env.get(key_env) or None,
        timeout_s=profile.timeout_s,
        options=profile.options,
        context_window=profile.context_window,
        reserve_tokens=profile.reserve_tokens,
        price=profile.price,
        editing=profile.edit or preferred(profile.wire, profile.model or name),
        images=takes_images(profile.model or name) if profile.images is None else profile.images,
        merge_user_messages=profile.merge_user_messages,
        item_bytes=(settings.context.item_tokens or 0) * BYTES_PER_TOKEN or None,
    )


def reaches_somewhere(env: Mapping[str, str]) -> bool:
    """Tell whether the environment says where the default endpoint is, or has its key."""
    return bool(env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL"))
