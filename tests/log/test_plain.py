"""What is no plain file is told by what it is, however it is to be opened."""

import os
import socket
from pathlib import Path

import pytest

from agentsh.log.plain import open_plain


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND])
def test_what_is_no_plain_file_is_named(tmp_path: Path, flags: int) -> None:
    pipe, sock, link = tmp_path / "pipe", tmp_path / "sock", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(sock))
        said = {pipe: "pipe", sock: "socket", link: "pipe", tmp_path: "directory", Path("/dev/null"): "device"}
        for path, what in said.items():
            with pytest.raises(OSError, match=what):
                open_plain(path, flags)
        with pytest.raises(OSError, match="a link, which is not followed"):
            open_plain(link, flags | os.O_NOFOLLOW)
