"""`agentsh init` and `agentsh trust`: homes that belong to a directory."""

import os
import sys
from pathlib import Path

from agentsh.app.paths import CONFIG, Home, find_homes, here, is_home, prepare, user_home
from agentsh.app.trust import is_trusted
from agentsh.app.trust import trust as record_trust
from agentsh.base.errors import UsageProblem

FIRST_CONFIG = """\
# agentsh configuration; see docs/configuration.md. Everything is optional.

# model = "local"            # a profile below, or a model of the default endpoint
#
# [session]
# mode = "ask"               # ask | auto | plan | yolo
#
# [context]
# budget_tokens = 60000       # for a whole request; without it, what the model's window leaves
#
# [models.local]
# base_url = "http://127.0.0.1:11434/v1"
# model = "qwen3-coder"
"""


def init(directory: Path) -> int:
    """Make `directory` a home, trusted where its configuration was made here; return 0. What is there stays.

    One that came with a project is not trusted by this: its configuration could name hooks.
    """
    root = directory.expanduser().absolute()
    if root.is_file():
        raise UsageProblem(f"{root} is a file", hint="name a directory")
    there = is_home(root)
    prepare(Home(root, trusted=True))
    if _write_new(root / CONFIG):
        record_trust(root, user_home(os.environ))
    print(f"{root} {'was a home already' if there else 'is a home now'}: sessions/, workspaces/, {CONFIG}")
    if not is_trusted(root, user_home(os.environ)):
        print(f"Its {CONFIG} was there before and is not obeyed until `agentsh trust`.")
    return 0


def _write_new(file: Path) -> bool:
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageProblem(f"{file} cannot be written: {error.strerror}") from None
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        out.write(FIRST_CONFIG)
    return True


def trust(directory: Path | None) -> int:
    """Record that a home is trusted with its present configuration; return 0."""
    own = user_home(os.environ)
    if directory is None:
        homes = find_homes(here(), os.environ)
        home = next((h for h in homes.read if h.root != own), None)
        if home is None:
            raise UsageProblem("there is no home at or above this directory", hint="`agentsh init` makes one")
        root = home.root
    else:
        root = directory.expanduser().absolute()
        if not is_home(root):
            raise UsageProblem(f"{root} is no home: it lacks {CONFIG}, sessions/ or workspaces/")
    record_trust(root, own)
    print(f"{root} is trusted as it is now: its {CONFIG} is obeyed and new sessions go there")
    print("A changed configuration has to be trusted again.", file=sys.stderr)
    return 0
