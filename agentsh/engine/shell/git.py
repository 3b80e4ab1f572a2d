"""Judges a git command: global options are set aside first, so that they cannot hide what is done.

Source: git-scm.com/docs of git 2.39 to 2.47. What git runs on its own (fsmonitor, external diffs, filters, aliases)
is named by a configuration; that of the repository is protected as a file (see `Gate` and the sandbox).
"""

import re
from collections.abc import Callable, Sequence

from agentsh.engine.shell.words import Word, names

_TAKES_NONE = frozenset({"--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "-P"})

READS = names("""
    status log diff show blame annotate shortlog rev-parse ls-files ls-tree describe cat-file rev-list name-rev
    merge-base show-ref for-each-ref grep diff-tree diff-index diff-files whatchanged count-objects check-ignore
    check-attr var cherry range-diff version
""")
_WRITES_OR_RUNS = (
    "--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--no-index", "--exec", "--upload-pack",
    "--filters", "--batch-command", "--contents", "--parseopt", "--sq-quote", "--paginate", "--ignore-revs-file",
    "--exclude-from", "--exclude-standard-from", "--show-signature",
)  # fmt: skip
_LISTING: dict[str, re.Pattern[str]] = {
    "branch": re.compile(
        r"-a|-r|-v|-vv|-l|--all|--list|--remotes|--verbose|--show-current|--no-color|--merged|--no-merged"
        r"|--sort=.*|--format=.*|--contains"
    ),
    "tag": re.compile(r"-l|--list|-n\d*|--sort=.*|--format=.*"),
    "remote": re.compile(r"-v|--verbose|get-url|[A-Za-z][\w.]*"),
    "stash": re.compile(r"list|show|-p|--stat|stash@\{\d+\}"),
    "worktree": re.compile(r"list|--porcelain"),
    "submodule": re.compile(r"status|--recursive"),
    "reflog": re.compile(r"show|-n|-?\d+|--all|HEAD|--oneline|--date=\w+"),
    "config": re.compile(r"-l|--list|--get|--get-all|--local|--show-origin|get|list|[a-z]+\.[\w.-]+"),
    "notes": re.compile(r"list|show|HEAD"),
    "bisect": re.compile(r"log"),
}
"""Commands that only list when every argument looks so."""
_MUST_HAVE = {"stash": ("list", "show"), "worktree": ("list",), "notes": ("list", "show"), "bisect": ("log",)}
_REMOTE_READS = frozenset({"get-url"})
_CONFIG_READS = frozenset({"-l", "--list", "--get", "--get-all", "get", "list"})


def split(arguments: Sequence[Word]) -> tuple[list[Word], list[Word], str | None]:
    """Return global options, the command with its arguments, and why the options are no harmless ones.

    `-C` and its directory are among the options.
    """
    options: list[Word] = []
    problem = None
    at = 0
    while at < len(arguments):
        text = arguments[at].text
        if text is None or not text.startswith("-"):
            break
        options.append(arguments[at])
        at += 1
        if text == "-C" or text in ("-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"):
            options += arguments[at : at + 1]
            at += 1
            problem = problem if text == "-C" else f"git {text} changes what git runs"
        elif text in ("--version", "--help"):
            return options, [Word((text.lstrip("-"),), False, text)], problem
        elif text not in _TAKES_NONE:
            problem = f"git {text} is not judged"
    return options, list(arguments[at:]), problem


def harmless(command: Sequence[Word], reads: Callable[[Word], str | None]) -> str | None:
    """Return why a git command, without global options, is not harmless; None where it is."""
    if not command:
        return None
    name = command[0].text
    if name is None:
        return "which git command is not known"
    arguments = command[1:]
    if name in ("version", "help"):
        return None if not arguments else "git help may open a viewer"
    listing = _LISTING.get(name)
    if listing is not None:
        return _lists(name, listing, arguments)
    if name not in READS:
        return f"git {name} changes something"
    paths_only = False
    for word in arguments:
        if word.texts is None:
            return f"what {word.raw} stands for is not known"
        for text in word.texts:
            problem = None
            if text == "--":
                paths_only = True
            elif text.startswith("-") and not paths_only:
                problem = _option(name, text)
            elif word.pattern and text[:1] in "*?[" and not paths_only:
                problem = f"{word.raw} may turn into an option"
            else:
                problem = None if _is_revision(text) and not paths_only else reads(word)
            if problem:
                return problem
    return None


def _option(name: str, text: str) -> str | None:
    option = text.partition("=")[0]
    if option.startswith("--"):
        # git too takes abbreviations.
        for listed in _WRITES_OR_RUNS:
            if len(option) > 3 and listed.startswith(option):
                return f"git {option} does more than read"
        return None
    if name == "grep" and re.match(r"-[A-Za-z]*[Of]", text):
        return f"git grep {text} does more than read"
    if name == "blame" and text.startswith("-S"):
        return "git blame -S reads another file"
    return None


def _is_revision(text: str) -> bool:
    """Tell whether a text cannot be a path that leads out: `main..HEAD`, `HEAD:../x`, `v1.0^{commit}`."""
    return not text.startswith(("/", "~")) and ".." not in text.split(":", 1)[0].split("/")


def _lists(name: str, listing: re.Pattern[str], arguments: Sequence[Word]) -> str | None:
    texts = [word.text for word in arguments]
    changes = f"git {name} changes something"
    if any(text is None for text in texts):
        return changes
    if name in ("branch", "tag") and {"--list", "-l"} & set(texts):
        return None if all(not t or not t.startswith("-") or listing.fullmatch(t) for t in texts) else changes
    if not all(text is not None and listing.fullmatch(text) for text in texts):
        return changes
    if name == "remote" and any(text not in ("-v", "--verbose") for text in texts) and texts[0] not in _REMOTE_READS:
        return changes
    must = _MUST_HAVE.get(name)
    if must is not None and (not texts or texts[0] not in must):
        return changes
    if name == "config" and not _CONFIG_READS & set(texts):
        return changes if len([t for t in texts if t and not t.startswith("-")]) != 1 else None
    if name == "branch" and texts and texts[-1] == "--contains":
        return changes
    return None
