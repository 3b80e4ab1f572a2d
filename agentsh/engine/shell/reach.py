"""How far a rule that allows further words (`shell(tar *)`) may reach: not to options that run programs of their own,
nor to files outside of the workspace, unless it names them.

Sources: the manual pages of git 2.47, GNU tar 1.35, rsync 3.2, OpenSSH 9, curl 8 and zip 3.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from agentsh.engine.shell import argv, git
from agentsh.engine.shell.known import READERS, SCRIPTED
from agentsh.engine.shell.words import Word, names

_RUNS: Mapping[str, re.Pattern[str]] = {
    "git": re.compile(
        r"--upload-pack.*|--receive-pack.*|--exec.*|--extcmd.*|--open-files.*|-O.*|-x|ext::.*|--output.*|--ext-diff"
        r"|--textconv|--filters|--config.*|-c|--template.*|--paginate|filter-branch|foreach|--no-index|--to-cmd.*"
        r"|--smtp-server.*|--separate-git-dir.*"
    ),
    "tar": re.compile(
        r"--to-c.*|--checkpoint-a.*|--use-c.*|--rsh.*|--rmt.*|--info-s.*|--new-v.*|--absolute.*|-[A-Za-z]*[IFP].*"
    ),
    "rsync": re.compile(r"--rsh.*|--rsync-path.*|-[A-Za-z]*e.*|--daemon|--config.*"),
    "ssh": re.compile(r"-[A-Za-z0-9]*[oFSIJLRDWw].*"),
    "scp": re.compile(r"-[A-Za-z0-9]*[oFSJD].*"),
    "sftp": re.compile(r"-[A-Za-z0-9]*[oFSJDb].*"),
    "zip": re.compile(r"-T.*|--unzip-command.*|--test.*"),
    "curl": re.compile(r"-K.*|--config.*|-T.*|--upload-file.*|file:.*", re.IGNORECASE),
    "man": re.compile(r"-P.*|--pager.*|-H.*|--html.*"),
    "make": re.compile(r"--eval.*|SHELL=.*|MAKEFLAGS=.*|\.SHELLFLAGS=.*"),
}
"""Words that make a command run a program that they name, or take its configuration from elsewhere."""

_FILE_TOOLS = names("""
    cp mv ln install rm rmdir mkdir touch chmod chown chgrp truncate tee dd split csplit shred unzip zip gzip gunzip
    bzip2 xz zstd cpio patch rsync scp sftp ssh tar git curl wget
""")
"""Commands whose every word counts: one that is not known may be an option, or a file that is outside."""

_IN_PLACE = re.compile(r"-[nErsuz]*i\S*|--in-place(?:=.*)?")
_BETWEEN = re.compile(r"[=:,@]")
_URL = re.compile(r"(?:https?|git|ssh|ftps?|git\+https?|git\+ssh|docker|oci|s3|gs)://")
_NOWHERE = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})


def sharp(name: str | None, arguments: Sequence[Word], reads: Callable[[Word], str | None]) -> int:
    """Return how many arguments a rule must name, counted from the first; 0: what it says of the name is enough."""
    if name is None:
        return 0
    judged = name in READERS or name in SCRIPTED or name in _FILE_TOOLS
    runs = _RUNS.get(name)
    last = 0
    for at, word in enumerate(arguments, 1):
        if word.texts is None and judged and name != "git":
            last = at
        for text in word.texts or ():
            more = judged and text.startswith("-") and argv.does_more(name, text)
            if more or (runs is not None and runs.fullmatch(text)) or _leads_out(text, word, reads, judged=judged):
                last = at
    first = arguments[0].text if arguments else None
    if name == "tar" and re.fullmatch(r"[a-zA-Z]*[IFP][a-zA-Z]*", first or ""):  # the old style, without a dash
        last = max(last, 1)
    if name in SCRIPTED:
        last = _up_to_script(name, arguments, last)
    if name == "git" and (first in git.READS or first == "config") and git.harmless(arguments, reads) is not None:
        last = len(arguments)
    return last


def _leads_out(text: str, word: Word, reads: Callable[[Word], str | None], *, judged: bool) -> bool:
    """Tell whether a word names a file outside of the workspace, by its spelling or by a link.

    judged: an option that a path is glued to (`-t/etc`) is taken apart too.
    """
    if text in _NOWHERE or re.search(r"\s", text) or _URL.match(text):
        return False
    first, *pieces = _BETWEEN.split(text)
    if not first.startswith("-"):
        pieces.append(first)
    elif judged and "/" in first:
        pieces.append(first[first.index("/") :])
    paths = (piece for piece in pieces if "/" in piece or piece in ("..", "~"))
    return any(path.startswith("~") or reads(Word((path,), word.pattern, path)) is not None for path in paths)


def _up_to_script(name: str, arguments: Sequence[Word], least: int) -> int:
    """Return how many words must be named for what a script does: with one that is not harmless, all of them."""
    in_place = [at for at, word in enumerate(arguments, 1) if name == "sed" and _IN_PLACE.fullmatch(word.text or "")]
    rest = [word for at, word in enumerate(arguments, 1) if at not in in_place]
    if argv.harmless(name, rest, lambda word: None) is not None:
        return len(arguments)
    return max(least, *in_place, 0)
