"""Token counters: tiktoken's where a model's own encoding ships with us, loaded in the background; else the estimate."""

import threading
from typing import TYPE_CHECKING

from agentsh.models.ranks import EncodingName, encoding_of, load_encoding
from agentsh.ports.tokens import PieceEstimate, TokenCounter

if TYPE_CHECKING:
    import tiktoken

CHUNK_CHARS = 4_000
"""Counted at once. A run without breaks takes more than linear time, and a million blanks make tiktoken 0.14 panic."""
BREAK_CHARS = 200
"""How far back from its end a chunk looks for a blank to end at; a cut inside a word costs a token at most."""
MAX_COUNTED_CHARS = 400_000
"""Longer texts are sampled: they pass every budget, and nobody waits for their exact number."""
SAMPLES = MAX_COUNTED_CHARS // CHUNK_CHARS


class TiktokenCounter:
    """Counts with an encoding of tiktoken. Special tokens in a text are text."""

    def __init__(self, encoding: "tiktoken.Encoding") -> None:
        self._encoding = encoding
        self.name = encoding.name.removesuffix("_base")

    def count(self, text: str) -> int:
        """Return the tokens of `text`; of more than MAX_COUNTED_CHARS characters, the number that samples give."""
        if len(text) <= MAX_COUNTED_CHARS:
            return sum(self._tokens(chunk) for chunk in chunks(text))
        step = (len(text) - CHUNK_CHARS) / (SAMPLES - 1)
        samples = [text[round(n * step) : round(n * step) + CHUNK_CHARS] for n in range(SAMPLES)]
        counted = sum(self._tokens(sample) for sample in samples)
        return -(-counted * len(text) // sum(map(len, samples)))

    def _tokens(self, chunk: str) -> int:
        return len(self._encoding.encode_ordinary(chunk))


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


class BackgroundCounters:
    """The counter for one model: the estimate until `load` has been asked for and has finished in its thread.

    failure: why the ranks could not be loaded, or None; the estimate serves on.
    """

    def __init__(self, model: str) -> None:
        self._wanted = encoding_of(model)
        self._counter: TokenCounter = PieceEstimate()
        self._thread: threading.Thread | None = None
        self.failure: str | None = None

    @property
    def now(self) -> TokenCounter:
        """The best counter that there is at this moment."""
        return self._counter

    def load(self) -> None:
        """Begin to load the model's ranks (0.2 s, 75 MB); does nothing the second time, or where there are none."""
        if self._wanted is None or self._thread is not None:
            return
        self._thread = threading.Thread(target=self._load, args=(self._wanted,), name="load-ranks", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Block for at most `timeout_s` seconds until what `load` began has finished."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _load(self, name: EncodingName) -> None:
        try:
            counter = TiktokenCounter(shared(name))
        except (OSError, ValueError, ImportError) as error:
            self.failure = str(error)
        else:
            self._counter = counter  # one assignment: the other threads see the old one or the new one


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
