"""What a bug report needs, without what was said: one zip of plain text, made to be looked into before it is sent."""

import getpass
import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from agentsh import __version__
from agentsh.app.checkup import checkup
from agentsh.app.explaining import explained
from agentsh.app.exporting import write_new
from agentsh.app.paths import Home, Homes, user_home
from agentsh.app.stores import event_store
from agentsh.app.wiring import TOOLS
from agentsh.log.record import Record

KEPT = frozenset({
    "type", "status", "finish", "mode", "kind", "by", "made", "verdict", "decision", "sandbox",
    "estimator", "version", "wire", "media_type", "source", "effects",
})  # fmt: skip
"""Members whose texts are words of agentsh's own, or of formats; every other text is replaced by its length."""
_WORD = re.compile(r"[\w.:/ +-]{0,60}")
_MEMBER = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\")]+", re.IGNORECASE)
README = """\
What agentsh needs to look into a problem, without what was said in the session.

about.json     version, Python, system
doctor.txt     what `agentsh doctor` finds; addresses and your name are left out
settings.txt   settings and where they come from; texts are replaced by their length
events.jsonl   the log, event by event: every text is replaced by its length

Texts that stay: types, statuses and the like, names of built-in tools, of files nothing but the length.
Please look into it before you send it.
"""


def feedback_bundle(homes: Homes, home_session: tuple[Home, str], env: Mapping[str, str], file: Path | None) -> Path:
    """Write it for a session (its home, its id); return the path.

    Raises:
        UsageProblem: the file is there already, or cannot be written.
    """
    home, session = home_session
    private = Private(env)

    def write(out: BinaryIO) -> None:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr("README.txt", README)
            zipped.writestr("about.json", json.dumps(_about(), indent=1))
            zipped.writestr("doctor.txt", _doctor(homes, env, private))
            zipped.writestr("settings.txt", _settings(homes, env, private))
            with zipped.open("events.jsonl", "w") as events:
                for line in redacted(event_store(home).read(session)):
                    events.write(line.encode() + b"\n")

    return write_new(file, f"agentsh-feedback-{session}", "zip", write)


def redacted(records: Iterable[Record]) -> Iterable[str]:
    """Yield each record as a line of JSON without what was said."""
    for record in records:
        payload = _value("payload", dict(record.payload), record.type)
        yield json.dumps({
            "seq": record.seq, "ts": record.ts, "type": record.type, "cause": record.cause, "payload": payload,
        })  # fmt: skip


class Private:
    """Takes out of a text what tells who somebody is: their name, their home, addresses."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._home = str(user_home(env).parent)
        try:
            self._name = getpass.getuser()
        except (OSError, KeyError):
            self._name = ""
        self._host = platform.node()

    def without(self, text: str) -> str:
        """Return the text without them."""
        text = _URL.sub("‹address›", text)
        if len(self._home) > 1:
            text = text.replace(self._home, "~")
        for what, mark in ((self._host, "‹host›"), (self._name, "‹name›")):
            if len(what) > 1:
                text = re.sub(rf"(?<!\w){re.escape(what)}(?!\w)", mark, text)
        return text


def _value(name: str, value: Any, kind: str) -> Any:
    if isinstance(value, dict):
        return {inner: _value(inner, v, kind) for inner, v in value.items() if _MEMBER.fullmatch(inner)}
    if isinstance(value, list):
        return [_value(name, v, kind) for v in value]
    if not isinstance(value, str):
        return value
    own = name in KEPT or (name == "name" and value in TOOLS) or (name == "reason" and kind == "turn_finished")
    return value if own and _WORD.fullmatch(value) else length_of(value)


def length_of(text: str) -> str:
    """Return what stands for a text."""
    return f"‹{len(text):,} characters›"


def _about() -> dict[str, str]:
    return {
        "agentsh": __version__,
        "python": sys.version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "terminal": os.environ.get("TERM", ""),
    }


def _doctor(homes: Homes, env: Mapping[str, str], private: Private) -> str:
    return "".join(
        private.without(f"{line.state:<5} {line.subject:<16} {line.text}" + (f" → {line.do}" if line.do else ""))
        + "\n"
        for line in checkup(homes, env)
    )


def _settings(homes: Homes, env: Mapping[str, str], private: Private) -> str:
    rows = []
    for setting in explained(homes, env):
        plain = setting.origin == "default" or re.fullmatch(r"-|true|false|[\d.]+", setting.value)
        value = setting.value if plain else length_of(setting.value)
        rows.append(private.without(f"{setting.name} = {value}  # {setting.origin}") + "\n")
    return "".join(rows)
