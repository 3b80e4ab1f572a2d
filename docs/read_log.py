#!/usr/bin/env python3
"""Checks and prints an agentsh log: `python3 read_log.py sessions/ID`. Standard library only; see log-format.md."""
# Sealed segments (`.jsonl.zst`) take the program `zstd`: the one thing that the library lacks before Python 3.14.

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zlib import crc32

START, END = re.compile(rb'\{"(?:seq|ts|type|payload)":'), re.compile(rb',"crc":"([0-9a-f]{8})"\}')
FRAME, SEQ, SPACE = b"\x28\xb5\x2f\xfd", re.compile(rb'\{"seq":(\d+),'), b"\xef\xbb\xbf\r\n \t"


def records(line, salt):
    """Return ([each record whose crc fits, without that], what else is on the line): a torn one may stand before."""
    found, rest, done = [], b"", 0
    for end in END.finditer(line):
        for start in START.finditer(line, done, end.start()):
            body = line[start.start() : end.start()]
            if crc32(body, salt) == int(end[1], 16):
                found, rest, done = [*found, body], rest + line[done : start.start()], end.end()
                break
    return found, (rest + line[done:]).strip(SPACE)


def solved(body, crc):
    """Return the start value that gives `body` this crc: CRC-32 run backwards."""
    state = crc ^ 0xFFFFFFFF
    for byte in reversed(body):
        for _ in range(8):
            state = (state ^ 0xEDB88320) << 1 | 1 if state >> 31 else state << 1
        state ^= byte
    return state ^ 0xFFFFFFFF


def head(data):
    """Return (header, salt) of a segment; {} for a damaged header, and the salt that most of its lines agree on."""
    line = data.lstrip(SPACE).split(b"\n")[0].rstrip(b"\r")
    end = END.search(line)
    if end and crc32(line[: end.start()]) == int(end[1], 16):
        return json.loads(line[: end.end()]), crc32(line[: end.end()] + b"\n")
    ends = [(text, END.search(text)) for text in data.split(b"\n") if SEQ.match(text)][:40]
    salts = [solved(text[: end.start()], int(end[1], 16)) for text, end in ends if end]
    return {}, max(salts, key=salts.count, default=0)


def unpack(data):
    """Return what is in zstd frames, or None where they do not hold."""
    shutil.which("zstd") or sys.exit("sealed segments (.zst) take the program zstd")
    done = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True)
    return None if done.returncode else done.stdout


def content(path, wrong):
    """Return the lines of a segment; of a sealed one with damage, what the other frames hold."""
    data = path.read_bytes() if path.exists() else b""
    if path.suffix != ".zst":
        return data
    parts = [unpack(data)]
    if parts == [None]:
        parts = [unpack(FRAME + part) for part in data.split(FRAME)[1:]]
        wrong.append(f"{path.name}: {max(parts.count(None), 1)} parts of it do not unpack")
    return b"".join(part or b"" for part in parts)


def segments(directory, wrong):
    """Return [(name, content, header, salt, seq from which a later segment counts instead)]."""
    closed = [p for p in directory.glob("*.jsonl*") if re.fullmatch(r"\d{6,}-\d{12,}\.jsonl(\.zst)?", p.name)]
    paths = {p.name.removesuffix(".zst"): p for p in sorted(closed, reverse=True)}  # of both forms the plain one
    found, cap, limit = [], 1 << 62, None
    for path in [directory / "events.jsonl", *(paths[name] for name in sorted(paths, reverse=True))]:
        data = content(path, wrong)[:limit]
        header, salt = head(data)
        found.append((path.name, data, header, salt, cap))
        parent, first, limit = header.get("parent"), SEQ.search(data), None
        if header.get("rescue") or (not header and first):  # one whose header is gone may be a rescue
            cap = min(cap, header["first_seq"] if header else int(first[1]))
        if parent:
            cap, limit = min(cap, parent["upto_seq"] + 1), parent["upto_bytes"]
    return found[::-1]


def read(directory):
    """Return ({seq: event}, [what is wrong and where]) of a session's directory."""
    events, bodies, wrong = {}, {}, []
    for name, data, header, salt, cap in segments(directory, wrong):
        wrong += [f"{name}: the header does not read"] if data and not header else []
        for n, line in enumerate(data.split(b"\n"), 1):
            found, rest = records(line, salt)
            for body in found:
                seq = int(SEQ.match(body)[1]) if SEQ.match(body) else cap
                if seq in bodies and seq < cap:
                    what = "stands there twice" if body == bodies[seq] else "is another: two programs have written"
                    wrong.append(f"{name}: event {seq} on line {n} {what}")
                elif seq < cap:
                    bodies[seq] = body
            if rest and not (header and n == 1) and max(bodies, default=0) + 1 < cap:
                wrong.append(f"{name}: something on line {n} does not read: {rest[:20]!r}")
    for seq, body in bodies.items():
        try:
            events[seq] = json.loads(body + b"}")
        except ValueError as error:
            events[seq] = {"seq": seq, "ts": "?", "type": "unreadable", "payload": str(error)}
    return events, wrong + [f"event {n} is missing" for n in range(1, max(bodies, default=0)) if n not in bodies]


if __name__ == "__main__":
    (len(sys.argv) == 2 and Path(sys.argv[1]).is_dir()) or sys.exit("usage: read_log.py DIRECTORY, a session's")
    found, problems = read(Path(sys.argv[1]))
    for seq, event in sorted(found.items()):
        print(seq, event["ts"], event["type"], json.dumps(event["payload"])[:100])
    for problem in problems:
        print("!", problem)
    sys.exit(bool(problems))
