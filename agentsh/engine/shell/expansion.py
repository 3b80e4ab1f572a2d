"""Reads the words of a shell line: what each can stand for, and what runs inside it."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentsh.engine.shell.words import NUMBERS, Command, Redirect, Unreadable, Word

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_TEXTS = 64
"""Values that a word is followed through (`for f in a b; do cat $f`)."""

_BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*")
_BLANK_IN_LINE = re.compile(rb"(?:[ \t]|\\\n)*")
_META = frozenset(b" \t\n;&|()")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d|[@*_-]")
_EXPANSION_OPERATORS = frozenset({"${", "}", ":-", "-", ":+", "+", ":?", "#", "##", "%", "%%"})
_ARITHMETIC = frozenset(
    {"number", "binary_expression", "parenthesized_expression", "unary_expression", "postfix_expression"}
)


class WordReader:
    """Reads words of one line. values: of the variables of loops around here. numbers: variables that hold one.

    on_statement, on_redirect: read what stands inside of `$(…)`.
    """

    def __init__(
        self,
        source: bytes,
        on_statement: "Callable[[Node], object]",
        on_redirect: "Callable[[Node], Redirect]",
        add: Callable[[Command], None],
    ) -> None:
        self.values: dict[str, tuple[Word, ...]] = {}
        self.numbers: frozenset[str] = frozenset()
        self._source = source
        self._on_statement = on_statement
        self._on_redirect = on_redirect
        self._add = add

    def word(self, node: "Node") -> Word:
        """Return what a node stands for; whatever runs inside of it is read too.

        Raises:
            Unreadable: it cannot be told.
        """
        raw = self.text(node)
        texts, pattern = self._value(node)
        if texts is not None and len(texts) > MAX_TEXTS:
            texts = None
        if texts is not None and node.type in ("word", "concatenation") and raw.startswith("~"):
            texts = tuple("/" + text for text in texts)  # somebody's home: outside, whoever's it is
        return Word(texts, pattern, raw)

    def _value(self, node: "Node") -> tuple[tuple[str, ...] | None, bool]:
        """Return what a word can stand for, and whether it is a pattern; whatever runs inside is read too."""
        kind, raw = node.type, self.text(node)
        if kind in ("word", "number", "variable_name"):
            return _unescaped(raw)
        if kind == "raw_string":
            return (raw[1:-1],), False
        if kind == "ansi_c_string":
            return ((raw[2:-1],) if "\\" not in raw else None), False
        if kind == "concatenation":
            return self._joined(node)
        if kind == "string":
            return self._quoted(node)
        if kind in ("command_substitution", "process_substitution"):
            self._substitution(node)
            # What `<(…)` stands for is a pipe from commands that are judged: as good as any file of the workspace.
            return ((".",) if raw.startswith("<(") else None), False
        if kind == "simple_expansion":
            return self._variable(raw, quoted=False)
        if kind == "expansion":
            self._expansion(node)
            return None, False
        if kind == "arithmetic_expansion":
            self._arithmetic(node)
            return None, False
        if kind == "brace_expression":
            return None, False
        if kind == "command_name":
            return self._joined(node)
        raise Unreadable(f"{kind.replace('_', ' ')} is not judged")

    def _joined(self, node: "Node") -> tuple[tuple[str, ...] | None, bool]:
        at = node.start_byte
        texts: tuple[str, ...] | None = ("",)
        pattern = False
        braces = ""
        for child in node.children:
            if child.start_byte != at:
                raise Unreadable("a word with a gap")
            at = child.end_byte
            more, is_pattern = self._value(child)
            pattern = pattern or is_pattern
            braces += self.text(child) if child.type in ("word", "number") else "x"
            texts = None if texts is None or more is None else tuple(a + b for a in texts for b in more)
            if texts is not None and len(texts) > MAX_TEXTS:
                texts = None
        if at != node.end_byte:
            raise Unreadable("a word with a gap")
        if "{" in braces and ("," in braces or ".." in braces):
            return None, pattern
        return texts, pattern

    def _quoted(self, node: "Node") -> tuple[tuple[str, ...] | None, bool]:
        """Read a double-quoted string; what stands between its parts is text too."""
        texts: tuple[str, ...] | None = ("",)
        at = node.start_byte + 1
        for child in [*node.children[1:-1], None]:
            begin = node.end_byte - 1 if child is None else child.start_byte
            gap = self._source[at:begin].decode()
            if child is None:
                more: tuple[str, ...] | None = (_in_quotes(gap),)
            elif child.type == "string_content":
                more = (_in_quotes(gap + self.text(child)),)
            elif child.type == "simple_expansion":
                more = self._variable(self.text(child), quoted=True)[0]
                more = None if more is None else tuple(_in_quotes(gap) + m for m in more)
            elif child.type in ("expansion", "command_substitution", "arithmetic_expansion"):
                _in_quotes(gap)
                more = self._value(child)[0]
            else:
                raise Unreadable("a string that is not judged")
            at = begin if child is None else child.end_byte
            texts = None if texts is None or more is None else tuple(a + b for a in texts for b in more)
            if texts is not None and len(texts) > MAX_TEXTS:
                texts = None
        return texts, False

    def _variable(self, raw: str, *, quoted: bool) -> tuple[tuple[str, ...] | None, bool]:
        """Return the values of the variable of a loop around here; of all others nothing is known."""
        if raw in NUMBERS:
            return None, False
        name = raw[1:]
        if not _VARIABLE.fullmatch(name):  # `"5$ $(x)"`: the grammar takes the rest of the string for a name
            raise Unreadable(f"{raw} is not judged")
        values = self.values.get(name)
        if values is None or any(value.texts is None for value in values):
            return None, False
        texts = tuple(text for value in values for text in value.texts or ())
        if not quoted and any(re.search(r"[\s*?\[]", text) for text in texts):
            return (None, False) if not all(value.pattern for value in values) else (texts, True)
        return texts, any(value.pattern for value in values)

    def _expansion(self, node: "Node") -> None:
        for child in node.children:
            if child.type in ("variable_name", "special_variable_name", "regex"):
                if child.type == "regex":
                    self.inert(child)
            elif not child.is_named:
                if self.text(child) not in _EXPANSION_OPERATORS:
                    raise Unreadable(f"{self.text(node)} is not judged")
            else:
                self._value(child)

    def _substitution(self, node: "Node") -> None:
        self.covered(node)
        for child in node.children:
            if child.type in ("$(", "`", ")", "<(", ">(", ";", "&", "comment", "$`"):
                continue
            if child.type.endswith("_redirect"):  # `$(<file)`
                self._add(Command((), (), (self._on_redirect(child),)))
            else:
                self._on_statement(child)
        if self.text(node).startswith("`") and "\\" in self.text(node):
            raise Unreadable("backquotes with a backslash in them")

    def _arithmetic(self, node: "Node") -> None:
        """Numbers only: any other variable may hold a text whose index runs a command."""
        for child in node.children:
            if self.is_number(self.text(child)):
                continue
            if child.is_named and child.type not in _ARITHMETIC:
                raise Unreadable("arithmetic is not judged")
            self._arithmetic(child)

    def is_number(self, raw: str) -> bool:
        """Tell whether a piece of a line is a number, whatever happened, or a variable that holds one."""
        name = re.fullmatch(r'("?)(?:\$(\w+)|\$\{(\w+)\}|(\w+))\1', raw)
        return raw in NUMBERS or (name is not None and (name[2] or name[3] or name[4]) in self.numbers)

    def inert(self, node: "Node") -> None:
        """Accept a pattern that holds nothing that would run."""
        if re.search(r"[$`]", self.text(node)):
            raise Unreadable("a pattern that is not judged")

    def text(self, node: "Node") -> str:
        """Return a node as it was written."""
        return self._source[node.start_byte : node.end_byte].decode()

    def covered(self, node: "Node") -> None:
        """Refuse a node that leaves out anything but blanks between its children; here-documents come in between."""
        at, named = node.start_byte, False
        blank = _BLANK_IN_LINE if node.type.endswith("command") or node.type.endswith("redirect") else _BLANK
        for child in sorted(node.children, key=lambda c: c.start_byte):
            if child.is_missing:
                raise Unreadable("it is no valid shell line")
            edge = set(self._source[at - 1 : at + 1])
            touches = child.start_byte == at and named and child.is_named
            if touches and not child.type.endswith("_redirect") and not edge & _META:
                raise Unreadable("two words without anything between them")
            named = child.is_named
            gap = self._source[at : child.start_byte]
            if gap and not blank.fullmatch(gap):
                raise Unreadable("a part of it is not understood")
            if child.type == "comment" and at and self._source[child.start_byte - 1] not in b" \t\n;&|()":
                raise Unreadable("a comment in the middle of a word")
            at = max(at, child.end_byte)
        if node.children and not _BLANK.fullmatch(self._source[at : node.end_byte]):
            raise Unreadable("a part of it is not understood")


def _unescaped(raw: str) -> tuple[tuple[str, ...] | None, bool]:
    """Return an unquoted word without its backslashes, and whether it is a pattern.

    Raises:
        Unreadable: it holds something that bash would expand and the grammar takes for text.
    """
    plain, pattern, at = [], False, 0
    while at < len(raw):
        char = raw[at]
        if char == "\\":
            at += 1
            plain.append(raw[at : at + 1].replace("\n", ""))
        elif char in "`'\"<>();&| \t\n" or (char == "$" and at + 1 < len(raw)):
            raise Unreadable("a word that is not judged")
        else:
            pattern = pattern or char in "*?["
            plain.append(char)
        at += 1
    return ("".join(plain),), pattern


def _in_quotes(raw: str) -> str:
    """Return what a piece between double quotes stands for.

    Raises:
        Unreadable: it holds something that bash would expand and the grammar takes for text.
    """
    bare = re.sub(r"\\[\\`$\"\n]", "", raw)
    if "`" in bare or re.search(r"\$[({\[A-Za-z_0-9@*#?!-]", bare):
        raise Unreadable("a string that is not judged")
    return re.sub(r"\\([\\`$\"\n])", lambda m: m[1].replace("\n", ""), raw)
