"""The environment that a model's commands get: enough to build and test, no keys, nothing that waits for a person."""

import os
import re
from collections.abc import Mapping

from agentsh.base.pattern import later

SESSION_MARK = "AGENTSH_SESSION"
"""Names the session in every process that it started, so that strays can be found in /proc/PID/environ."""
RUN_MARK = "AGENTSH_RUN"
"""Names one run of one command, so that runs beside each other do not take each other for strays."""
PROCESS_MARK = "AGENTSH_PROCESS"
"""Names the process of agentsh that started a command: what it left when it was killed is ended, and no other's."""

_NAMES = """
    PATH HOME LANG LANGUAGE TZ USER LOGNAME SHELL TMPDIR HOSTNAME
    VIRTUAL_ENV CONDA_PREFIX PYENV_ROOT NVM_DIR NVM_BIN VOLTA_HOME RBENV_ROOT GEM_HOME SDKMAN_DIR
    JAVA_HOME GOPATH GOROOT GOBIN GOFLAGS CARGO_HOME RUSTUP_HOME DOTNET_ROOT ANDROID_HOME
    CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS PKG_CONFIG_PATH
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS
    http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY
"""
_ALLOWED = frozenset(_NAMES.split())
_SECRET_NAME = later("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
# user:password@ in a proxy or index URL.
_SECRET_VALUE = later(r"://[^/\s@]+@")

_FIXED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "true",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}


def is_secret(name: str, value: str) -> bool:
    """Tell whether a variable looks like a secret: by its name, or by a password in a URL."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def scrubbed(outer: Mapping[str, str], *, session: str, ceiling: str | None) -> dict[str, str]:
    """Return what of `outer` a command may see, and what keeps it from waiting for a terminal.

    Only known names pass, none that looks like a secret, and no value that holds a password in a URL.
    ceiling: git looks for a repository no higher than below this directory; None: as high as it likes.
    """
    inner = {
        name: value
        for name, value in outer.items()
        if (name in _ALLOWED or name.startswith("LC_")) and not is_secret(name, value)
    }
    inner.setdefault("PATH", os.defpath)
    inner |= _FIXED
    inner[SESSION_MARK] = session
    if ceiling is not None:
        inner["GIT_CEILING_DIRECTORIES"] = ceiling
    return inner
