"""Cleans text that is still growing, so that what is shown of it is the start of what will be recorded."""

from agentsh.base.pattern import later
from agentsh.base.text import tail_bytes
from agentsh.engine.saver import Saver
from agentsh.engine.secrets import Secrets

MAX_HELD_CHARS = 16_000
"""Held back at most: more than any private key. What is longer is let go as it is, cleaned as far as it goes."""
CONTEXT_CHARS = 400
"""Kept of a long line, to tell by a name before it that a value is secret."""
_MAX_LINE_CHARS = 2_000
_WORD = later("[!-~]*")
MAX_WORD_CHARS = 2_000
"""Of a word that is waited for: the longest keys are web tokens."""
_END = later("-----END [A-Z0-9 ]*-----")
_FILLING = ("...", "###", "===", "***")


class SecretStream:
    """One growing text. What may become a secret is held back until it is whole: a word, or a private key."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._line = ""
        self._shown = 0  # characters of the cleaned line
        self._passed = 0  # characters of the line

    def feed(self, text: str) -> str:
        """Take new text; return what can be shown."""
        self._line += text
        return self._until(self._safe())

    def rest(self) -> str:
        """Return what was held back."""
        return self._until(len(self._line))

    def _safe(self) -> int:
        """Return how much of the line is whole words, and before a private key that has no end yet."""
        line = self._line
        safe = len(line)
        backwards = _WORD.match(line[: -MAX_WORD_CHARS - 1 : -1])
        word = backwards[0][::-1] if backwards else ""
        waits = len(word) < MAX_WORD_CHARS and not word.endswith(_FILLING)
        if waits and self._secrets.may_grow(line[-CONTEXT_CHARS - MAX_WORD_CHARS :], word):
            safe -= len(word)
        safe = _before_a_key(line, safe)
        return len(line) if len(line) - safe > MAX_HELD_CHARS else max(safe, self._passed)

    def _until(self, end: int) -> str:
        whole, rest = self._line[:end], self._line[end:]
        cut = _before_a_key(whole, whole.rfind("\n") + 1)
        head, line = self._secrets.clean(whole[:cut]), self._secrets.clean(whole[cut:])
        new = (head + line)[self._shown :]
        keep = whole[cut:]
        self._shown = len(line)
        if len(keep) > _MAX_LINE_CHARS and "-----BEGIN " not in keep:
            keep = keep[-CONTEXT_CHARS:]
            self._shown = len(self._secrets.clean(keep))
        self._passed = len(keep)
        self._line = keep + rest
        return new


def _before_a_key(text: str, end: int) -> int:
    """Return `end`, or where a private key begins that has not ended there."""
    begin = text.rfind("-----BEGIN ", 0, end)
    return end if begin < 0 or _END.search(text, begin, end) else begin


class SeenOutput:
    """The newest output of what runs, at most `most` bytes; a secret is held back until it is whole.

    saver: is given what can be shown, where there is one.
    """

    def __init__(self, secrets: Secrets, most: int) -> None:
        self.saver: Saver | None = None
        self._stream = SecretStream(secrets)
        self._most = most
        self._text = ""

    def add(self, text: str) -> str:
        """Take new output; return what of it can be shown by now."""
        shown = self._stream.feed(text)
        self._text = tail_bytes(self._text + shown, self._most)
        if shown and self.saver is not None:
            self.saver.add(shown)
        return shown

    def end(self) -> str:
        """Return the newest of all output: nothing more comes."""
        self._text = tail_bytes(self._text + self._stream.rest(), self._most)
        return self._text
