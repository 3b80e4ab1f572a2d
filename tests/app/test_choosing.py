"""Which model is talked to: a conversation never goes to another host than before unless somebody says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentsh.app.choosing import NoModel, another, for_new, for_resume
from agentsh.app.settings import Profile, Settings, choose_model
from agentsh.base.errors import ModelKeyMissing, ModelUnavailable, UsageProblem
from agentsh.context.state import SessionState
from agentsh.testing.server import ScriptedServer, refusing

OPENAI = {"OPENAI_API_KEY": "sk-openai"}
LOCAL = Profile(base_url="http://127.0.0.1:9/v1", model="qwen")
FAR = Profile(base_url="https://far.example/v1", model="big", api_key_env="FAR_KEY")


def recorded(model: str, **request: Any) -> SessionState:
    """A session as its log tells of it."""
    whole = {"wire": "chat", "profile": None, "options": {}, **request}
    return SessionState(id="x", model=model, request=whole)


@contextmanager
def nowhere() -> Iterator[tuple[tuple[str, int], ...]]:
    """A port where nobody listens, as the only one to look at."""
    with refusing() as url:
        yield (("nobody", int(url.split(":")[2].removesuffix("/v1"))),)


async def test_a_new_session_takes_what_is_configured_without_looking_around() -> None:
    pick = await for_new(Settings(model="m"), OPENAI, None, usual=())
    assert (pick.choice.model, pick.choice.api_key, pick.note) == ("m", "sk-openai", None)
    assert (await for_new(Settings(), {}, "demo", usual=())).choice.wire == "demo"
    assert (await for_new(Settings(models={"p": LOCAL}), {}, "p", usual=())).choice.model == "qwen"


async def test_with_nothing_configured_a_local_server_is_taken_and_gets_no_key() -> None:
    with ScriptedServer(models=["llama3", "qwen3"]) as server:
        usual = (("Ollama", server.port),)
        first = await for_new(Settings(), {"FAR_KEY": "k"}, None, usual=usual)
        named = await for_new(Settings(), {}, "qwen3", usual=usual)
        with pytest.raises(ModelKeyMissing):  # nobody here has it
            await for_new(Settings(), {}, "gpt-5", usual=usual)
    assert (first.choice.model, first.choice.base_url, first.choice.api_key) == ("llama3", server.base_url, None)
    assert first.note is not None
    assert "llama3" in first.note
    assert (named.choice.model, named.choice.host) == ("qwen3", server.base_url.removesuffix("/v1"))


async def test_with_nothing_at_all_it_says_what_to_do() -> None:
    with nowhere() as usual, pytest.raises(NoModel) as caught:
        await for_new(Settings(), {}, None, usual=usual)
    assert any("--model demo" in way for way in caught.value.ways)


@pytest.mark.parametrize(
    ("profile", "hint"),
    [(Profile(), "OPENAI_API_KEY"), (FAR, "FAR_KEY"), (FAR.model_copy(update={"api_key_env": None}), "models.p")],
)
async def test_a_missing_key_is_told_with_the_variable_that_lacks(profile: Profile, hint: str) -> None:
    with pytest.raises(ModelKeyMissing) as caught:
        await for_new(Settings(models={"p": profile}), {}, "p", usual=())
    assert hint in str(caught.value)


async def test_resume_goes_where_the_session_was() -> None:
    settings, env = Settings(model="other", models={"far": FAR}), {**OPENAI, "FAR_KEY": "k"}
    pick = await for_resume(settings, env, recorded("big", profile="far", host="https://far.example"), None)
    assert (pick.choice.host, pick.choice.api_key, pick.note) == ("https://far.example", "k", None)
    pick = await for_resume(settings, env, recorded("gpt-5", host="https://api.openai.com"), None)
    assert (pick.choice.model, pick.choice.host, pick.note) == ("gpt-5", "https://api.openai.com", None)
    pick = await for_resume(settings, {}, recorded("demo", wire="demo", host=None), None)
    assert pick.choice.wire == "demo"


async def test_a_profile_that_is_gone_is_no_model_of_the_default_endpoint() -> None:
    with pytest.raises(UsageProblem) as caught:
        await for_resume(Settings(), OPENAI, recorded("qwen", profile="local", host="http://127.0.0.1:9"), None)
    assert "'local'" in str(caught.value)
    assert "--model" in str(caught.value)


@pytest.mark.parametrize(
    ("was", "settings", "env"),
    [
        # its variable is not set any more
        ("https://far.example", Settings(), OPENAI),
        # the variable leads to somebody else
        ("https://api.openai.com", Settings(), {**OPENAI, "OPENAI_BASE_URL": "https://far.example/v1"}),
        # from this machine to another one
        ("http://127.0.0.1:9", Settings(), {**OPENAI, "OPENAI_BASE_URL": "https://far.example/v1"}),
        # the same host, unencrypted
        ("https://far.example", Settings(), {**OPENAI, "OPENAI_BASE_URL": "http://far.example/v1"}),
        # a profile has taken the name of the model
        ("https://api.openai.com", Settings(models={"m": FAR}), {**OPENAI, "FAR_KEY": "k"}),
        # what was offline goes online
        (None, Settings(models={"m": FAR}), {"FAR_KEY": "k"}),
        # a host that is no host
        ("", Settings(), OPENAI),
    ],
)
async def test_another_host_is_refused(was: str | None, settings: Settings, env: dict[str, str]) -> None:
    with pytest.raises(UsageProblem) as caught:
        await for_resume(settings, env, recorded("m", host=was), None, usual=())
    assert "--model" in str(caught.value)
    assert "sk-" not in str(caught.value)


async def test_the_same_profile_at_another_host_is_refused() -> None:
    settings = Settings(models={"p": FAR.model_copy(update={"base_url": "https://else.example/v1"})})
    with pytest.raises(UsageProblem, match=r"else\.example"):
        await for_resume(settings, {"FAR_KEY": "k"}, recorded("big", profile="p", host="https://far.example"), None)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("http://127.0.0.1:9", "http://localhost:8/v1"),
        ("http://far.example:1", "http://far.example:2/v1"),
        ("http://far.example", "https://far.example/v1"),
    ],
)
async def test_another_port_of_the_same_machine_is_accepted_and_said(was: str, now: str) -> None:
    pick = await for_resume(Settings(), {**OPENAI, "OPENAI_BASE_URL": now}, recorded("m", host=was), None)
    assert pick.choice.base_url == now
    assert pick.note is not None
    assert was in pick.note


async def test_with_model_it_may_go_there_and_that_is_said() -> None:
    pick = await for_resume(Settings(), OPENAI, recorded("qwen", profile="gone", host="http://127.0.0.1:9"), "gpt-5")
    assert (pick.choice.model, pick.choice.host) == ("gpt-5", "https://api.openai.com")
    assert pick.note is not None
    assert "http://127.0.0.1:9" in pick.note
    pick = await for_resume(Settings(), OPENAI, recorded("gpt-5", host="https://api.openai.com"), "gpt-6")
    assert pick.note is None
    assert (await for_resume(Settings(), {}, recorded("m", host="http://x"), "demo")).note is None


async def test_a_log_that_knows_no_host_is_believed() -> None:
    pick = await for_resume(Settings(), OPENAI, recorded("m"), None)
    assert pick.choice.host == "https://api.openai.com"
    nothing = SessionState(id="x")  # the beginning of its log is damaged
    assert (await for_resume(Settings(model="m"), OPENAI, nothing, None)).choice.model == "m"
    with pytest.raises(NoModel) as caught:
        await for_resume(Settings(), {}, nothing, None)
    assert caught.value.ways[-1].startswith("agentsh resume x --model demo    ("), "not `agentsh new`"


@pytest.mark.parametrize("env", [{}, OPENAI])
async def test_a_session_of_a_local_server_finds_it_again_and_sends_it_no_key(env: dict[str, str]) -> None:
    with ScriptedServer(models=["llama3", "qwen3"]) as server:
        was = server.base_url.removesuffix("/v1")
        pick = await for_resume(Settings(), env, recorded("qwen3", host=was), None, usual=())
    assert (pick.choice.model, pick.choice.base_url, pick.choice.api_key) == ("qwen3", server.base_url, None)
    assert pick.note is None


async def test_it_may_have_moved_to_another_port() -> None:
    with ScriptedServer(models=["qwen3"]) as server, refusing() as gone:
        state = recorded("qwen3", host=gone.removesuffix("/v1"))
        pick = await for_resume(Settings(), {}, state, None, usual=(("vLLM", server.port),))
    assert pick.choice.base_url == server.base_url
    assert pick.note is not None


async def test_a_local_server_that_is_gone_is_not_replaced_by_a_stranger() -> None:
    with nowhere() as usual, refusing() as gone, pytest.raises(ModelUnavailable, match="does not answer"):
        await for_resume(Settings(), OPENAI, recorded("q", host=gone.removesuffix("/v1")), None, usual=usual)
    with ScriptedServer(models=["other"]) as server:
        state = recorded("q", host=server.base_url.removesuffix("/v1"))
        with pytest.raises(ModelUnavailable, match="has no q any more"):
            await for_resume(Settings(), OPENAI, state, None, usual=())


def test_another_model_of_a_server_that_was_found_stays_there() -> None:
    here = choose_model(Settings(), {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "qwen")
    settings = Settings(models={"far": FAR})
    assert another(here, settings, {}, "llama").base_url == here.base_url
    assert another(here, settings, {}, "demo").wire == "demo"
    assert another(here, settings, {"FAR_KEY": "k"}, "far").host == "https://far.example"
    assert another(here, settings, OPENAI, "gpt-5").host == "https://api.openai.com"
    with pytest.raises(ModelKeyMissing):
        another(here, settings, {}, "far")
