"""Relative paths in the commands of hooks are meant from the file that names them."""

import os
from pathlib import Path
from typing import Any


def rooted(values: dict[str, Any], place: Path) -> dict[str, Any]:
    """Return what a configuration file in `place` says, its hooks' programs with their full paths.

    A program with a slash is a path from there (`~/` one from the user's home), whether or not it is there: else a
    project that one stands in could put its own in its place, and hooks run outside of the sandbox. An argument that
    begins with `./` or `../` is, too, where that is a file.
    """
    hooks = values.get("hooks")
    if not isinstance(hooks, dict):
        return values
    return values | {"hooks": {name: _hook(hook, place) for name, hook in hooks.items()}}


def _hook(hook: Any, place: Path) -> Any:
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return hook
    return hook | {"command": [_word(n, word, os.path.abspath(place)) for n, word in enumerate(command)]}


def _word(number: int, word: str, place: str) -> str:
    path = os.path.normpath(os.path.join(place, os.path.expanduser(word)))
    if number == 0:
        return path if "/" in word else word
    return path if word.startswith(("./", "../")) and os.path.isfile(path) else word
