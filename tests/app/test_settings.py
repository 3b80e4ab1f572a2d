"""agentsh.toml of the user and of the home, the environment: merged in that order, checked, told in one line."""

import asyncio
from pathlib import Path

import pytest

from agentsh.app.hosts import host_of
from agentsh.app.paths import Home, Homes
from agentsh.app.settings import Settings, choose_model, load_settings
from agentsh.app.stores import event_store
from agentsh.app.wiring import WIRES
from agentsh.base.errors import UsageProblem
from agentsh.testing.store_contract import note
from tests.app.rig import a_home, an_id


class User:
    """Somebody with a directory of their own and a project with a home."""

    def __init__(self, place: Path) -> None:
        self.env = {"HOME": str(place)}
        self.own = place / ".agentsh" / "agentsh.toml"
        self.own.parent.mkdir()
        home = a_home(place / "project")
        self.config = home.config
        self.homes = Homes((home,), home)

    def load(self, **env: str) -> Settings:
        return load_settings(self.homes, {**self.env, **env})


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_nothing_configured_is_fine(user: User) -> None:
    user.config.unlink()
    assert user.load() == Settings()


def test_later_sources_win_member_by_member(user: User) -> None:
    user.own.write_text(
        "model = 'own'\n[session]\nmode = 'plan'\nmax_steps = 7\n[models.a]\nmodel = 'x'\ntimeout_s = 5"
    )
    user.config.write_text("model = 'home'\n[session]\nmode = 'yolo'\n[models.a]\nmodel = 'y'\n[models.b]")
    settings = user.load()
    assert settings.model == "home"
    assert (settings.session.mode, settings.session.max_steps) == ("yolo", 7)
    assert (settings.models["a"].model, settings.models["a"].timeout_s) == ("y", 5)
    assert list(settings.models) == ["a", "b"]
    assert user.load(AGENTSH_MODEL="env").model == "env"
    assert user.load(AGENTSH_MODEL="").model == "home"
    env = {"OPENAI_API_KEY": "k"}
    assert choose_model(user.load(AGENTSH_MODEL="env"), env, "option").model == "option"
    assert choose_model(user.load(AGENTSH_MODEL="env"), env, None).model == "env"


def test_only_the_home_that_is_written_to_is_obeyed(user: User, tmp_path: Path) -> None:
    user.config.write_text("model = 'theirs'")
    own = Home(user.own.parent, True)
    assert load_settings(Homes((Home(tmp_path / "project", False), own), own), user.env).model is None


def test_a_byte_order_mark_is_read(user: User) -> None:
    user.config.write_bytes(b"\xef\xbb\xbfmodel = 'a'\r\n")
    assert user.load().model == "a"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mood = 1", "mood"),
        ("[session]\nsteps = 1", "session.steps"),
        ("modle = 'x'", "modle: there is no such setting; did you mean model?"),
        ("[session]\nmax_step = 1", "session.max_step: there is no such setting; did you mean max_steps?"),
        ("[session]\nmode = 'wild'", "session.mode"),
        ("[session]\nmax_steps = 0", "session.max_steps"),
        ("[session]\nmax_steps = 'many'", "session.max_steps"),
        ("[session]\nmax_cost_usd = -1", "session.max_cost_usd"),
        ("session = 3", "session"),
        ("[models.a]\nwire = 'smoke'", "models.a.wire: there is no wire 'smoke', only chat"),
        ("[models.a]\nprice = { prompt = -1, completion = 1 }", "models.a.price.prompt"),
        ("[models.a]\noptions = { temperature = nan }", "models.a.options: it holds something that JSON"),
        ("[models.a]\noptions = { since = 2026-11-29 }", "models.a.options: it holds something that JSON"),
        ("[hooks.a]\ncommand = []", "hooks.a.command"),
        ("[log]\ndurability = 'some'", "log.durability"),
        ("model = ", "agentsh.toml cannot be read"),
        ("a = " + "[" * 5_000, "agentsh.toml cannot be read"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_file(user: User, text: str, words: str) -> None:
    user.config.write_text(text)
    with pytest.raises(UsageProblem) as caught:
        user.load()
    assert words in str(caught.value)
    assert str(user.config) in str(caught.value)


def test_a_file_that_is_no_text_or_no_file(user: User) -> None:
    user.config.write_bytes(b"model = '\xff'")
    with pytest.raises(UsageProblem, match="cannot be read"):
        user.load()
    user.config.unlink()
    user.config.mkdir()
    with pytest.raises(UsageProblem, match="a directory, not a file"):
        user.load()


def test_every_wire_of_the_table_can_be_named(user: User) -> None:
    user.config.write_text("".join(f"[models.{wire}]\nwire = '{wire}'\n" for wire in WIRES))
    assert [profile.wire for profile in user.load().models.values()] == list(WIRES)


KEYS = {"OPENAI_API_KEY": "sk-openai", "MY_KEY": "sk-mine"}


@pytest.mark.parametrize(
    ("profile", "url", "key"),
    [
        ("", "https://api.openai.com/v1", "sk-openai"),
        ("base_url = 'https://other.example/v1'", "https://other.example/v1", None),
        ("base_url = 'https://other.example/v1'\napi_key_env = 'MY_KEY'", "https://other.example/v1", "sk-mine"),
        ("base_url = 'https://other.example/v1'\napi_key_env = 'NONE'", "https://other.example/v1", None),
        ("api_key_env = 'MY_KEY'", "https://api.openai.com/v1", "sk-mine"),
    ],
)
def test_a_key_goes_to_its_own_host_only(user: User, profile: str, url: str, key: str | None) -> None:
    user.config.write_text(f"[models.p]\n{profile}")
    choice = choose_model(user.load(), KEYS, "p")
    assert (choice.base_url, choice.api_key) == (url, key)
    assert "sk-" not in repr(choice)
    assert "sk-" not in repr(choice.request())


def test_the_default_endpoint_is_the_one_of_the_environment(user: User) -> None:
    env = {**KEYS, "OPENAI_BASE_URL": "http://localhost:9/v1"}
    choice = choose_model(user.load(), env, "m")
    assert (choice.base_url, choice.api_key) == ("http://localhost:9/v1", "sk-openai")
    assert choose_model(user.load(), {}, "demo").request() == {
        "wire": "demo", "profile": None, "options": {}, "host": None,
    }  # fmt: skip
    with pytest.raises(UsageProblem, match="no model"):
        choose_model(user.load(), {}, None)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com"),
        ("https://API.openai.com:443/v1/", "https://api.openai.com"),
        ("http://ana:secret@gpu-box:8000/secret/v1?key=secret#secret", "http://gpu-box:8000"),
        ("http://[::1]:80/v1", "http://[::1]"),
        (" http://[::1]:11434/v1", "http://[::1]:11434"),
        ("http://host:99999/v1", ""),
        ("http://host:x/v1", ""),
        ("http://[::1/v1", ""),
        ("nonsense", ""),
        ("", ""),
    ],
)
def test_a_host_is_scheme_host_and_port_and_no_secret(url: str, host: str) -> None:
    assert host_of(url) == host


def test_the_log_settings_reach_the_store(user: User) -> None:
    user.config.write_text("[log]\ndurability = 'none'\nsegment_bytes = 70000\nmin_free_bytes = 0")
    log = user.load().log
    assert log.model_dump() == {"durability": "none", "segment_bytes": 70_000, "min_free_bytes": 0}
    store = event_store(user.homes.write, log)

    async def two_turns() -> list[str]:
        opened = await store.create(an_id(1), by="t")
        for _ in range(2):
            await opened.append([note("x" * 20_000) for _ in range(4)])
            await opened.turn_ended()
        await opened.close()
        return sorted(p.name for p in (user.homes.write.sessions / an_id(1)).iterdir())

    assert [n[:6] for n in asyncio.run(two_turns())] == ["000000", "000001", "events", "lock"]


@pytest.mark.parametrize("line", ["segment_bytes = 10", "segment_bytes = 'a'", "min_free_bytes = -1"])
def test_log_settings_that_cannot_be(user: User, line: str) -> None:
    user.config.write_text(f"[log]\n{line}")
    with pytest.raises(UsageProblem, match=r"log\.(segment|min_free)_bytes"):
        user.load()


@pytest.mark.parametrize(("pattern", "why"), [("(", "no regular expression"), ("x*", "empty text")])
def test_a_pattern_of_secrets_has_to_find_something(user: User, pattern: str, why: str) -> None:
    user.config.write_text(f"[secrets]\npatterns = ['{pattern}']")
    with pytest.raises(UsageProblem, match=why):
        user.load()


def test_a_hook_with_a_slash_is_a_path_from_the_file_that_names_it(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (user.own.parent, user.config.parent):
        (place / "hooks").mkdir()
        (place / "hooks" / "x").write_text("#!/bin/sh")
    user.own.write_text(
        '[hooks.mine]\ncommand = ["./hooks/x", "./hooks/x", "../none", "v"]\n[hooks.gone]\ncommand = ["hooks/gone"]\n'
    )
    user.config.write_text('[hooks.theirs]\ncommand = ["hooks/x"]\n[hooks.plain]\ncommand = ["jq", "."]\n')
    monkeypatch.chdir(user.config.parent)
    found = {name: hook.command for name, hook in user.load().hooks.items()}
    own, theirs = user.own.parent / "hooks", user.config.parent / "hooks"
    assert found == {
        "mine": (str(own / "x"), str(own / "x"), "../none", "v"),
        "gone": (str(own / "gone"),),
        "theirs": (str(theirs / "x"),),
        "plain": ("jq", "."),
    }
