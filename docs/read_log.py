#!/usr/bin/env python3
"""Checks and prints an agentsh log: `python3 read_log.py sessions/ID`. Standard library only; see log-format.md."""
# Sealed segments (`.jsonl.zst`) take Python 3.14, or the program `zstd`: the one thing that older libraries lack.

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zlib import crc32

START, END = re.compile(rb'\{"(?:seq|ts|type|payload)":'), re.compile(rb',"crc":"([0-9a-f]{8})"\}')
FRAME, SEQ = b"\x28\xb5\x2f\xfd", re.compile(rb'\{"seq":(\d+),')


def unpack(data):
    """Return the content of zstd frames, or None where they do not hold."""
    try:
        from compression.zstd import ZstdError, decompress  # since Python 3.14

        return decompress(data)
    except ImportError:
        shutil.which("zstd") or sys.exit("sealed segments (.zst) take Python 3.14, or the program zstd")
        done = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True)
        return None if done.returncode else done.stdout
    except ZstdError:
        return None


def solve(body, crc):
    """Return the start value that gives `body` this crc: CRC-32 run backwards."""
    state = crc ^ 0xFFFFFFFF
    for byte in reversed(body):
        for _ in range(8):
            state = (state ^ 0xEDB88320) << 1 | 1 if state >> 31 else state << 1
        state ^= byte
    return state ^ 0xFFFFFFFF


def pieces(line, salt):
    """Yield (start, end, body) of each whole record on a line; there may be half of another before it."""
    done = 0
    for end in END.finditer(line):
        for start in START.finditer(line, done, end.start()):
            body = line[start.start() : end.start()]
            if crc32(body, salt) == int(end[1], 16):
                yield start.start(), end.end(), body
                done = end.end()
                break


def head(data):
    """Return (header, salt) of a segment, with {} for a damaged header, whose salt is solved from two lines."""
    line = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n \t").split(b"\n")[0].rstrip(b"\r")
    end = END.search(line)
    if end and crc32(line[: end.start()]) == int(end[1], 16):
        return json.loads(line[: end.end()]), crc32(line[: end.end()] + b"\n")
    ends = [(text, END.search(text.rstrip(b"\r"))) for text in data.split(b"\n") if text.startswith(b'{"seq":')]
    salts = [solve(text[: m.start()], int(m[1], 16)) for text, m in ends[:40] if m]
    return {}, max(salts, key=salts.count, default=0)


def load(text):
    """Return the event on a line whose crc fits, also where its writer has put no JSON there."""
    try:
        return json.loads(text)
    except ValueError as error:
        seq = SEQ.match(text)
        return {"seq": int(seq[1]), "ts": "?", "type": "unreadable", "payload": str(error)} if seq else {}


def content(path, wrong):
    """Return what is in a segment; of a sealed one with damage, what the other frames hold."""
    data = path.read_bytes() if path.exists() else b""
    if path.suffix != ".zst" or (whole := unpack(data)) is not None:
        return whole if path.suffix == ".zst" else data
    parts = [unpack(FRAME + part) for part in data.split(FRAME)[1:]]
    wrong.append(f"{path.name}: {max(parts.count(None), 1)} parts of it do not unpack")
    return b"".join(part or b"" for part in parts)


def segments(directory, wrong):
    """Return [(name, content, header, salt, seq from which a later segment counts instead)]."""
    closed = [p for p in directory.glob("*.jsonl*") if re.fullmatch(r"\d{6,}-\d{12,}\.jsonl(\.zst)?", p.name)]
    paths = {p.name.removesuffix(".zst"): p for p in sorted(closed, reverse=True)}  # of both forms the plain one
    rules, cap, limit = [], 1 << 62, None
    for path in [directory / "events.jsonl", *(paths[name] for name in sorted(paths, reverse=True))]:
        data = content(path, wrong)[:limit]
        header, salt = head(data)
        rules.append((path.name, data, header, salt, cap))
        parent, first, limit = header.get("parent"), SEQ.search(data), None
        if header.get("rescue") or (not header and first):  # one whose header is gone may be a rescue
            cap = min(cap, header["first_seq"] if header else int(first[1]))
        if parent:
            cap, limit = min(cap, parent["upto_seq"] + 1), parent["upto_bytes"]
    return rules[::-1]


def read(directory):
    """Return ({seq: event}, [what is wrong and where]) of a session's directory."""
    events, bodies, wrong, last = {}, {}, [], 0
    for name, data, header, salt, cap in segments(directory, wrong):
        wrong += [f"{name}:0 the header does not read"] if data and not header else []
        at = 0
        for n, line in enumerate(data.split(b"\n")):
            rest, done = b"", 0
            for start, end, body in pieces(line, salt):
                rest, done = rest + line[done:start], end
                event = load(line[start:end])
                if (seq := event.get("seq", cap)) < cap:
                    if bodies.setdefault(seq, body) != body:
                        wrong.append(f"{name}:{at} another event {seq}: two programs have written at once")
                    elif seq in events:
                        wrong.append(f"{name}:{at} event {seq} stands there twice")
                    events.setdefault(seq, event)
                    last = max(last, seq)
            if (rest + line[done:]).strip(b"\r \t\xef\xbb\xbf") and not (header and n == 0) and last + 1 < cap:
                wrong.append(f"{name}:{at} {len(line)} bytes of which something does not read: {line[:20]!r}")
            at += len(line) + 1
    return events, wrong + [f"event {n} is missing" for n in range(1, last) if n not in events]


if __name__ == "__main__":
    found, problems = read(Path(sys.argv[1]))
    for seq, event in sorted(found.items()):
        print(seq, event["ts"], event["type"], json.dumps(event["payload"])[:100])
    for problem in problems:
        print("!", problem)
    sys.exit(bool(problems))
