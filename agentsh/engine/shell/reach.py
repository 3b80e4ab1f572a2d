"""How far a rule that allows further words (`shell(tar *)`) may reach: not to options that run programs of their own,
nor to files outside of the workspace, unless it names them.

Sources: the manual pages of git 2.47, GNU tar 1.35, rsync 3.2, OpenSSH 9, curl 8 and zip 3.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agentsh.engine.shell import argv, git
from agentsh.engine.shell.known import READERS, SCRIPTED
from agentsh.engine.shell.words import Word, names


class _Runs(NamedTuple):
    """What makes a command run a program that it is told, or take its configuration from elsewhere.

    long: options that may be abbreviated, as these programs allow. words: any other word. under: a word behind that
    of a subcommand, the two with a space between.
    """

    long: frozenset[str]
    words: str = r"(?!)"
    under: str = ""


_RUNS: Mapping[str, _Runs] = {
    "git": _Runs(
        names("""
    --upload-pack --receive-pack --exec --extcmd --open-files-in-pager --output --ext-diff --textconv --filters
    --config --template --paginate --no-index --to-cmd --cc-cmd --header-cmd --sendmail-cmd --smtp-server
    --separate-git-dir
"""),
        r"--upload-pack.*|--receive-pack.*|--exec.*|--open-files.*|-O.*|-x|ext::.*|--output.*|--config.*|-c|--template.*"
        r"|filter-branch|foreach|--smtp-server.*",
        r"bisect run|clone -u.*|(?:rebase|difftool) -x.*",
    ),
    "tar": _Runs(
        names("""
    --to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command --info-script
    --new-volume-script --absolute-names
"""),
        r"-[A-Za-z]*[IFP].*",
    ),
    "cpio": _Runs(names("--rsh-command --absolute-filenames")),
    "rsync": _Runs(frozenset(), r"--rsh.*|--rsync-path.*|-[A-Za-z]*e.*|--daemon|--config.*"),
    "ssh": _Runs(frozenset(), r"-[A-Za-z0-9]*[oFSIJLRDWw].*"),
    "scp": _Runs(frozenset(), r"-[A-Za-z0-9]*[oFSJD].*"),
    "sftp": _Runs(frozenset(), r"-[A-Za-z0-9]*[oFSJDb].*"),
    "zip": _Runs(names("--unzip-command --test"), r"-[A-Za-z0-9]*T.*"),
    "curl": _Runs(names("--config --upload-file"), r"-[aBfgGiIjJklLMnNOpqRsSvVZ#0-6]*[KT].*|(?i:file:.*)"),
    "wget": _Runs(
        names("--execute --config --use-askpass --post-file --body-file --input-file"),
        r"-[bdqvxcSNrkKmpHLEF46]*[ei].*",
    ),
    "man": _Runs(names("--pager --html --config-file"), r"-[adDfiIkKlutwWcZ7]*[PHC].*"),
    "make": _Runs(names("--eval"), r"-[bBdeiknmpqrRsStvw]*E.*|SHELL=.*|MAKEFLAGS=.*|\.SHELLFLAGS=.*"),
    "split": _Runs(names("--filter")),
    "install": _Runs(names("--strip-program")),
}
_WHOLE = {
    "git": names("--text --filter --to --cc"),
    "tar": names("--checkpoint"),
    "install": names("--strip"),
}
"""Options that are no abbreviation, though one of those above begins with them."""

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
    last = 0
    before: list[str] = []
    for at, word in enumerate(arguments, 1):
        if word.texts is None and judged and name != "git":
            last = at
        for text in word.texts or ():
            more = judged and text.startswith("-") and argv.does_more(name, text)
            if more or _runs(name, before, text) or _leads_out(name, text, word, reads, judged=judged):
                last = at
        before += word.texts or ()
    first = arguments[0].text if arguments else None
    if name == "tar" and re.fullmatch(r"[a-zA-Z]*[IFP][a-zA-Z]*", first or ""):  # the old style, without a dash
        last = max(last, 1)
    if name in SCRIPTED:
        last = _up_to_script(name, arguments, last)
    if name == "git" and (first in git.READS or first == "config") and git.harmless(arguments, reads) is not None:
        last = len(arguments)
    return last


def _runs(name: str, before: Sequence[str], text: str) -> bool:
    """Tell whether a word makes a command run a program that it names. before: the words before it."""
    kind = _RUNS.get(name)
    if kind is None:
        return False
    option = text.partition("=")[0]
    abbreviated = option.startswith("--") and len(option) > 2 and option not in _WHOLE.get(name, ())
    if abbreviated and any(listed.startswith(option) for listed in kind.long):
        return True
    if re.fullmatch(kind.words, text, re.DOTALL):
        return True
    return bool(kind.under) and any(re.fullmatch(kind.under, f"{word} {text}", re.DOTALL) for word in before)


def _leads_out(name: str, text: str, word: Word, reads: Callable[[Word], str | None], *, judged: bool) -> bool:
    """Tell whether a word names a file outside of the workspace, by its spelling or by a link.

    judged: all of its words are names or options; an option that a path is glued to (`-t/etc`) is taken apart too.
    """
    says = re.search(r"\s", text) is not None and not (judged and name != "git")  # a message rather than a name
    if text in _NOWHERE or says or _URL.match(text):
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
