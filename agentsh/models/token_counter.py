"""Token counters: tiktoken's for models whose encoding ships with us, loaded in the background; else an estimate."""

import threading
from typing import TYPE_CHECKING

from agentsh.models.ranks import EncodingName, encoding_of, load_encoding
from agentsh.ports.tokens import PieceEstimate, TokenCounter, by_samples

if TYPE_CHECKING:
    import tiktoken

CHUNK_CHARS = 4_000
"""Counted at once. A run without breaks takes more than linear time; a million blanks make tiktoken 0.14 panic."""
BREAK_CHARS = 200
"""How far back from its end a chunk looks for a blank to end at; a cut inside a word costs a token at most."""


class TiktokenCounter:
    """Counts with an encoding of tiktoken. Special tokens in a text are text."""

    def __init__(self, encoding: "tiktoken.Encoding") -> None:
        self._encoding = encoding
        self.name = encoding.name.removesuffix("_base")

    def count(self, text: str) -> int:
        """Return the tokens of `text`; of a very long one, what samples say (`by_samples`)."""
        return by_samples(text, self._whole)

    def _whole(self, text: str) -> int:
        return sum(len(self._encoding.encode_ordinary(chunk)) for chunk in chunks(text))


def chunks(text: str) -> list[str]:
    """Return `text` in pieces of at most CHUNK_CHARS, cut before a blank or a line's end where there is one."""
    if len(text) <= CHUNK_CHARS:
        return [text]
    found, start = [], 0
    while len(text) - start > CHUNK_CHARS:
        end = start + CHUNK_CHARS
        # Before the blank: pieces of text begin with theirs, so that the cut is one that tiktoken makes too.
        cut = max(text.rfind(" ", end - BREAK_CHARS, end), text.rfind("\n", end - BREAK_CHARS, end))
        end = cut if cut > start else end
        found.append(text[start:end])
        start = end
    found.append(text[start:])
    return found


class ModelCounter:
    """The counter of a session: the estimate until the ranks of its model were asked for, are there, and are adopted.

    failure: why ranks could not be loaded, or None; the estimate serves on.
    """

    def __init__(self) -> None:
        self._estimate = PieceEstimate()
        self._now: TokenCounter = self._estimate
        self._loaded: dict[EncodingName, TiktokenCounter] = {}
        self._threads: dict[EncodingName, threading.Thread] = {}
        self.failure: str | None = None

    @property
    def name(self) -> str:
        """The name of what counts now."""
        return self._now.name

    def count(self, text: str) -> int:
        """Return the tokens of `text`, counted or estimated."""
        return self._now.count(text)

    def adopt(self, model: str) -> None:
        """Count for `model` from here on, with its ranks where they are loaded."""
        encoding = encoding_of(model)
        self._now = self._estimate if encoding is None else self._loaded.get(encoding, self._estimate)

    def load(self, model: str) -> bool:
        """Begin to load the ranks of `model` (0.2 s, 75 MB); return whether they come or wait to be adopted."""
        encoding = encoding_of(model)
        if encoding is None or (encoding in self._threads and not self._coming(encoding)):
            return False
        if encoding not in self._threads:
            thread = threading.Thread(target=self._load, args=(encoding,), name="load-ranks", daemon=True)
            self._threads[encoding] = thread
            thread.start()
        return True

    def wait(self, timeout_s: float) -> None:
        """Block for at most `timeout_s` seconds until what `load` began has finished."""
        for thread in list(self._threads.values()):
            thread.join(timeout_s)

    def _coming(self, encoding: EncodingName) -> bool:
        there = self._loaded.get(encoding)
        return self._threads[encoding].is_alive() or (there is not None and there is not self._now)

    def _load(self, encoding: EncodingName) -> None:
        try:
            counter = TiktokenCounter(shared(encoding))
        except (OSError, ValueError, ImportError) as error:
            self.failure = str(error)
        else:
            self._loaded[encoding] = counter  # one assignment: other threads see it whole or not yet


_LOADED: dict[EncodingName, "tiktoken.Encoding"] = {}
_LOADING = threading.Lock()


def shared(name: EncodingName) -> "tiktoken.Encoding":
    """Return the encoding, built once in a process however many sessions and models use it.

    Raises:
        OSError, ValueError, ImportError: as `ranks.load_encoding` says.
    """
    with _LOADING:
        if name not in _LOADED:
            _LOADED[name] = load_encoding(name)
        return _LOADED[name]
