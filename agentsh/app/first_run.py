"""The first run of a user: what of models is at hand, what is remembered so that nothing is asked twice, and words.

What is remembered lies in ~/.agentsh/first-run.json; without it, everything is as on the first day.
"""

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from agentsh.app.paths import user_home
from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line
from agentsh.log.plain import read_plain

if TYPE_CHECKING:
    from agentsh.app.settings import Choice
    from agentsh.workspace.provision import Provisioned

Answer = Literal["demo", "none"]
FILE = "first-run.json"


class Memory(NamedTuple):
    """introduced: model, workspace and mode were explained. without_a_model: what was answered; None: never asked."""

    introduced: bool = False
    without_a_model: Answer | None = None


class Provider(NamedTuple):
    """A provider whose key is in the environment. name: of the profile that is made for it."""

    name: str
    variable: str
    base_url: str


PROVIDERS = (
    Provider("openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
    Provider("anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com/v1"),
    Provider("gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"),
    Provider("mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
    Provider("deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com"),
    Provider("groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    Provider("xai", "XAI_API_KEY", "https://api.x.ai/v1"),
)
"""Whose Chat Completions are compatible, by their own documents. OPENAI_API_KEY needs no question.

Sources, read in 2026: openrouter.ai/docs/quickstart; platform.claude.com, "OpenAI SDK compatibility" (meant for
comparing models, says that page); ai.google.dev/gemini-api/docs/openai; api-docs.deepseek.com;
console.groq.com/docs/openai; docs.x.ai/api/integrations (where the Responses API is recommended by now). Mistral's
address is from what others write of it (docs.tray.ai, "Mistral AI").
"""
_MODEL = "[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}"


def found_keys(env: Mapping[str, str], profiles: Sequence[str]) -> list[Provider]:
    """Return the providers whose key is set. profiles: what is configured already, and is not offered again."""
    return [p for p in PROVIDERS if env.get(p.variable) and p.name not in profiles]


def recall(env: Mapping[str, str]) -> Memory:
    """Return what is remembered; of a file that is missing or damaged: nothing."""
    try:
        found = json.loads(read_plain(user_home(env) / FILE))
        answer = found.get("without_a_model")
        return Memory(found.get("introduced") is True, answer if answer in ("demo", "none") else None)
    except (OSError, ValueError, AttributeError, RecursionError):
        return Memory()


def remember(env: Mapping[str, str], memory: Memory) -> None:
    """Remember it. A home that cannot be written is no reason to stop."""
    from agentsh.app.private_file import replace_json

    with contextlib.suppress(UsageProblem):
        replace_json(user_home(env) / FILE, memory._asdict())


def add_profile(env: Mapping[str, str], provider: Provider, model: str) -> Path:
    """Make a provider the default in ~/.agentsh/agentsh.toml, which names no model yet; return the file.

    Raises:
        UsageProblem: the model's name is none, or the file cannot be written.
    """
    if not re.fullmatch(_MODEL, model):
        raise UsageProblem(f"{one_line(model, 60)!r} is no name of a model", hint="as the provider's list has it")
    file = user_home(env) / "agentsh.toml"
    profile = (
        f'[models.{provider.name}]\nmodel = "{model}"\nbase_url = "{provider.base_url}"\n'
        f'api_key_env = "{provider.variable}"\n'
    )
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = file.read_text(encoding="utf-8-sig") if file.exists() else ""
        text = (
            f'model = "{provider.name}"\n' + (before.rstrip("\n") + "\n" if before.strip() else "") + "\n" + profile
        )
        temporary = file.with_name(f".{file.name}.{os.getpid()}")
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as out:
            out.write(text)
        os.replace(temporary, file)
    except (OSError, ValueError) as error:
        raise UsageProblem(f"{file} cannot be written: {getattr(error, 'strerror', None) or error}") from None
    return file


def _at_home(path: str) -> str:
    """Return a path as people write it: their home is `~`."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path


def explained(
    choice: "Choice", made: "Provisioned", mode: str, sandbox: str, *, network: bool
) -> list[tuple[str, str]]:
    """Return what a new user has to know of model, workspace and mode: a word and a sentence each."""
    where = f" at {choice.host}" if choice.host else ": a script, offline; no model is called"
    origin = one_line(made.origin or "", 200)
    apart = "your files stay as they are; /diff shows what it changed, /apply brings that back"
    workspace = {
        "git": f"a clone of {origin}: {apart}",
        "copy": f"a copy of {origin}: {apart}",
        "empty": f"an empty directory of its own, {_at_home(str(made.path))}",
        "in-place": f"{origin or made.path} itself: what the agent changes is changed; /rewind goes back",
    }[made.kind]
    held = (
        "are asked about"
        if sandbox == "none"
        else f"run in a sandbox ({sandbox}), {'with' if network else 'without'} network, unasked"
    )
    meaning = {
        "auto": f"edits stay in the workspace, commands {held}",
        "ask": "you are asked before an edit and before a command that may change something",
        "plan": "it reads, and changes nothing",
        "yolo": "it never asks",
    }[mode]
    return [
        ("model", f"{one_line(choice.model, 100)}{where} (/model)"),
        ("workspace", workspace),
        ("mode", f"{mode}: {meaning} (/mode)"),
    ]
