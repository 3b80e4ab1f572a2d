#!/usr/bin/env python3
"""Checks and prints an agentsh log: `python3 read_log.py sessions/ID`. Standard library only; see log-format.md."""
# What is sealed or archived (`.jsonl.zst`) takes the program `zstd`, which the library lacks before Python 3.14.
# Of a log with damage read_damaged_log.py reads more.

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zlib import crc32

SEQ, HEADER = re.compile(rb'\{"seq":(\d+),'), re.compile(rb'(?m)^(?=\{"format":)')
SPACE, END = b"\xef\xbb\xbf\r\n \t", len(',"crc":"01234567"}')


def holds(line, salt):
    """Tell whether a line ends with the crc of what stands before that."""
    return line.endswith(b',"crc":"%08x"}' % crc32(line[:-END], salt))


class Log:
    """A session's directory. bodies: {seq: its line without the crc}. wrong: [what is wrong, and where]."""

    def __init__(self, directory):
        self.bodies, self.wrong = {}, []
        for name, data, header, salt, cap in self.segments(directory):
            self.wrong += [f"{name}: the header does not read"] if data and not header else []
            for n, line in enumerate(data.split(b"\n"), 1):
                found, rest = self.records(line, salt)
                for body in found:
                    self.take(body, cap, f"{name}: event %d on line {n}")
                if rest and n > 1 and max(self.bodies, default=0) + 1 < cap:
                    self.wrong.append(f"{name}: something on line {n} does not read: {rest[:20]!r}")
        self.wrong += [f"event {n} is missing" for n in range(1, max(self.bodies, default=0)) if n not in self.bodies]

    def segments(self, directory):
        """Return [(name, content, header, salt, seq from which a later segment counts instead)]."""
        closed = [p for p in directory.glob("*.jsonl*") if re.fullmatch(r"\d{6,}-\d{12,}\.jsonl(\.zst)?", p.name)]
        both = {p.name.removesuffix(".zst"): p for p in sorted(closed, reverse=True)}  # of two forms the plain one
        paths = [directory / "events.jsonl", *(both[name] for name in sorted(both, reverse=True))]
        if not paths[0].exists() and (archive := directory / "archive.jsonl.zst").exists():
            paths = [archive]  # all segments, one behind the other
        found, cap, limit = [], 1 << 62, None
        for path in paths:
            data = path.read_bytes() if path.exists() else b""
            data, trouble = self.unpack(data) if path.suffix == ".zst" else (data, "")
            self.wrong += [f"{path.name}: {trouble}"] * bool(trouble)
            for part in HEADER.split(data)[::-1] if "archive" in path.name else [data]:
                header, salt = self.head(part := part[:limit])
                found.append((path.name, part, header, salt, cap))
                parent, first, limit = header.get("parent"), SEQ.search(part), None
                if header.get("rescue") or (not header and first):  # one whose header is gone may be a rescue
                    cap = min(cap, header["first_seq"] if header else int(first[1]))
                if parent:
                    cap, limit = min(cap, parent["upto_seq"] + 1), parent["upto_bytes"]
        return found[::-1]

    def unpack(self, packed):
        """Return (the lines of a sealed segment, what is wrong with it): of a damaged one those before the damage."""
        shutil.which("zstd") or sys.exit("sealed segments (.zst) take the program zstd")
        done = subprocess.run(["zstd", "-dcq"], input=packed, capture_output=True)
        return done.stdout, done.stderr.decode().strip()

    def head(self, data):
        """Return (header, salt) of a segment: its first line and the crc of that; ({}, 0) where it is damaged."""
        line = data.split(b"\n")[0].strip(SPACE)
        return (json.loads(line), crc32(line + b"\n")) if holds(line, 0) else ({}, 0)

    def records(self, line, salt):
        """Return ([the record on a line, without its crc], what else is there)."""
        text = line.strip(SPACE)
        return ([text[:-END]], b"") if SEQ.match(text) and holds(text, salt) else ([], text)

    def take(self, body, cap, where):
        """Keep a record under its seq, unless a later segment counts from there."""
        seq = int(SEQ.match(body)[1])
        if seq in self.bodies and seq < cap:
            what = "stands there twice" if body == self.bodies[seq] else "is another: two programs have written"
            self.wrong.append(f"{where % seq} {what}")
        elif seq < cap:
            self.bodies[seq] = body

    def event(self, seq):
        """Return what a record says; one in a million says nothing, although it is as it was written."""
        try:
            return json.loads(self.bodies[seq] + b"}")
        except ValueError as error:
            return {"seq": seq, "ts": "?", "type": "unreadable", "payload": str(error)}


def main(kind):
    """Print the log that the command line names; exit 1 where anything is wrong with it."""
    (len(sys.argv) == 2 and Path(sys.argv[1]).is_dir()) or sys.exit(f"usage: {sys.argv[0]} DIRECTORY, a session's")
    log = kind(Path(sys.argv[1]))
    for event in map(log.event, sorted(log.bodies)):
        print(event["seq"], event["ts"], event["type"], json.dumps(event["payload"])[:100])
    print(*(f"! {what}" for what in log.wrong), sep="\n", end="\n" * bool(log.wrong))
    sys.exit(bool(log.wrong))


if __name__ == "__main__":
    main(Log)
