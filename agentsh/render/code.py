"""Code in colours, line after line as it comes: what a line means may depend on the lines before it, never after.

Pygments lexes whole texts. Most of its lexers are tables of states, and the stack of states at the end of a line is
all that the next one needs; such a lexer is run over each part with the stack that the part before it left. Others
see each part alone.
"""

from typing import Any, Protocol

from pygments.lexer import ExtendedRegexLexer, LexerContext, RegexLexer
from pygments.token import Error
from rich.style import Style
from rich.syntax import Syntax

from agentsh.render import theme
from agentsh.render.runs import Line

MAX_LINE_CHARS = 1_000
"""A line longer than this, as of a minified file, has no colours."""


class _Theme(Protocol):
    def get_style_for_token(self, token_type: Any) -> Style: ...


_THEME: _Theme = Syntax.get_theme(theme.CODE_THEME)


class Colours:
    """Of one block of code. language: as its fence says; unknown ones have none."""

    def __init__(self, language: str) -> None:
        self._lexer: Any = Syntax("", language).lexer if language else None
        self._stack: list[str] | None = None
        if isinstance(self._lexer, RegexLexer) and _is_table(type(self._lexer)):
            self._stack = ["root"]
        self._styles: dict[Any, Style] = {}

    def copy(self) -> "Colours":
        """Return another one that stands at the same place."""
        other = Colours("")
        other._lexer, other._styles = self._lexer, self._styles
        other._stack = self._stack and [*self._stack]
        return other

    def lines(self, text: str) -> list[Line]:
        """Return the lines of the next part, which ends with a line."""
        plain = text.split("\n")
        if self._lexer is None or any(len(line) > MAX_LINE_CHARS for line in plain):
            return [[(line, theme.PLAIN)] for line in plain]
        lines: list[Line] = [[]]
        for kind, value in self._tokens(text + "\n"):
            style = self._styles.get(kind)
            if style is None:
                style = self._styles[kind] = theme.PLAIN if kind is Error else _THEME.get_style_for_token(kind)
            first, *more = value.split("\n")
            lines[-1].append((first, style))
            lines += [[(piece, style)] for piece in more]
        return lines[: len(plain)]

    def _tokens(self, text: str) -> list[tuple[Any, str]]:
        if self._stack is not None:
            context = LexerContext(text, 0, stack=[*self._stack], end=len(text))
            try:
                found = [
                    (kind, value)
                    for _, kind, value in ExtendedRegexLexer.get_tokens_unprocessed(self._lexer, context=context)
                ]
            except (TypeError, AttributeError, IndexError):  # a rule of its own that knows no stack
                self._stack = None
            else:
                self._stack = context.stack or ["root"]
                return found
        return [(kind, value) for _, kind, value in self._lexer.get_tokens_unprocessed(text)]


def _is_table(lexer: type[RegexLexer]) -> bool:
    """Whether a lexer is a table of states and nothing else."""
    return lexer.get_tokens_unprocessed is RegexLexer.get_tokens_unprocessed
