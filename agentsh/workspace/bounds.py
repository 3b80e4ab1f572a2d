"""Works out what commands of a session may reach: which directories hold keys, homes and sessions of others."""

import os
import stat
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from agentsh.base.ids import random_hex
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
_PREFIX = "agentsh-tmp-"


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


def make_tmp(session: str, root: Path) -> str:
    """Make a private temporary directory for a session; what a killed agentsh left of an earlier one goes.

    root: its workspace. A copy of the session in another home has the same id, and may be open too.

    Raises:
        OSError: it cannot be made.
    """
    top = os.path.realpath(_temporary())
    own = f"{_PREFIX}{session}-{zlib.crc32(os.fsencode(os.path.realpath(root))):08x}-"
    for name in os.listdir(top):
        if name.startswith(own):
            remove_tmp(os.path.join(top, name))
    path = os.path.join(top, own + random_hex(4))
    os.mkdir(path, 0o700)
    return path


def _temporary() -> str:
    """Return the directory for temporary files: `tempfile.gettempdir`, which takes 3 ms to load and writes a file."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    usable = (top for top in (*named, "/tmp", "/var/tmp") if top and os.access(top, os.W_OK | os.X_OK))
    return next(usable, os.curdir)


def remove_tmp(path: str) -> None:
    """Remove a private temporary directory, if it is one and ours."""
    with suppress(OSError):
        info = os.lstat(path)
        if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and _PREFIX in path:
            import shutil

            shutil.rmtree(path, ignore_errors=True)


def _real(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))
