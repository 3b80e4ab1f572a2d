"""What `doctor` looks at around agentsh: the machine, the terminal, the programs, the models. Homes: doctor_home."""

import asyncio
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import NamedTuple

from agentsh import __version__
from agentsh.app.paths import Homes
from agentsh.base.errors import AgentshError

PACKAGES = ("typer", "rich", "prompt-toolkit", "openai", "pydantic", "zstandard")
PROBE_S = 5.0

Probe = Callable[[], Iterator["Line"]]


class Line(NamedTuple):
    """One finding. state: `ok`, `warn` (it works, but) or `fail`. do: what to do about it, or None."""

    state: str
    subject: str
    text: str
    do: str | None = None


def ok(subject: str, text: str) -> Line:
    """Return a finding that needs nothing."""
    return Line("ok", subject, text)


def warn(subject: str, text: str, do: str) -> Line:
    """Return a finding that works, but."""
    return Line("warn", subject, text, do)


def fail(subject: str, text: str, do: str) -> Line:
    """Return a finding that keeps something from working."""
    return Line("fail", subject, text, do)


def environment(env: Mapping[str, str]) -> Iterator[Line]:
    """Look at Python, the packages, the terminal and the locale."""
    version = platform.python_version()
    yield ok("python", f"{version} at {sys.executable}, {platform.system()} {platform.release()}")
    versions, missing = [], []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        yield fail("packages", f"missing: {', '.join(missing)}", "install agentsh again, e.g. `pip install agentsh`")
    yield ok("agentsh", ", ".join([__version__, *versions]))
    yield from _terminal(env)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding == "utf8":
        yield ok("locale", f"{env.get('LC_ALL') or env.get('LC_CTYPE') or env.get('LANG') or 'none set'}, UTF-8")
    else:
        text = f"output is {sys.stdout.encoding}, so that some characters cannot be shown"
        yield warn("locale", text, "set LANG to a UTF-8 locale, e.g. C.UTF-8, or PYTHONUTF8=1")


def _terminal(env: Mapping[str, str]) -> Iterator[Line]:
    term = env.get("TERM", "")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield ok("terminal", "none here; `-p` and `--json` need none")
    elif term in ("", "dumb"):
        yield warn(
            "terminal", f"TERM is {term or 'not set'}", "set TERM, e.g. xterm-256color, for the interactive shell"
        )
    else:
        size = shutil.get_terminal_size()
        yield ok("terminal", f"{term}, {size.columns}×{size.lines}")


def programs(env: Mapping[str, str]) -> Iterator[Line]:
    """Look for the programs that agentsh calls where they are there."""
    path = env.get("PATH")
    if (git := shutil.which("git", path=path)) is None:
        yield warn("git", "not found", "install git; without it workspaces of repositories are plain copies")
    else:
        yield ok("git", _said(git, "--version") or git)
    if (rg := shutil.which("rg", path=path)) is None:
        yield ok("ripgrep", "not found: searches of large projects take longer, and find the same")
    else:
        yield ok("ripgrep", _said(rg, "--version") or rg)
    if find_spec("pypdf") is None:
        yield ok("pypdf", "not installed: PDFs cannot be read; `pip install 'agentsh[pdf]'` brings it")


_SANDBOX_HELP = {
    "bwrap": "install the package bubblewrap, and allow user namespaces (kernel.unprivileged_userns_clone, AppArmor)",
    "landlock": "a kernel of 6.2 or newer with Landlock in its list of security modules (lsm=)",
    "seatbelt": "sandbox-exec comes with macOS",
}


def sandboxes(homes: Homes, env: Mapping[str, str]) -> Iterator[Line]:
    """Try each kind of sandbox with a real run, and tell which one is used."""
    from agentsh.app.settings import load_settings
    from agentsh.workspace.sandbox import KINDS, choose, probe

    ours = ("seatbelt",) if sys.platform == "darwin" else ("bwrap", "landlock")
    for kind in KINDS:
        if kind in ours:
            found = probe(kind)
            yield ok(kind, found.why) if found.works else warn(kind, found.why, _SANDBOX_HELP[kind])
    try:
        settings = load_settings(homes, env)
    except AgentshError:  # told elsewhere
        return
    used, why = choose(settings.sandbox.kind)
    if used != "none":
        yield ok("sandbox", f"commands run in {used}, network {'on' if settings.sandbox.network else 'off'}")
    else:
        yield warn("sandbox", why or "off by the settings", "until then commands are asked about in mode auto")


def _said(*command: str) -> str | None:
    """Return the first line that a program prints, or None where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else None


def models(homes: Homes, env: Mapping[str, str]) -> Iterator[Line]:
    """Tell how a model can be reached: which variables are set, never what is in a key."""
    from agentsh.app.hosts import host_of
    from agentsh.app.settings import load_settings

    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AGENTSH_MODEL"):
        value = env.get(name)
        shown = value or ""
        if name == "OPENAI_API_KEY":
            shown = "set" if value else ""
        elif name == "OPENAI_BASE_URL" and value:
            shown = host_of(value) or "set, and no URL"
        yield ok(name, shown or "not set")
    try:
        settings = load_settings(homes, env)
    except AgentshError as error:
        yield fail("settings", error.message, error.hint or "mend the file")
        return
    for label, profile in settings.models.items():
        key = profile.api_key_env
        where = host_of(profile.base_url) if profile.base_url else "the default endpoint"
        if key is not None and not env.get(key):
            yield warn(f"model {label}", f"{profile.wire} at {where}, and {key} is not set", f"export {key}=…")
        else:
            yield ok(f"model {label}", f"{profile.wire} at {where}" + (f", {key} is set" if key else ""))
    yield from _reachable(bool(settings.model or env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL")))


def _reachable(configured: bool) -> Iterator[Line]:
    from agentsh.models.local_servers import find_local_servers

    servers = asyncio.run(find_local_servers())
    for server in servers:
        names = ", ".join(server.models[:3]) or "no model loaded"
        yield ok("local server", f"{server.name} at {server.base_url}: {names}")
    if not servers:
        yield ok("local server", "none on the usual ports")
    if not configured and not any(server.models for server in servers):
        do = "export OPENAI_API_KEY=…, start a local server, or try `agentsh new --model demo`"
        yield warn("model", "none is configured", do)


def owner_only(mode: int) -> bool:
    """Tell whether nobody but its owner can do anything with a file of this mode."""
    return not mode & 0o077


def mine(uid: int) -> bool:
    """Tell whether a file belongs to the user who asks."""
    return uid == os.geteuid()
