"""The content of a sealed segment as a stream, checked frame by frame."""

from collections.abc import Iterator

from agentsh.log.files import READ, FileSystem
from agentsh.log.sealed import SealedFile


def sealed_content(files: FileSystem, path: str) -> Iterator[bytes]:
    """Yield the content of a sealed segment.

    Raises:
        OSError: it cannot be read, or a part of it does not unpack.
    """
    fd = files.open(path, READ)
    try:
        sealed = SealedFile(files, fd)
        if not sealed.whole:
            raise OSError(f"{path} is damaged: its end does not read")
        for frame in sealed.frames:
            content = sealed.unpack(frame)
            if content is None:
                raise OSError(f"{path} is damaged at {frame.at}")
            yield content
    finally:
        files.close(fd)
