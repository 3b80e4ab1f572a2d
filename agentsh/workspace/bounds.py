"""Works out what commands of a session may reach: which directories hold keys, homes and sessions of others."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentsh.workspace.git_guard import decides
from agentsh.workspace.sandbox_port import Bounds, Limits

_KEYS = """
    .ssh .aws .gnupg .netrc .git-credentials .config/git/credentials .config/gh .config/glab-cli .config/hub
    .kube .docker .azure .config/gcloud .config/doctl .oci .terraform.d .vault-token .config/op .op .npmrc
    .yarnrc.yml .pypirc .config/pip .cargo/credentials .cargo/credentials.toml .gem/credentials
    .m2/settings.xml .gradle/gradle.properties .nuget .composer/auth.json .config/rclone .s3cfg .boto
    .pgpass .my.cnf .mylogin.cnf .password-store .local/share/keyrings .local/share/kwalletd
    .config/1Password .config/Bitwarden .mozilla .config/google-chrome .config/chromium
    .config/BraveSoftware .thunderbird .electrum .bitcoin .ethereum .bash_history .zsh_history
    .python_history .psql_history .mysql_history .node_repl_history .config/agentsh .codex .claude
    .claude.json .gemini .config/openai .openai .config/anthropic .huggingface .cache/huggingface/token
    .Xauthority .ICEauthority Library/Keychains Library/Cookies .env
"""
KEYS = tuple(_KEYS.split())
"""Places in a user's home that hold keys or what was typed, of the tools that are common in 2026."""

_OF_SESSIONS = (
    "sessions", "workspaces", "blobs", "trash", "index.db", "index.db-wal", "index.db-shm", "secrets.key", "history",
)  # fmt: skip
_INSIDE_A_HOME = (*_OF_SESSIONS, "agentsh.toml")


def bounds_of(
    root: Path,
    *,
    tmp: str,
    homes: Iterable[Path],
    writable: Sequence[str] = (),
    readable: Sequence[str] = (),
    unreadable: Sequence[str] = (),
    guarded: Iterable[str] = (),
    in_place: bool = False,
    network: bool = False,
    limits: Limits | None = None,
) -> Bounds:
    """Return the bounds of a workspace. homes: of agentsh; of these only the workspace itself can be seen.

    writable, readable, unreadable: paths of the configuration; `~` is the user's home. guarded: files, relative to
    the root, that programs outside of the sandbox run, beside those of git. in_place: the workspace is the user's
    own.
    """
    here = os.path.realpath(root)
    user = os.path.realpath(os.path.expanduser("~"))
    hidden = dict.fromkeys(os.path.join(user, name) for name in KEYS)
    kept = []
    for home in homes:
        place = os.path.realpath(home)
        if here == place or place.startswith(here.rstrip("/") + "/"):
            hidden.update(dict.fromkeys(os.path.join(place, name) for name in _INSIDE_A_HOME))
            kept += [place] if here != place else []
        else:
            hidden[place] = None
    hidden.update(dict.fromkeys(_real(path) for path in unreadable))
    kept += decides(here, in_place=in_place)
    kept += [os.path.join(here, path) for path in guarded]
    return Bounds(
        root=here,
        tmp=tmp,
        home=user,
        writable=tuple(map(_real, writable)),
        readable=tuple(map(_real, readable)),
        hidden=tuple(os.path.realpath(path) for path in hidden if os.path.lexists(path)),
        guarded=tuple(kept),
        network=network,
        limits=limits or Limits(),
    )


def keys_in(root: Path, homes: Iterable[Path]) -> frozenset[str]:
    """Return the places with keys and with sessions that lie in a workspace, relative to it: where it is `~`, say."""
    here, user = os.path.realpath(root), os.path.realpath(os.path.expanduser("~"))
    places = [os.path.join(user, name) for name in KEYS]
    places += [os.path.join(os.path.realpath(home), name) for home in homes for name in _OF_SESSIONS]
    top = here.rstrip("/") + "/"
    return frozenset(os.path.relpath(path, here) for path in places if path.startswith(top))


def _real(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))
