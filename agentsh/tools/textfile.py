"""Text files as tools see them: bytes to text and back, byte for byte, with errors that say what to do instead."""

import codecs
import difflib

from agentsh.base.errors import PathRefused, ToolFailed
from agentsh.base.light import dataclass
from agentsh.ports.workspace import Workspace
from agentsh.workspace.capture import is_binary

MAX_FILE_BYTES = 10 * 1024 * 1024
"""Larger files are for the shell."""
MAX_SHOWN_BYTES = 28_000
"""Of one result; with its notes it stays below the 30,000 bytes that the engine passes on to a model."""

_SAMPLE_BYTES = 8_192
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"\x7fELF", "ELF binary"),
)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A decoded file. text: without its byte order mark, line ends as they are. encoding: a codec of Python."""

    text: str
    encoding: str
    bom: bytes

    @property
    def newline(self) -> str:
        """The line end that most lines have; LF for a file without any."""
        crlf = self.text.count("\r\n")
        return "\r\n" if crlf * 2 > self.text.count("\n") else "\n"

    @property
    def remarks(self) -> list[str]:
        """What is out of the ordinary and not visible in the text, each in a word or two."""
        found = [] if self.encoding == "utf-8" else [self.encoding]
        if self.bom:
            found.append("byte order mark")
        crlf = self.text.count("\r\n")
        if crlf:
            found.append("CRLF line ends" if crlf == self.text.count("\n") else "mixed line ends")
        return found

    def encode(self, text: str) -> bytes:
        """Return the bytes of the file with another text, in the same encoding.

        Raises:
            ToolFailed: a character does not exist in the encoding.
        """
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise ToolFailed(
                f"{character!r} (U+{ord(character):04X}) cannot be written in a {self.encoding} file"
            ) from None


def load(workspace: Workspace, path: str) -> bytes:
    """Return the bytes of a file of at most 10 MiB.

    Raises:
        PathRefused: not readable; the message names what to use instead, or names that are close.
    """
    try:
        return workspace.read_bytes(path, max_bytes=MAX_FILE_BYTES)
    except PathRefused as error:
        raise PathRefused(error.message + _instead(workspace, path, error.message)) from None


def decode(data: bytes) -> TextFile | None:
    """Return the text of a file, or None where it is binary.

    UTF-8, or UTF-16 with a byte order mark; else Windows-1252 or Latin-1, in which every byte is some character.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            text = _decoded(data[len(bom) :], encoding)
            return None if text is None else TextFile(text, encoding, bom)
    if b"\0" in data[:_SAMPLE_BYTES]:
        return None
    text = _decoded(data, "utf-8")
    if text is not None:
        return TextFile(text, "utf-8", b"")
    if is_binary(data[:_SAMPLE_BYTES]):
        return None
    encoding = "latin-1"
    text = None
    if any(0x80 <= byte < 0xA0 for byte in data):
        text = _decoded(data, "cp1252")
        encoding = "cp1252" if text is not None else encoding
    return TextFile(data.decode("latin-1") if text is None else text, encoding, b"")


def kind_of_binary(data: bytes) -> str:
    """Return what a binary file seems to be by its first bytes, never by its name."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP image"
    return next((name for magic, name in _MAGIC if data.startswith(magic)), "binary file")


def line_count(text: str) -> int:
    """Return the number of lines; a last one without line end counts."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _instead(workspace: Workspace, path: str, message: str) -> str:
    if "it is a directory" in message:
        return "; use the list tool"
    if "more than the limit" in message:
        return "; use grep, or the shell with head, tail or sed -n"
    if "no such file" not in message:
        return ""
    where, _, name = workspace.relative(path).rpartition("/")
    try:
        names = {entry.path.rpartition("/")[2]: entry.path for entry in workspace.entries(where or ".")}
    except ToolFailed:
        return ""
    if name in names:
        return "; it is a link to something that is not there"
    near = [names[match] for match in difflib.get_close_matches(name, names, 3)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
