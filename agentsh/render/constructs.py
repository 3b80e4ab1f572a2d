"""What must be seen whole in code to get its colours: comments and strings of several lines.

Only lines that are outside of one are let go as soon as they come; the others wait for its end. Wrong guesses cost
nothing but that wait, or the colours of a few lines.
"""

import re

_C_LIKE = """c h cc cpp c++ cxx hpp java js javascript jsx mjs ts typescript tsx go golang rust rs css scss less php
swift kotlin kt scala cs csharp c# dart groovy sql proto protobuf objective-c zig json5 jsonc"""
_PYTHON = "py python python3 py3 pyi starlark bazel toml"
_MARKUP = "html xml svg xhtml vue svelte markdown md"
_LANGUAGES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_C_LIKE.split(), ("/*",)),
    **dict.fromkeys(_PYTHON.split(), ('"""', "'''")),
    **dict.fromkeys(_MARKUP.split(), ("<!--", "<script", "<style")),
    **dict.fromkeys(("go", "golang"), ("/*", "`")),
}
_CLOSES = {"/*": "*/", "<!--": "-->", "<script": "</script", "<style": "</style"}
_STRINGS = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
_COMMENTS = {"/*": "//.*", '"""': "#.*", "<!--": "(?!)"}


class Whole:
    """Follows the lines of one block of code. language: as its fence says."""

    def __init__(self, language: str) -> None:
        opens = _LANGUAGES.get(language.lower(), ())
        self._close = ""
        self._find: re.Pattern[str] | None = None
        if opens:
            names = "|".join(map(re.escape, opens))
            self._find = re.compile(f"({names})|{_STRINGS}|{_COMMENTS[opens[0]]}")

    def ends(self, line: str) -> bool:
        """Take a line; return whether nothing is open behind it."""
        at = 0
        while self._find is not None:
            if self._close:
                at = line.find(self._close, at)
                if at < 0:
                    return False
                at += len(self._close)
                self._close = ""
            found = self._find.search(line, at)
            if found is None:
                return True
            at = found.end()
            if found[1]:
                self._close = _CLOSES.get(found[1], found[1])
        return True
