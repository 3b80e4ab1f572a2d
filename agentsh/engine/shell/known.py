"""Commands that need no question: what each may be given, so that it only reads inside the workspace.

Sources: the manual pages of GNU coreutils 9, findutils 4.9, grep 3.8, sed 4.8, ripgrep 14, fd 9, jq 1.6 and tree 2.
An option that writes, runs a program, reads a list of names or follows links out is listed under its command.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from agentsh.base.light import dataclass
from agentsh.engine.shell.words import names


@dataclass(frozen=True, slots=True)
class Reader:
    """A command that prints what it reads. long, short: options that are asked about; an abbreviation counts too.

    first: its first plain argument is no file but a pattern or a script, unless one of `script_options` gave it.
    most: plain arguments that it may have, where one more is written to.
    exact: options in the style of find, with one dash and compared whole. numbers: options before a number.
    lists: `@FILE` stands for arguments that are in a file.
    """

    long: tuple[str, ...] = ()
    short: str = ""
    first: bool = False
    script_options: tuple[str, ...] = ()
    most: int | None = None
    exact: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    lists: bool = False


class Scripted(NamedTuple):
    """A command whose script is a program of its own. Only what is listed here is taken for harmless.

    flags, values, scripts: letters of options that take nothing, a value, a script. long: options that take nothing.
    long_values: how many words an option takes. long_scripts: take a script. posix: options end at the first word
    that is none.
    """

    flags: str = ""
    values: str = ""
    scripts: str = ""
    long: frozenset[str] = frozenset()
    long_values: Mapping[str, int] = MappingProxyType({})
    long_scripts: frozenset[str] = frozenset()
    posix: bool = False


SAYS = names("""
    : true false echo pwd whoami id nproc uptime sleep seq basename dirname which type expr tty arch groups exit
    return break continue wait uname [[ cal getconf sw_vers lscpu free vmstat ps times printenv shift tr
""")
"""Print, compute or end, whatever they are given: no argument is a file that they open or a variable that they set.

`ps` shows processes, with `e` their environment too: inside a sandbox only those of the session, else what any
command could read in /proc anyway; keys are not in there, the environment of commands is scrubbed.
"""

READERS = {
    "cat": Reader(),
    "head": Reader(),
    "tail": Reader(long=("--follow", "--retry", "--pid"), short="fF"),
    "wc": Reader(long=("--files0-from",)),
    "nl": Reader(),
    "tac": Reader(),
    "rev": Reader(),
    "cut": Reader(),
    "paste": Reader(),
    "fold": Reader(),
    "fmt": Reader(),
    "expand": Reader(),
    "unexpand": Reader(),
    "column": Reader(),
    "comm": Reader(),
    "join": Reader(),
    "uniq": Reader(most=1, numbers=names("-f -s -w")),
    "sort": Reader(long=("--output", "--compress-program", "--files0-from", "--temporary-directory"), short="oT"),
    "diff": Reader(long=("--to-file", "--from-file")),
    "cmp": Reader(),
    "file": Reader(long=("--compile", "--files-from", "--magic-file"), short="Cfm"),
    "stat": Reader(),
    "ls": Reader(),
    "dir": Reader(),
    "du": Reader(long=("--files0-from", "--dereference", "--dereference-args", "--exclude-from"), short="LHDX"),
    "tree": Reader(long=("--output", "--fromfile", "--fromtabfile"), short="ol"),
    "md5sum": Reader(short="c", long=("--check",)),
    "sha1sum": Reader(short="c", long=("--check",)),
    "sha256sum": Reader(short="c", long=("--check",)),
    "sha512sum": Reader(short="c", long=("--check",)),
    "b2sum": Reader(short="c", long=("--check",)),
    "cksum": Reader(short="c", long=("--check",)),
    "od": Reader(),
    "xxd": Reader(most=1, short="r", numbers=names("-l -s -c -g")),
    "base64": Reader(),
    "hexdump": Reader(short="f"),
    "strings": Reader(lists=True),
    "realpath": Reader(),
    "readlink": Reader(),
    "grep": Reader(
        first=True, script_options=("-e", "--regexp", "-f", "--file"), long=("--dereference-recursive",), short="R"
    ),
    "egrep": Reader(first=True, script_options=("-e", "--regexp", "-f", "--file"), short="R", long=("--deref",)),
    "fgrep": Reader(first=True, script_options=("-e", "--regexp", "-f", "--file"), short="R", long=("--deref",)),
    "rg": Reader(
        first=True,
        script_options=("-e", "--regexp", "-f", "--file", "--files", "--type-list"),
        long=("--pre", "--search-zip", "--hostname-bin", "--follow", "--ignore-file"),
        short="zL",
    ),
    "fd": Reader(
        first=True,
        long=("--exec", "--exec-batch", "--follow", "--ignore-file", "--base-directory", "--search-path"),
        short="xXLC",
    ),
    "find": Reader(
        exact=names("""
    -delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls -files0-from -L -H -follow
""")
    ),
}
"""Every plain argument of these is judged as a file that is read."""

SCRIPTED = {
    "sed": Scripted(
        flags="nErsuz",
        values="l",
        scripts="e",
        long=names("--quiet --silent --regexp-extended --separate --null-data --unbuffered --posix --debug"),
        long_values={"--line-length": 1},
        long_scripts=frozenset({"--expression"}),
    ),
    "awk": Scripted(values="Fv", posix=True),
    "jq": Scripted(
        flags="rcnsSajCMRe",
        long=names("""
    --raw-output --compact-output --null-input --slurp --sort-keys --ascii-output --join-output --color-output
    --monochrome-output --raw-input --exit-status --tab --seq --stream
"""),
        long_values={"--indent": 1, "--arg": 2, "--argjson": 2},
    ),
}
"""Their first argument is the script where no option gave one; it is looked at. All others are files."""

WRITERS = frozenset({"tee"})
"""Every plain argument is a file that is written."""

VERSIONED = names("""
    python python3 node npm npx pnpm yarn go cargo rustc rustup gcc g++ clang cc make cmake ninja pip pip3 uv
    ruff mypy pytest java javac ruby gem perl php docker git gh bash zsh deno bun tsc dotnet swift kubectl
    terraform psql sqlite3 curl wget tar rg jq fd
""")
"""Tools that only tell their version when that is all they are asked."""
VERSION_WORDS = frozenset({"--version", "-V", "-version", "version"})

NEUTRAL_VARIABLES = names("""
    LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE TERM COLUMNS LINES CI DEBUG VERBOSE
    PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE RUST_BACKTRACE RUST_LOG LOG_LEVEL NODE_ENV RAILS_ENV RACK_ENV MIX_ENV
    APP_ENV
""")
"""Variables of the environment that no harmless command takes a file or a program from; LC_* too."""

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash"})


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A command that runs another one. values: options that take the next word. flags: options that take none.

    skip: plain arguments before the command. asks: why it is asked about even around a harmless command.
    """

    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    skip: int = 0
    asks: str | None = None


def _wrapper(values: str = "", flags: str = "", skip: int = 0, asks: str | None = None) -> Wrapper:
    return Wrapper(frozenset(values.split()), frozenset(flags.split()), skip, asks)


WRAPPERS = {
    "env": _wrapper("-u --unset", "-i --ignore-environment -0 --null -"),
    "timeout": _wrapper("-k --kill-after -s --signal", "--foreground --preserve-status -v --verbose", skip=1),
    "nice": _wrapper("-n --adjustment"),
    "ionice": _wrapper("-c -n --class --classdata", "-t --ignore"),
    "nohup": _wrapper(),
    "time": _wrapper("", "-p"),
    "stdbuf": _wrapper("-i -o -e --input --output --error"),
    "command": _wrapper("", "-p"),
    "builtin": _wrapper(),
    "exec": _wrapper("-a", "-c -l"),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "xargs": _wrapper(
        "-I -n -P -L -s -d -E --max-args --max-procs --max-lines --max-chars --delimiter --replace",
        "-0 --null -r --no-run-if-empty -t --verbose -x --exit",
    ),
    "sudo": _wrapper("-u -g -h -p -C -r -t -U -D -R -T --user --group", "-n -E -H -S -b -k -A -i -s", asks="as root"),
    "doas": _wrapper("-u -C", "-n -s -L", asks="as another user"),
    "su": _wrapper("-c -s -g", "-l -", asks="as another user"),
    "setsid": _wrapper("", "-c -f -w --fork --wait --ctty", asks="it leaves the session"),
    "chroot": _wrapper("", "", 1, asks="another root"),
    "unshare": _wrapper("", "-r -n -m -p -f -u -U -i -C", asks="another namespace"),
    "nsenter": _wrapper("-t", "-m -u -i -n -p -a", asks="another namespace"),
    "strace": _wrapper("-e -o -p -s", "-f -ff", asks="it watches another program"),
    "ltrace": _wrapper("-e -o -p -s", "-f", asks="it watches another program"),
    "watch": _wrapper("-n --interval", "-d -t -e", asks="it does not end"),
    "parallel": _wrapper("-j --jobs", "", asks="it builds commands"),
    "flock": _wrapper("-w -E", "-n -x -s -u", 1, asks="it writes a lock"),
    "script": _wrapper("-c", "-q -e", asks="it writes a file"),
    "coproc": _wrapper(asks="it goes on in the background"),
    "ssh": _wrapper("-p -i -l -o -F -J -L -R -D", "-t -T -N -f -q -v -A", 1, asks="another machine"),
}
