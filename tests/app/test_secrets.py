"""What is known to be secret when a session begins, and the key of the placeholders."""

import stat
from pathlib import Path

import pytest

from agentsh.app.secrets import FILE, KEY_BYTES, secrets_of
from agentsh.app.settings import SecretSettings, Settings

VALUE = "deploy-7Qz91xVm4"


def test_values_of_the_environment_are_known_by_their_names(tmp_path: Path) -> None:
    env = {
        "DEPLOY_TOKEN": VALUE,
        "PGPASSWORD": "only-by-a-part-of-its-name-1",
        "DB_PASSWORD": "swordfish-9",
        "POSTGRES_PASSWORD": "postgres",  # a word that everybody uses
        "GPG_KEY": "E3FF2839C048B25C084DEBE9B26995E310250568",  # of a public key
        "TLS_KEY": "/etc/tls/server-1.key",
        "API_KEY": "$OTHER_VARIABLE_12",
        "PATH": "/usr/bin:/bin:/opt/a1b2c3d4e5f6",
    }
    secrets = secrets_of(Settings(), env, tmp_path)
    for name, value in env.items():
        assert (value not in secrets.clean(f"it is {value} here")) == (name in ("DEPLOY_TOKEN", "DB_PASSWORD")), name


def test_the_key_of_the_model_is_known(tmp_path: Path) -> None:
    assert VALUE not in secrets_of(Settings(), {}, tmp_path, VALUE).clean(f"it is {VALUE}")
    assert secrets_of(Settings(), {}, tmp_path, "sk-test").clean("sk-test") == "sk-test"


def test_the_key_file_is_made_once_for_all_processes(tmp_path: Path) -> None:
    own = tmp_path / "own"
    text = f"TOKEN={VALUE}"
    first = secrets_of(Settings(), {}, own)
    assert not own.exists(), "nothing is made before there is a secret"
    placeholder = first.clean(text)
    assert len((own / FILE).read_bytes()) == KEY_BYTES
    assert stat.S_IMODE((own / FILE).stat().st_mode) == 0o600
    assert [path.name for path in own.iterdir()] == [FILE]
    assert secrets_of(Settings(), {}, own).clean(text) == placeholder
    assert secrets_of(Settings(), {}, tmp_path / "other").clean(text) != placeholder


@pytest.mark.parametrize("data", [b"", b"short", b"x" * 33])
def test_a_key_that_cannot_be_used_or_kept_stops_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    assert VALUE not in secrets_of(Settings(), {}, tmp_path).clean(f"TOKEN={VALUE}")
    assert (tmp_path / FILE).read_bytes() == data
    (tmp_path / "file").write_text("x")
    assert VALUE not in secrets_of(Settings(), {}, tmp_path / "file" / "own").clean(f"TOKEN={VALUE}")


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    settings = Settings(secrets=SecretSettings(redact=False))
    assert secrets_of(settings, {"DEPLOY_TOKEN": VALUE}, tmp_path).clean(f"TOKEN={VALUE}") == f"TOKEN={VALUE}"
