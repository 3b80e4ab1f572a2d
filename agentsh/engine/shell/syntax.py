"""Reads a shell line with tree-sitter's grammar of bash into simple commands.

A parser that mends errors can take a line for something else than bash does. So only node kinds that are known here
pass, whatever was mended is refused, every byte between two tokens must be blank, and the places where the grammar
is known to differ from bash (here-documents, arithmetic, joined lines) have a check of their own; in doubt a line is
`Unreadable`, which means that the user is asked. tests/engine/test_shell_against_bash.py holds it against a real one.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal

from agentsh.engine.shell.expansion import WordReader
from agentsh.engine.shell.numbers import numeric
from agentsh.engine.shell.places import all_nodes, entering
from agentsh.engine.shell.words import ASSIGNABLE, Command, Line, Redirect, Unreadable, Word, names

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LINE_BYTES = 20_000
"""A longer line is not judged. Models send scripts of a few kilobytes at most."""
MAX_DEPTH = 60

_RESERVED = names("if then else elif fi do done case esac while until for function in select { } ! ]]")
_REPEAT = frozenset({"for_statement", "while_statement", "function_definition"})
_OF_THEIR_OWN = frozenset({"subshell"})  # a shell: where it goes ends with it
_SETTERS = frozenset({"read", "mapfile", "readarray", "printf", "eval"})
# What bash takes for blanks are space, tab and newline; the grammar takes every blank of Unicode for one.
_ODD = re.compile(r"[^\S \t\n]|[\x00-\x08\x0b-\x1f\x7f]|[\ud800-\udfff]")
# bash joins the two sides of an escaped newline into one word.
_JOINED = re.compile(r"[^ \t\n]\\\n[^ \t\n]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMERIC_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"})
_INSIDE_TEST = frozenset(
    {"binary_expression", "unary_expression", "negated_expression", "parenthesized_expression", "test_operator"}
)


def read_line(text: str) -> Line:
    """Return the commands of a shell line.

    Raises:
        Unreadable: it cannot be told what bash would run.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_LINE_BYTES:
        raise Unreadable("it is too long to be judged")
    if _ODD.search(text):
        raise Unreadable("it holds a character that is taken for a blank by some and not by others")
    if _JOINED.search(text):
        raise Unreadable("a word goes on in the next line")
    source = text.encode()
    root = _parser().parse(source).root_node
    if root.has_error:
        raise Unreadable("it is no valid shell line")
    reader = _Reader(source)
    reader.whole(root)
    return reader.line


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _Reader:
    """Walks the tree once. line: what was found."""

    def __init__(self, source: bytes) -> None:
        self.line = Line()
        self._source = source
        self._depth = 0
        self._words = WordReader(
            source, lambda node: self._statement(node, None), self._redirect, self.line.commands.append
        )
        self._assigned: dict[str, int] = {}
        self._enters: dict[int, Literal["", "runs", "guards"]] = {}
        self._repeats = 0
        self._handlers: dict[str, Callable[[Node, Command | None, tuple[Redirect, ...]], Command | None]] = {
            "command": self._command,
            "declaration_command": self._command,
            "unset_command": self._command,
            "variable_assignment": self._bare_assignment,
            "redirected_statement": self._redirected,
            "pipeline": self._pipeline,
            "for_statement": self._for,
            "test_command": self._test,
            "case_statement": self._case,
        }

    def whole(self, root: "Node") -> None:
        ends = self._source[: root.start_byte] + self._source[root.end_byte :]
        if ends.strip(b" \t\n"):
            raise Unreadable("a part of it is not understood")
        self._count_assignments(root)
        self._enters = entering(root)
        self._words.numbers = numeric(root, self._source.decode())
        self._statements(root, None, ())

    # Statements ---------------------------------------------------------------------------------------------------

    _PLAIN = names("""
    program list subshell compound_statement negated_command while_statement if_statement elif_clause
    else_clause do_group function_definition
""")
    _MARKS = names("""
    && || ; & ( ) { } ! while until if then elif else fi do done in for case esac function | |& select
""") | {"\n"}

    def _statement(
        self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...] = ()
    ) -> Command | None:
        """Read one statement; return its last simple command, which a pipe would read from."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        repeats = self._repeats
        if node.type in _OF_THEIR_OWN:
            self._repeats = 0
        elif node.type in _REPEAT:
            self._repeats += 1
        try:
            handler = self._handlers.get(node.type)
            if handler is not None:
                return handler(node, fed_by, redirects)
            if node.type in self._PLAIN:
                return self._statements(node, fed_by, redirects)
            raise Unreadable(f"{node.type.replace('_', ' ')} is not judged")
        finally:
            self._depth -= 1
            self._repeats = repeats

    def _statements(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command | None:
        self._words.covered(node)
        if node.type == "negated_command" and self._source[node.start_byte + 1] not in b" \t\n(":
            raise Unreadable("`!` that begins a word")
        if redirects:  # of a group: judged once, as if by a command of its own
            self.line.commands.append(Command((), (), redirects))
        last = None
        for child in node.children:
            if child.type == "comment" or child.type in self._MARKS:
                continue
            if node.type == "function_definition" and child.type == "word":
                if not _NAME.fullmatch(self._words.text(child)):
                    raise Unreadable("a function with an odd name")
                continue
            last = self._statement(child, fed_by)
        return last

    def _command(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command:
        self._words.covered(node)
        words: list[Word] = []
        assigns: list[tuple[str, Word]] = []
        found = list(redirects)
        for child in node.children:
            kind = child.type
            if kind == "command_name":
                words.append(self._words.word(child.children[0] if child.child_count == 1 else child))
            elif kind == "variable_assignment":
                assigns.append(self._assignment(child))
            elif kind == "variable_name" or not child.is_named:  # `export X`, and the name of a declaration itself
                if node.type == "command":
                    raise Unreadable(f"{self._words.text(child)!r} is not judged")
                words.append(Word((self._words.text(child),), False, self._words.text(child)))
            elif kind.endswith("_redirect"):
                found.append(self._redirect(child))
            elif kind != "comment":
                words.append(self._words.word(child))
        if words and words[0].raw in _RESERVED:
            raise Unreadable(f"{words[0].raw} in an odd place")
        enters = self._enters.get(node.start_byte, "")
        command = Command(tuple(words), tuple(assigns), tuple(found), fed_by, enters, self._repeats > 0)
        self.line.commands.append(command)
        return command

    def _bare_assignment(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command:
        command = Command((), (self._assignment(node),), redirects)
        self.line.commands.append(command)
        return command

    def _assignment(self, node: "Node") -> tuple[str, Word]:
        name, *rest = node.children
        if (
            name.type != "variable_name"
            or not _NAME.fullmatch(self._words.text(name))
            or not rest
            or rest[0].type not in ("=", "+=")
            or len(rest) > 2
        ):
            raise Unreadable("an assignment to a part of an array")
        return self._words.text(name), self._words.word(rest[1]) if len(rest) == 2 else Word(("",), False, "")

    def _redirected(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command | None:
        self._words.covered(node)
        body = [child for child in node.children if not child.type.endswith("_redirect")]
        documents = [child for child in node.children if child.type == "heredoc_redirect"]
        pipes = [pipe for document in documents for pipe in document.children if pipe.type == "pipeline"]
        if pipes and (len(documents) > 1 or [child.type for child in body] != ["command"]):
            raise Unreadable("a here-document that is not judged")
        found = redirects + tuple(self._redirect(c) for c in node.children if c.type.endswith("_redirect"))
        if not body:
            self.line.commands.append(Command((), (), found))
            return None
        if len(body) != 1 or (body[0].start_byte != node.start_byte and body[0].type != "command" and found):
            raise Unreadable("a redirection that is not judged")
        if body[0].type in ("pipeline", "list"):  # the grammar hangs it on the whole, bash on the last command
            self.line.commands.append(Command((), (), found))
            return self._statement(body[0], fed_by)
        last = self._statement(body[0], fed_by, found)
        for pipe in pipes:
            last = self._pipeline(pipe, last, ())
        return last

    def _pipeline(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command | None:
        self._words.covered(node)
        for child in node.children:
            if child.type not in ("|", "|&", "comment"):
                fed_by = self._statement(child, fed_by)
        return fed_by

    def _for(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command | None:
        self._words.covered(node)
        if redirects:
            self.line.commands.append(Command((), (), redirects))
        name = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        if name is None or body is None:
            raise Unreadable("a loop that is not judged")
        marks = {"for", "select", "in", ";", "\n", "comment"}
        values = tuple(
            self._words.word(c)
            for c in node.children
            if c.type not in marks and c not in (name, body) and c.type != "comment"
        )
        variable = self._words.text(name)
        if not ASSIGNABLE.fullmatch(variable):
            raise Unreadable(f"{variable} may change what commands do")
        if self._assigned.get(variable) == 1 and values:
            self._words.values[variable] = values
        try:
            return self._statement(body, fed_by)
        finally:
            self._words.values.pop(variable, None)

    def _case(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command | None:
        self._words.covered(node)
        if redirects:
            self.line.commands.append(Command((), (), redirects))
        for child in node.children:
            if child.type != "case_item":
                if child.is_named and child.type != "comment":
                    self._words.word(child)
                continue
            self._words.covered(child)
            in_pattern = True
            for part in child.children:
                if part.type == ")":
                    in_pattern = False
                elif in_pattern:
                    self._words.inert(part)
                elif part.type not in self._MARKS | {";;", ";&", ";;&"} and part.type != "comment":
                    self._statement(part, fed_by)
        return None

    def _test(self, node: "Node", fed_by: Command | None, redirects: tuple[Redirect, ...]) -> Command:
        name = "[[" if self._words.text(node).startswith("[[") else "test"
        words = [Word((name,), False, name)]
        self._test_words(node, words, arithmetic=False)
        command = Command(tuple(words), (), redirects)
        self.line.commands.append(command)
        return command

    def _test_words(self, node: "Node", words: list[Word], *, arithmetic: bool, double: bool | None = None) -> None:
        self._words.covered(node)
        if node.children and node.children[0].type == "((":
            raise Unreadable("arithmetic is not judged")
        if double is None:
            double = self._words.text(node).startswith("[[")
        for child in node.children:
            text = self._words.text(child)
            if child.type in _INSIDE_TEST and child.type != "test_operator":
                operators = {self._words.text(part) for part in child.children if part.type == "test_operator"}
                # `[[ x -eq y ]]` computes y, and `-v y` too: an index in it may run a command.
                counts = bool(operators & _NUMERIC_TESTS) and (double or arithmetic or "-v" in operators)
                self._test_words(child, words, arithmetic=counts or arithmetic, double=double)
            elif child.type in ("regex", "extglob_pattern"):
                self._words.inert(child)
            elif child.is_named and child.type not in ("test_operator", "comment"):
                word = self._words.word(child)
                counted = "$" in word.raw and self._words.is_number(word.raw)
                number = counted or (word.text or "").lstrip("-").isdigit()
                if arithmetic and not number:
                    raise Unreadable("arithmetic is not judged")
                if not (double or number) and word.texts is None and not word.raw.startswith('"'):
                    raise Unreadable("a test of something that may fall apart into more words")
                words.append(Word(("0",), False, word.raw) if counted else word)  # whichever it is
            elif "$" in text or "`" in text:
                raise Unreadable("a test that is not judged")

    # Redirections -------------------------------------------------------------------------------------------------

    def _redirect(self, node: "Node") -> Redirect:
        if node.type == "heredoc_redirect":
            return self._heredoc(node)
        self._words.covered(node)
        operator, target = "", None
        for child in node.children:
            if child.type == "file_descriptor":
                continue
            if not child.is_named and not operator:
                operator = self._words.text(child)
            elif target is not None:
                raise Unreadable("a redirection with two targets")
            else:
                target = self._words.word(child)
        return Redirect(operator, target)

    def _heredoc(self, node: "Node") -> Redirect:
        """Read `<<END`. Where the grammar and bash see different ends of it, the line is refused."""
        parts = {child.type: child for child in node.children}
        kinds = {"<<", "<<-", "heredoc_start", "pipeline", "heredoc_body", "heredoc_end"}
        start, body, end = parts.get("heredoc_start"), parts.get("heredoc_body"), parts.get("heredoc_end")
        if set(parts) - kinds or start is None or end is None or len(parts) != len(node.children):
            raise Unreadable("a here-document that is not judged")
        delimiter = self._words.text(start)
        quoted = delimiter[:1] in "'\""
        plain = delimiter.strip("'\"") if quoted else delimiter
        if not _NAME.fullmatch(plain):
            raise Unreadable("a here-document with an odd end mark")
        begin = self._source.find(b"\n", start.end_byte) + 1
        if "pipeline" in parts:
            self._on_its_line(parts["pipeline"], start.end_byte, begin)
        raw = self._source[begin : end.start_byte].decode()
        tabs = "<<-" in parts
        lines = [line.lstrip("\t") if tabs else line for line in raw.split("\n")]
        after = self._source[end.end_byte : end.end_byte + 1]
        ends_alone = (lines[-1] == "" and self._words.text(end) == plain) and after in (b"", b"\n", b")")
        if not begin or plain in lines or not ends_alone or "\\\n" in raw:
            raise Unreadable("a here-document whose end is not clear")
        if after == b")":
            raise Unreadable("a here-document whose end is not clear")
        if not quoted:
            self._heredoc_text(begin, end.start_byte, body)
        return Redirect("<<", Word(None, False, plain))

    def _on_its_line(self, piped: "Node", after: int, end: int) -> None:
        """Refuse `<<END | …` where anything else is in that line, or the pipe goes on in the next."""
        document = piped.parent
        judged = (
            document is not None and document.parent is not None and document.parent.type == "redirected_statement"
        )
        around = self._source[after : piped.start_byte] + self._source[piped.end_byte : end - 1]
        if not judged or piped.end_byte > end - 1 or around.strip(b" \t") or b"<<" in self._source[after:end]:
            raise Unreadable("a here-document that is not judged")

    def _heredoc_text(self, begin: int, end: int, body: "Node | None") -> None:
        """Judge what an unquoted here-document runs; what the tree does not show must be plain text."""
        rest, at = [], begin
        for child in body.children if body is not None else ():
            if child.type in ("simple_expansion", "expansion", "command_substitution"):
                rest.append(self._source[at : child.start_byte])
                self._words.word(child)
                at = child.end_byte
            elif child.type != "heredoc_content":
                raise Unreadable("a here-document that is not judged")
        rest.append(self._source[at:end])
        if any(re.search(rb"`|\$[({\[]", re.sub(rb"\\[\\`$]", b"", part)) for part in rest):
            raise Unreadable("a here-document that runs something")

    def _count_assignments(self, root: "Node") -> None:
        for node in all_nodes(root):
            name = None
            if node.type == "variable_assignment" and node.children:
                name = node.children[0]
            elif node.type == "for_statement":
                name = node.child_by_field_name("variable")
            if name is not None:
                text = self._words.text(name)
                self._assigned[text] = self._assigned.get(text, 0) + 1
            if node.type == "command_name" and self._words.text(node) in (
                "read",
                "mapfile",
                "readarray",
                "printf",
                "eval",
            ):
                for word in node.parent.children if node.parent is not None else ():
                    text = self._words.text(word)
                    self._assigned[text] = self._assigned.get(text, 0) + 1
