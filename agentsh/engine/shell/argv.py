"""Judges the arguments of one simple command: does it only read, and only inside the workspace?"""

import re
from collections.abc import Callable, Sequence

from agentsh.engine.shell.known import (
    READERS,
    SAYS,
    SCRIPTED,
    VERSION_WORDS,
    VERSIONED,
    WRITERS,
    Reader,
    Scripted,
)  # fmt: skip
from agentsh.engine.shell.words import NUMBERS, Word, literal

Reads = Callable[[Word], str | None]
"""Says why a word may not be read as a file, or None."""

# `10p`, `/x/,/y/p`, `$d`, `s/a/b/g` with or without an address: commands of sed that neither write nor run.
_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SED = re.compile(
    rf"\s*(?:{_ADDRESS}(?:\s*,\s*(?:\+?{_ADDRESS}|[+~]\d+))?\s*!?\s*)?"
    r"(?:[pdqQ=lnN]|q\d+|s/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/[gpiI\d]*"
    r"|s\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\|[gpiI\d]*|s#(?:[^#\\\n]|\\.)*#(?:[^#\\\n]|\\.)*#[gpiI\d]*)\s*"
)
_AWK_RUNS = re.compile(r"system|getline|close|[|>@`]|ENVIRON|printf?\s*>|ARGV|FILENAME\s*=")
_AWK_COMPARES = re.compile(r"(?<=[\w)\]\s])>=?\s*(?:\d|\$|NR|NF|[a-z]\w*\b)")
_JQ_READS = re.compile(r"\b(?:import|include|input_filename|modulemeta|get_search_list|env|\$__loc__)\b|\$ENV")


def harmless(name: str, arguments: Sequence[Word], reads: Reads) -> str | None:
    """Return why a command is not harmless, or None where it is. name: without its directory.

    reads: judges a file that the command would read. Wrappers, shells, git and cd are judged elsewhere.
    """
    if len(arguments) == 1 and arguments[0].text in VERSION_WORDS and name in VERSIONED:
        return None
    if name in ("test", "["):
        odd = any(
            "-v" in (word.texts or ()) or (word.texts is None and word.raw[:1] != '"' and word.raw not in NUMBERS)
            for word in arguments
        )
        return "it may compute" if odd else None
    if name in SAYS or name == "printf":
        names_files = (word for word in arguments if word.pattern and name != "[[")
        shows = next((problem for word in names_files if (problem := reads(word))), None)
        if shows or name in SAYS:
            return shows
    if name in SCRIPTED:
        return _scripted(name, SCRIPTED[name], arguments, reads)
    judged = _SPECIAL.get(name)
    if judged is not None:
        return judged(arguments)
    reader = READERS.get(name)
    if reader is not None:
        return _reader(reader, arguments, reads)
    if name in WRITERS:
        rest = [word for word in arguments if word.text not in ("-a", "--append", "-i")]
        return None if all(word.text == "/dev/null" for word in rest) else "it writes files"
    return "it may change something"


def _reader(reader: Reader, arguments: Sequence[Word], reads: Reads) -> str | None:
    plain: list[Word] = []
    given, ended, number_next = False, False, False
    if reader.lists and any(text.startswith("@") for word in arguments for text in word.texts or ("@",)):
        return "it may take more arguments from a file"
    for word in arguments:
        text = word.text
        if number_next and text is not None and text.isdigit():
            number_next = False
            continue
        number_next = False
        # A pattern or a text that is not known could turn into an option.
        risky = (reader.long or reader.short or reader.exact) and not ended
        if text is None:
            texts = word.texts
            if texts is None and (risky or not (reader.first and not given and not plain)):
                return f"what {word.raw} stands for is not known"
            if texts is not None and risky and any(t.startswith("-") for t in texts):
                return f"{word.raw} may turn into an option"
            plain.append(word)
            continue
        if text == "--" and not ended:
            ended = True
        elif text.startswith("-") and text != "-" and not ended:
            problem = _option(reader, text, reads)
            if problem:
                return problem
            given = given or _gives_pattern(reader, text)
            number_next = text in reader.numbers
        else:
            plain.append(word)
    if reader.first and not given and plain:
        if plain[0].pattern and (problem := reads(plain[0])):
            return problem
        plain.pop(0)
    if reader.most is not None and len(plain) > reader.most:
        return "it writes its second file"
    return next((problem for word in plain if (problem := reads(word))), None)


def does_more(name: str, option: str) -> bool:
    """Tell whether an option makes a reading command write, run or follow; False for commands that are not listed."""
    reader = READERS.get(name)
    return reader is not None and _option(reader, option, lambda word: None) is not None


def _gives_pattern(reader: Reader, text: str) -> bool:
    """Tell whether an option may give what else the first argument is: in a cluster (`-nex`), or abbreviated."""
    option = text.partition("=")[0]
    if text.startswith("--"):
        return any(listed.startswith(option) for listed in reader.script_options)
    letters = {listed[1] for listed in reader.script_options if not listed.startswith("--")}
    return bool(letters & set(text[1:]))


def _scripted(name: str, kind: Scripted, arguments: Sequence[Word], reads: Reads) -> str | None:
    scripts: list[Word] = []
    plain: list[Word] = []
    todo = list(arguments)
    ended = False
    while todo:
        word = todo.pop(0)
        text = word.text
        if text is None:
            if not ended and (word.texts is None or any(each.startswith("-") for each in word.texts)):
                return f"what {word.raw} stands for is not known"
            plain.append(word)
        elif ended or text == "-" or not text.startswith("-"):
            plain.append(word)
        elif text == "--":
            ended = True
        elif problem := _options(kind, text, todo, scripts):
            return problem
        ended = ended or (kind.posix and bool(plain))
    if not scripts and plain:
        scripts.append(plain.pop(0))
    problem = next((problem for script in scripts if (problem := _script(name, script))), None)
    return problem or next((problem for word in plain if (problem := reads(word))), None)


def _options(kind: Scripted, text: str, todo: list[Word], scripts: list[Word]) -> str | None:
    """Judge one word of options. What it takes of the next words is taken off `todo`."""
    unknown = f"{text} is not judged"
    taken: list[Word] = []
    if text.startswith("--"):
        option, equals, value = text.partition("=")
        count = 1 if option in kind.long_scripts else kind.long_values.get(option, 0)
        if not (count or option in kind.long) or (equals and count != 1):
            return unknown
        taken = [literal(value)] if equals else todo[:count]
        del todo[: 0 if equals else count]
        if option in kind.long_scripts:
            scripts += taken
    else:
        count = 0
        for at, letter in enumerate(text[1:], 2):
            if letter in kind.values + kind.scripts:
                taken = [literal(text[at:])] if text[at:] else todo[:1]
                del todo[: 0 if text[at:] else 1]
                count = 1
                if letter in kind.scripts:
                    scripts += taken
                break
            if letter not in kind.flags:
                return unknown
    # A value that is not known may be several words, or none.
    single = all(w.text is not None or (w.raw[:1] == '"' and "@" not in w.raw) for w in taken)
    return None if single and len(taken) == count else unknown


def _option(reader: Reader, text: str, reads: Reads) -> str | None:
    if text in reader.exact:
        return f"{text} does more than read"
    if reader.exact:
        return None
    if text.startswith("--"):
        option, given, value = text.partition("=")
        if any(listed.startswith(option) or option.startswith(listed) for listed in reader.long):
            return f"{option} does more than read"
        return _value_read(value, reads) if given else None
    if any(letter in text[1:] for letter in reader.short):
        return f"{text} does more than read"
    # A value glued to a short option (`-f/etc/x`) may be a file.
    return _value_read(text[2:], reads) if "/" in text else None


def _value_read(value: str, reads: Reads) -> str | None:
    return reads(Word((value,), False, value)) if value else None


def _script(name: str, script: Word) -> str | None:
    text = script.text
    if text is None:
        return f"what {script.raw} stands for is not known"
    if name == "sed":
        parts = [text] if _SED.fullmatch(text) else re.split(r"[;\n]", text)
        return None if all(not p.strip() or _SED.fullmatch(p) for p in parts) else "the script of sed is not judged"
    if name == "awk":
        # Only a print can be redirected: what is compared (`$3 > 5`) before the first one is no redirection.
        at = text.find("print")
        rest = _AWK_COMPARES.sub(" ", text[:at] if at >= 0 else text) + (text[at:] if at >= 0 else "")
        return "the script of awk does more than read" if _AWK_RUNS.search(rest) else None
    return "the filter of jq reads more" if _JQ_READS.search(text) else None


def _printf(arguments: Sequence[Word]) -> str | None:
    first = arguments[0] if arguments else None
    if first is not None and (first.texts is None or first.pattern or any(t.startswith("-") for t in first.texts)):
        return "it may set a variable"
    return None


def _date(arguments: Sequence[Word]) -> str | None:
    allowed = {"-u", "--utc", "--universal", "-R", "-I", "--iso-8601", "--rfc-email"}
    for number, word in enumerate(arguments):
        text = word.text or ""
        follows = number > 0 and arguments[number - 1].text in ("-d", "--date")
        if text.startswith(("+", "-I", "--date=", "--iso-8601=", "--rfc-3339=")) or text in allowed or follows:
            continue
        if text not in ("-d", "--date"):
            return "it may set the clock"
    return None


def _hostname(arguments: Sequence[Word]) -> str | None:
    return "it may set the name" if any(word.text not in ("-s", "-f", "-i", "-I") for word in arguments) else None


def _set(arguments: Sequence[Word]) -> str | None:
    options = ("pipefail", "errexit", "nounset", "xtrace", "noglob")
    return None if all(re.fullmatch(r"[-+][euxfo]+", w.text or "") or w.text in options for w in arguments) else "set"


def _read_builtin(arguments: Sequence[Word]) -> str | None:
    ok = all(re.fullmatch(r"-[rs]+|[a-z_][a-z0-9_]*", word.text or "") for word in arguments)
    return None if ok else "it sets variables"


def _nothing_after(arguments: Sequence[Word]) -> str | None:
    return "it sets something" if arguments else None


_SPECIAL: dict[str, Callable[[Sequence[Word]], str | None]] = {
    "printf": _printf,
    "date": _date,
    "hostname": _hostname,
    "set": _set,
    "read": _read_builtin,
    "locale": _nothing_after,
    "df": lambda arguments: None if all((w.text or "x") in ("-h", "-T", "-i", ".") for w in arguments) else "df",
    "jobs": lambda arguments: (
        None if all(re.fullmatch(r"-[lprs]+|%\d+", w.text or "") for w in arguments) else "jobs"
    ),
    "popd": _nothing_after,
    "local": lambda arguments: None if all(re.fullmatch(r"[a-z_]\w*", w.text or "") for w in arguments) else "local",
}
