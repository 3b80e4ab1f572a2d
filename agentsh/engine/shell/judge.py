"""Judges a whole shell line: every simple command of it, through wrappers, substitutions and nested shells."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol

from agentsh.base.light import dataclass
from agentsh.engine.shell import argv, git, reach
from agentsh.engine.shell.known import NEUTRAL_VARIABLES, SHELLS, WRAPPERS, Wrapper
from agentsh.engine.shell.syntax import read_line
from agentsh.engine.shell.words import ASSIGNABLE, Command, Redirect, Unreadable, Word, literal
from agentsh.engine.shell.wrappers import fed, peel

MAX_NESTED = 8
"""Shells and evals inside each other that are followed."""
MAX_PLACES = 8
"""Directories that a line may `cd` to before all is asked."""

MANY = 1_000
"""Files that a pattern may stand for; `Tree.expands` stops there."""

_PROGRAM_DIRECTORIES = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})
_DECLARES = frozenset({"export", "declare", "typeset", "readonly", "unset"})
_RUN_LATER = frozenset({"eval", "trap"})
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


NEVER = 1 << 30
"""Of `Part.sharp`: no rule with an open end covers it."""


class Tree(Protocol):
    """What the judge has to know of the files. Paths are relative to the workspace's root, or absolute."""

    def real(self, path: str) -> str | None:
        """Return `path` relative to the root with every link followed, whether or not it is there; None outside."""
        ...

    def expands(self, pattern: str) -> list[str]:
        """Return the paths that a pattern stands for now, spelled as the shell would; many at most 1,000."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a call does. tool: whose rules hold for it: `shell`, `read`, `write`, or the tool's own name.

    words: of a command, for rules by prefix; a word that is not known is None. paths: files it may be about, as
    spelled and with links followed, relative to the root where they are inside. problem: why it is not harmless, or
    None. shown: for people.
    called: the words that a rule which allows is held against: with variables, global options and the directory of
    the program, which words leave out so that rules which forbid find it; empty: words. sharp: how many of these, at
    least, a rule that allows any further words must name: up to the last that does more than such a rule means.
    """

    tool: str
    shown: str
    words: tuple[str | None, ...] = ()
    paths: tuple[str, ...] = ()
    problem: str | None = None
    called: tuple[str | None, ...] = ()
    sharp: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a line does. unreadable: why nothing can be said about it; parts are then empty."""

    parts: tuple[Part, ...]
    unreadable: str | None = None

    @property
    def harmless(self) -> bool:
        """Whether nothing of it needs a question."""
        return self.unreadable is None and all(part.problem is None for part in self.parts)


def judge(line: str, tree: Tree, cwd: str = ".") -> Judgement:
    """Return what a shell line does. cwd: where it starts, relative to the root."""
    judge = _Judge(tree, cwd)
    try:
        judge.line(line, 0)
    except Unreadable as error:
        return Judgement((), error.why)
    return Judgement(tuple(judge.parts))


class _Judge:
    """Collects parts. places: directories in which a command may find itself.

    known: nothing before made `cd` mean something else, or may take the shell back to where it was.
    """

    def __init__(self, tree: Tree, cwd: str) -> None:
        self.parts: list[Part] = []
        self._tree = tree
        self._places = [cwd]
        self._known = True
        self._again = False

    def line(self, text: str, depth: int) -> None:
        if depth > MAX_NESTED:
            raise Unreadable("shells nested too deeply")
        line = read_line(text)
        for command in line.commands:
            self._command(command, depth)

    def _command(self, command: Command, depth: int) -> None:
        for redirect in command.redirects:
            self._redirect(redirect)
        problem = self._assigns(command)
        if not command.words:
            if problem or command.assigns:
                self.parts.append(Part("shell", command.shown, (), (), problem))
            return
        self._words(command.words, command, problem, depth)

    def _words(self, words: Sequence[Word], command: Command, problem: str | None, depth: int) -> None:
        """Judge one command; what it wraps is judged as a command of its own."""
        name = self._name(words[0])
        if isinstance(name, _Why):
            self._add(words, command, problem or name.text)
            return
        rest = list(words[1:])
        if name in WRAPPERS and not (name == "command" and rest and (rest[0].text or "") in ("-v", "-V")):
            self._wrapper(name, WRAPPERS[name], words, command, problem, depth)
        elif name in SHELLS:
            self._shell(words, command, problem, depth)
        elif name in _RUN_LATER:
            self._later(name, words, command, problem, depth)
        elif name in ("source", "."):
            self._add(words, command, problem or "it runs a file", paths=rest)
        elif name in ("cd", "pushd"):
            self._known = self._known and name == "cd"
            self._add(words, command, problem or self._cd(rest, command if depth == 0 else None), paths=rest)
        elif name == "find" and any(word.text in _FIND_RUNS for word in rest):
            self._find(words, command, problem, depth)
        elif name == "git":
            self._git(words, command, problem)
        elif name in _DECLARES:
            # With assignments of neutral names it only sets those; anything else can change what later words mean.
            plain = [word for word in rest if word.text is None or not self._neutral(word.text)]
            self._add(words, command, problem or (f"{name} sets something" if plain else None))
        else:
            why = problem or ("-v computes" if name == "wait" and rest else None)
            why = why or (None if name == "command" else argv.harmless(name, rest, self._reads))
            self._add(words, command, why, paths=rest)

    # Kinds of commands --------------------------------------------------------------------------------------------

    def _wrapper(
        self, name: str, kind: Wrapper, words: Sequence[Word], command: Command, problem: str | None, depth: int
    ) -> None:
        inner, options, why = peel(name, kind, words[1:], self._neutral)
        self._add(words, command, problem or kind.asks or why, paths=words[1:], allowable=why is None)
        if not inner:
            return
        if name == "xargs":
            inner = fed(inner, command, options)
        self._words(inner, command, None, depth)

    def _shell(self, words: Sequence[Word], command: Command, problem: str | None, depth: int) -> None:
        rest = words[1:]
        for at, word in enumerate(rest):
            text = word.text
            if text is None or not text.startswith("-") or text == "--":
                break
            if re.fullmatch(r"-[a-z]*c", text) and not text.startswith("--"):
                script = rest[at + 1].text if at + 1 < len(rest) else None
                odd = bool(set(text[1:]) - set("celuxv")) or at > 0
                if script is None or odd:
                    self._add(words, command, problem or "what it runs is not known")
                    return
                self._add(words, command, problem)
                self.line(script, depth + 1)
                return
            if not re.fullmatch(r"-[eux]+", text):
                break
        self._add(words, command, problem or "it runs a file or what it is given", paths=rest)

    def _later(self, name: str, words: Sequence[Word], command: Command, problem: str | None, depth: int) -> None:
        self._known = False
        rest = words[1:] if name == "eval" else words[1:2]
        texts = [word.text for word in rest]
        if any(text is None for text in texts):
            self._add(words, command, problem or "what it runs is not known")
            return
        self._add(words, command, problem)
        again, self._again = self._again, self._again or name == "trap" or command.repeats
        self.line(" ".join(text for text in texts if text is not None), depth + 1)
        self._again = again

    def _find(self, words: Sequence[Word], command: Command, problem: str | None, depth: int) -> None:
        """Judge `find … -exec CMD {} ;`: CMD is given names of plain files, where find is told `-type f`."""
        plain: list[Word] = []
        found: list[list[Word]] = []
        at = 0
        while at < len(words):
            if words[at].text in _FIND_RUNS:
                end = next((i for i in range(at + 1, len(words)) if words[i].text in (";", "+")), len(words))
                found.append(list(words[at + 1 : end]))
                at = end + 1
            else:
                plain.append(words[at])
                at += 1
        files = any(a.text == "-type" and b.text == "f" for a, b in pairwise(plain))
        why = argv.harmless("find", plain[1:], self._reads)
        self._add(plain, command, problem or why, paths=plain[1:])
        for inner in found:
            known = [
                literal(".")
                if w.text == "{}" and files
                else Word(None, False, w.raw)
                if "{}" in (w.text or "")
                else w
                for w in inner
            ]
            if known:
                self._words(known, command, None, depth)

    def _git(self, words: Sequence[Word], command: Command, problem: str | None) -> None:
        options, rest, why = git.split(words[1:])
        places = list(self._places)
        for flag, directory in pairwise(options):
            if flag.text == "-C" and not why:
                why = self._cd([directory])
                self._places = self._places[len(places) :] or self._places
        odd = [*words[1 : len(words) - len(rest)]] if why else []
        why = why or git.harmless(rest, self._reads)
        self._add([words[0], *rest], command, problem or why, paths=rest, odd=odd)
        self._places = places

    def _cd(self, arguments: Sequence[Word], command: Command | None = None) -> str | None:
        """Go to a directory; say why not. command: `cd` itself, of the line and not of a shell in it."""
        plain = [word for word in arguments if word.text not in ("-P", "-L", "--")]
        text = plain[0].text if len(plain) == 1 else None
        if text is None or text.startswith("-"):
            return "where it goes is not known"
        if self._again or (command is not None and command.repeats):
            return "it may run again, from where it was then"
        new, spelled = [], [posixpath.join(place, text) for place in self._places]
        for place, whole in zip(self._places, spelled, strict=True):
            path = _joined(place, text)
            found = [self._tree.real(path), self._tree.real(whole)]
            if None in found:
                return "it leaves the workspace"
            new += [path, *(each for each in found if each is not None)]  # `..` of a file is where a link leads
        new = list(dict.fromkeys(new))
        how = command.enters if command is not None and self._known and command.words[1:] == tuple(arguments) else ""
        if how == "guards" or (how == "runs" and self._are_there([*spelled, *new])):
            self._places = []
        if len(self._places) + len(new) > MAX_PLACES:
            return "it goes to too many places"
        self._places += [place for place in new if place not in self._places]
        return None

    def _are_there(self, places: Iterable[str]) -> bool:
        """Tell whether these are directories, and nothing before may have removed them."""
        odd = any(part.problem is not None for part in self.parts)
        return not odd and all(self._tree.expands(f"{place}/.") == [f"{place}/."] for place in places)

    # Words and files ----------------------------------------------------------------------------------------------

    def _name(self, word: Word) -> "str | _Why":
        text = word.text
        if text is None:
            return _Why("which command it is is not known before it runs")
        directory, _, name = text.rpartition("/")
        if directory and directory not in _PROGRAM_DIRECTORIES:
            return _Why("it is a program of its own")
        return name

    def _reads(self, word: Word) -> str | None:
        """Say why a word may not be read as a file."""
        if word.texts is None:
            return f"what {word.raw} stands for is not known"
        for text in word.texts:
            for place in self._places:
                path = _joined(place, text)
                found = self._tree.expands(path) if word.pattern else []
                spelled = posixpath.join(place, text)  # the system follows a link before it goes up
                if not all(self._tree.real(each) is not None for each in [path, spelled, *found]):
                    return f"{word.raw} is outside of the workspace"
                if len(found) >= MANY:
                    return f"{word.raw} stands for too many files"
                prefix = "" if place == "." else place + "/"
                if any(each.removeprefix(prefix).startswith("-") for each in found):
                    return f"{word.raw} stands for something that looks like an option"
        return None

    def _redirect(self, redirect: Redirect) -> None:
        operator, target = redirect.operator, redirect.target
        if target is None or operator == "<<":
            return
        shown = f"{operator} {target.raw}"
        text = target.text
        if operator in ("<&", ">&") and text is not None and re.fullmatch(r"\d+-?|-", text):
            return
        if operator == "<<<":
            return
        if operator == "<":
            self.parts.append(Part("read", shown, (), self._paths([target]), self._reads(target)))
        elif text not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
            outside = None if text is None else self._reads(literal(text))
            problem = outside or ("where it writes is not known" if text is None else "it writes a file")
            self.parts.append(
                Part("write" if not outside and text else "shell", shown, (), self._paths([target]), problem)
            )

    def _assigns(self, command: Command) -> str | None:
        reading = bool(command.words) and command.words[0].text == "read"
        for name, _ in command.assigns:
            if reading and name == "IFS":  # how it takes a line apart
                continue
            if not self._neutral(name) and (command.words or not ASSIGNABLE.fullmatch(name)):
                return f"{name} may change what commands do"
        return None

    @staticmethod
    def _neutral(name: str) -> bool:
        return name in NEUTRAL_VARIABLES or name.startswith("LC_")

    def _paths(self, words: Iterable[Word]) -> tuple[str, ...]:
        """Return every file that words may be about: as they are, and what stands behind a `=`."""
        found: dict[str, None] = {}
        for word in words:
            for text in word.texts or ():
                for path in {text, text.rpartition("=")[2]} - {""}:
                    for place in self._places:
                        joined, spelled = _joined(place, path), self._tree.real(posixpath.join(place, path))
                        found |= {} if spelled is None else {spelled: None}
                        for each in [joined, *(self._tree.expands(joined) if word.pattern else ())]:
                            found[each] = None
                            found[self._tree.real(each) or each] = None
        return tuple(found)

    def _add(
        self,
        words: Sequence[Word],
        command: Command,
        problem: str | None,
        *,
        paths: Iterable[Word] = (),
        odd: Sequence[Word] = (),
        allowable: bool = True,
    ) -> None:
        """Add a part. odd: words after the name that rules which forbid pass over."""
        first = words[0].text
        assigns = command.assigns if words is command.words else ()
        name = None if first is None else first.rpartition("/")[2]
        texts = (name, *(word.text for word in words[1:]))
        shown = " ".join(" ".join([*(word.raw for word in words), *(f"{n}={w.raw}" for n, w in assigns)]).split())
        called: tuple[str | None, ...] = ()
        sharp = 0 if allowable else NEVER
        if problem is not None and allowable:
            sets = [None if w.text is None else f"{n}={w.text}" for n, w in command.assigns if not self._neutral(n)]
            after = sets if name in _DECLARES else []  # `export A=1`: what it sets are its words
            before = [*([] if after else sets), self._program(words[0]), *(word.text for word in odd)]
            called = (*before, *texts[1:], *after)
            sharp = reach.sharp(name, words[1:], self._reads)
            sharp = sharp + len(before) if sharp or len(before) > 1 else 0
        self.parts.append(Part("shell", shown, texts, self._paths(paths), problem, called, sharp))

    def _program(self, word: Word) -> str | None:
        """Return how a rule names a program: a bare name, `./` and its path below the root, or its absolute path."""
        text = word.text
        if text is None:
            return None
        directory, _, name = text.rpartition("/")
        if not text.count("/") or directory in _PROGRAM_DIRECTORIES:
            return name
        found = {_joined(place, text) for place in self._places}
        path = found.pop()
        return None if found else path if path.startswith("/") else f"./{path}"


@dataclass(frozen=True, slots=True)
class _Why:
    text: str


def _joined(place: str, path: str) -> str:
    """Return a path in the directory `place`, without `.` and `..` as far as spelling goes."""
    return posixpath.normpath(path if path.startswith("/") else posixpath.join(place, path))
