"""Takes wrappers apart: which command `env`, `timeout`, `xargs` and the like run, and with what."""

import re
from collections.abc import Callable, Sequence

from agentsh.engine.shell.known import Wrapper
from agentsh.engine.shell.words import Command, Word, literal


def peel(
    name: str, kind: Wrapper, words: Sequence[Word], neutral: Callable[[str], bool]
) -> tuple[list[Word], list[Word], str | None]:
    """Return the command that a wrapper runs, the wrapper's own options, and why they are no harmless ones."""
    options: list[Word] = []
    skip, at = kind.skip, 0
    problem: str | None = None
    while at < len(words):
        text = words[at].text
        if text is None:
            if skip:
                return [], options, "what it runs is not known"
            break
        if name in ("env", "time") and re.fullmatch(r"[A-Za-z_]\w*=.*", text, re.ASCII | re.DOTALL):
            variable = text.partition("=")[0]
            problem = problem or (None if neutral(variable) else f"{variable} may change what commands do")
        elif text == "--":
            at += 1
            break
        elif text.startswith("-") and (len(text) > 1 or text in kind.flags):
            option, equals, _ = text.partition("=")
            takes = option in kind.values
            if (
                not takes
                and text not in kind.flags
                and not re.fullmatch(r"-\d+|-[nPLksdc]\S+|-[ioe][0L]|-I[^\s-]\S*", text)
            ):
                problem = problem or f"{name} {text} is not judged"
            options.append(words[at])
            if takes and not equals:
                at += 1
                options += words[at : at + 1]
        elif skip:
            skip -= 1
        else:
            break
        at += 1
    return list(words[at:]), options, problem


def fed(inner: Sequence[Word], command: Command, options: Sequence[Word]) -> list[Word]:
    """Return what xargs runs: with paths of the workspace where it is told them safely, else with who knows."""
    safe = any(w.text in ("-0", "--null") for w in options) and _lists_paths(command.fed_by)
    new = literal(".") if safe else Word(None, False, "…")
    replaced = _mark(options)
    if replaced is None:
        return [*inner, new]
    return [
        w if w.text is None or replaced not in w.text else (new if w.text == replaced else Word(None, False, w.raw))
        for w in inner
    ]


def _mark(options: Sequence[Word]) -> str | None:
    """Return the text that xargs puts its input in the place of, by `-I {}`, `-I{}` or `--replace={}`."""
    found = None
    for at, word in enumerate(options):
        text = word.text or ""
        if text in ("-I", "--replace") and at + 1 < len(options):
            found = options[at + 1].text
        elif text.startswith("-I") and len(text) > 2:
            found = text[2:]
        elif text.startswith("--replace="):
            found = text.partition("=")[2]
    return found


def _lists_paths(command: Command | None) -> bool:
    """Tell whether a command prints paths of the workspace, ended by NULs, so that nothing else is among them."""
    texts = [word.text for word in command.words] if command is not None else []
    if not texts or None in texts:
        return False
    name, rest = texts[0], set(texts[1:])
    if name == "find":
        return "-print0" in rest and not any((t or "").startswith(("-printf", "-ls", "-print1")) for t in rest)
    if name == "git":
        return "ls-files" in rest and "-z" in rest
    if name in ("grep", "rg"):
        listing = {"-l", "-rl", "-lr", "--files-with-matches", "--files"}
        return bool(rest & listing) and bool(rest & {"-Z", "--null", "-0"})
    return False
