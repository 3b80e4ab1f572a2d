"""What is secret in this process: values of its environment, the model's key, and what the settings say."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from agentsh.app.settings import Settings
from agentsh.engine.secret_shapes import harmless_name, is_value, secret_name, worth_remembering
from agentsh.engine.secrets import Secrets
from agentsh.log.plain import read_plain

FILE = "secrets.key"
"""In ~/.agentsh: makes placeholders the same in every session, and tells nothing without this file."""
KEY_BYTES = 32


def secrets_of(settings: Settings, env: Mapping[str, str], own: Path, api_key: str | None = None) -> Secrets:
    """Return what replaces secrets in a session. own: the user's ~/.agentsh. api_key: of the model in use."""
    given = settings.secrets
    secrets = Secrets(
        _named(env), key=partial(_key, own / FILE), patterns=given.patterns, allow=given.allow, on=given.redact
    )
    learn(secrets, api_key)
    return secrets


def clean_once(settings: Settings, env: Mapping[str, str], own: Path, text: str) -> str:
    """Return a text without secrets, whatever a session has seen: AGENTS.md must not look edited where it is not."""
    return secrets_of(settings, env, own).clean(text)


def learn(secrets: Secrets, api_key: str | None) -> None:
    """Have the key of a model replaced from now on; one that is a word, as tests have, is none."""
    if api_key and worth_remembering(api_key, weak=True):
        secrets.know(api_key)


def _named(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        weak = secret_name(name)
        if weak is not None and not harmless_name(name) and is_value(value) and worth_remembering(value, weak=weak):
            yield value


def _key(file: Path) -> bytes:
    """Return the key of the user, made when it is first needed; one for this process alone where that fails."""
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            _make(file)
        data = read_plain(file)
        if len(data) == KEY_BYTES:
            return data
    return os.urandom(KEY_BYTES)


def _make(file: Path) -> None:
    """Write the file whole, or find that another process was first.

    Raises:
        FileExistsError: it is there.
    """
    if file.exists():
        raise FileExistsError(file)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as opened:
            opened.write(os.urandom(KEY_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        os.link(temporary, file)
    finally:
        temporary.unlink()
