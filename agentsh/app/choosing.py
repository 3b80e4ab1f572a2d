"""Which model a session talks to: what the settings say, checked for its key and its host, or a server found here.

A conversation goes to another host than before only where the user says so (`--model`), or where that is the same
machine: a profile that is gone, or a variable that is not set, must not send it to a stranger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from agentsh.app.settings import Choice, Settings, choose_model, reaches_somewhere
from agentsh.base.errors import ModelKeyMissing, ModelUnavailable, UsageProblem
from agentsh.context.state import SessionState
from agentsh.models.local_servers import USUAL, LocalServer, find_local_servers
from agentsh.models.openai_errors import is_loopback

AGAIN_S = 1.0
"""How long a server is waited for that was there before; where nobody listens that is known at once."""

Ports = Sequence[tuple[str, int]]


class NoModel(UsageProblem):
    """Nothing is configured, and nothing was found. ways: what to do, a line each. demo: a command for the last."""

    def __init__(self, demo: str = "agentsh new --model demo") -> None:
        super().__init__("no model is configured. One of these:")
        ways = {
            "export OPENAI_API_KEY=…": "and OPENAI_BASE_URL, AGENTSH_MODEL for another provider",
            "start a local server": "Ollama, LM Studio, llama.cpp and vLLM are found on their usual ports",
            demo: "offline and scripted: to look around without a key",
        }
        self.ways = tuple(f"{way:{len(demo)}}    ({what})" for way, what in ways.items())


class Pick(NamedTuple):
    """A model that can be used. note: one line for the user where it is not what the words say, or None."""

    choice: Choice
    note: str | None = None


async def for_new(settings: Settings, env: Mapping[str, str], name: str | None, *, usual: Ports = USUAL) -> Pick:
    """Return the model of a new session: `name`, the configured one, or else the first of a server on this machine.

    usual: where local servers are looked for.

    Raises:
        NoModel: nothing is configured, and no server was found.
        ModelKeyMissing: its provider needs a key.
    """
    wanted = name or settings.model
    if not reaches_somewhere(env) and wanted != "demo" and wanted not in settings.models:
        servers = await find_local_servers(usual)
        server = next((s for s in servers if s.models and wanted in (None, *s.models)), None)
        if server is not None:
            model = wanted or server.models[0]
            return Pick(_at(settings, server, model), f"using {model} of {server.name} at {server.base_url}")
        if wanted is None:
            raise NoModel
    return Pick(_with_key(settings, choose_model(settings, env, wanted)))


async def for_resume(
    settings: Settings, env: Mapping[str, str], state: SessionState, name: str | None, *, usual: Ports = USUAL
) -> Pick:
    """Return the model to go on with: the one that the log names, at the host that it names, or `name`.

    Raises:
        UsageProblem: the recorded profile is gone, or the conversation would go to another host.
        ModelUnavailable: the local server of the session is not there.
        ModelKeyMissing: the provider needs a key.
    """
    recorded: Mapping[str, Any] = state.request or {}
    was = recorded.get("host")
    if name is not None:
        pick = await for_new(settings, env, name, usual=usual)
        moved = "host" in recorded and pick.choice.host not in (was, None)
        return Pick(pick.choice, _moved(pick.choice, was)) if moved and pick.note is None else pick
    profile = recorded.get("profile")
    if profile is not None and profile not in settings.models:
        raise UsageProblem(
            f"the profile {profile!r} of this session is not in the configuration",
            hint=f"put [models.{profile}] back, or go on with another: --model NAME",
        )
    model = profile or state.model or settings.model
    found_by_itself = profile is None and model not in settings.models and not env.get("OPENAI_BASE_URL")
    if found_by_itself and isinstance(was, str) and is_loopback(was):
        return await _found_again(settings, str(model), was, usual)
    if model is None and not reaches_somewhere(env):
        raise NoModel(f"agentsh resume {state.id} --model demo")
    choice = choose_model(settings, env, model)
    if "host" not in recorded or choice.host in (was, None):
        return Pick(_with_key(settings, choice))
    if not _same_machine(was, choice.host):
        raise UsageProblem(
            f"this session {_talked(was)}, and {choice.model} is at {choice.host} now",
            hint="put the configuration or OPENAI_BASE_URL back, or say that it may go there: --model NAME",
        )
    return Pick(_with_key(settings, choice), _moved(choice, was))


def another(present: Choice, settings: Settings, env: Mapping[str, str], name: str) -> Choice:
    """Return the model that `name` means within a running session. One that was found here stays here.

    Raises:
        ModelKeyMissing: its provider needs a key.
    """
    local = present.profile is None and present.host is not None and is_loopback(present.host)
    if local and not reaches_somewhere(env):
        env = {**env, "OPENAI_BASE_URL": present.base_url}
    return _with_key(settings, choose_model(settings, env, name))


async def _found_again(settings: Settings, model: str, was: str, usual: Ports) -> Pick:
    port = urlsplit(was).port or 80
    ports = [("the local server", port), *(other for other in usual if other[1] != port)]
    servers = await find_local_servers(ports, limit_s=AGAIN_S)
    server = next((s for s in servers if model in s.models), None)
    if server is None:
        there = next((s for s in servers if urlsplit(s.base_url).port == port), None)
        why = f"has no {model} any more" if there else "does not answer"
        raise ModelUnavailable(
            f"this session {_talked(was)}, which {why}",
            hint="start it, set OPENAI_BASE_URL, or go on with another model: --model NAME",
        )
    choice = _at(settings, server, model)
    return Pick(choice, None if urlsplit(server.base_url).port == port else _moved(choice, was))


def _at(settings: Settings, server: LocalServer, model: str) -> Choice:
    """Return a model of a server that was found; keys of the environment are not for it."""
    choice = choose_model(settings, {"OPENAI_BASE_URL": server.base_url}, model)
    return replace(choice, listed=server.windows.get(model))


def _with_key(settings: Settings, choice: Choice) -> Choice:
    if choice.host is None or choice.api_key is not None or is_loopback(choice.base_url):
        return choice
    profile = settings.models.get(choice.profile or "")
    hint = "set OPENAI_API_KEY, or try `--model demo`, which needs none"
    if profile is not None and profile.api_key_env is not None:
        hint = f"set {profile.api_key_env}"
    elif profile is not None and profile.base_url is not None:
        hint = f"api_key_env in [models.{choice.profile}] names the variable that holds it"
    if profile is None and settings.models:
        hint = f"the profiles are {', '.join(sorted(settings.models))}; for a model of this host {hint}"
    raise ModelKeyMissing(f"there is no key for {choice.model} at {choice.host or 'its server'}", hint=hint)


def _same_machine(was: object, now: str | None) -> bool:
    """Tell whether two hosts are one machine, perhaps at another port, and nothing goes unencrypted that did not."""
    if not isinstance(was, str) or now is None:
        return False
    if is_loopback(was) and is_loopback(now):
        return True
    old, new = urlsplit(was), urlsplit(now)
    return old.hostname == new.hostname and (old.scheme == new.scheme or new.scheme == "https")


def _talked(was: object) -> str:
    return f"talked to {was}" if was else "went to no host at all"


def _moved(choice: Choice, was: object) -> str:
    return f"{choice.model} is at {choice.host} now; this session {_talked(was)} before"
