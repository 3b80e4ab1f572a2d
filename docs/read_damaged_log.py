#!/usr/bin/env python3
"""Like read_log.py, which has to lie beside it; reads also what is whole in damaged lines and sealed segments, and
lines whose segment has lost its header."""

import re
import sys
from pathlib import Path
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parent))
import read_log

END, FRAME = re.compile(rb',"crc":"([0-9a-f]{8})"\}'), b"\x28\xb5\x2f\xfd"


def solved(body, crc):
    """Return the start value that gives `body` this crc: CRC-32 run backwards."""
    state = crc ^ 0xFFFFFFFF
    for byte in reversed(body):
        for _ in range(8):
            state = (state ^ 0xEDB88320) << 1 | 1 if state >> 31 else state << 1
        state ^= byte
    return state ^ 0xFFFFFFFF


class Log(read_log.Log):
    """A session's directory."""

    def head(self, data):
        """Return (header, salt) of a segment; for a damaged header {}, and the salt that most lines agree on."""
        header, salt = super().head(data)
        if not header:
            ends = [(text, END.search(text)) for text in data.split(b"\n") if read_log.SEQ.match(text)][:40]
            salts = [solved(text[: end.start()], int(end[1], 16)) for text, end in ends if end]
            salt = max(salts, key=salts.count, default=0)
        return header, salt

    def records(self, line, salt):
        """Return ([each record on the line], what else is there): one may be glued behind half of another."""
        found, rest, done = [], b"", 0
        for end in END.finditer(line):
            for start in read_log.SEQ.finditer(line, done, end.start()):
                body = line[start.start() : end.start()]
                if crc32(body, salt) == int(end[1], 16):
                    found, rest, done = [*found, body], rest + line[done : start.start()], end.end()
                    break
        return found, (rest + line[done:]).strip(read_log.SPACE)

    def unpack(self, packed):
        """Return (the lines of a sealed segment, what is wrong with it): of a damaged one what each part holds."""
        content, trouble = super().unpack(packed)
        if trouble:
            parts = [read_log.Log.unpack(self, FRAME + part) for part in packed.split(FRAME)[1:]]
            content = b"".join(lines for lines, bad in parts if not bad)
            trouble = f"{max(sum(bool(bad) for _, bad in parts), 1)} parts of it do not unpack"
        return content, trouble


if __name__ == "__main__":
    read_log.main(Log)
