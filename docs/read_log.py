#!/usr/bin/env python3
"""Checks and prints an agentsh log: `python3 read_log.py sessions/ID`. Standard library only; see log-format.md."""

import json
import re
import sys
from pathlib import Path
from zlib import crc32

START, END = re.compile(rb'\{"(?:seq|ts|type|payload)":'), re.compile(rb',"crc":"([0-9a-f]{8})"\}')
TABLE = list(range(256))
for _ in range(8):
    TABLE = [n >> 1 ^ (0xEDB88320 if n & 1 else 0) for n in TABLE]
INDEX = {n >> 24: i for i, n in enumerate(TABLE)}


def solve(body, crc):
    """Return the start value that gives `body` this crc: CRC-32 run backwards."""
    state = crc ^ 0xFFFFFFFF
    for byte in reversed(body):
        i = INDEX[state >> 24]
        state = (state ^ TABLE[i]) << 8 & 0xFFFFFFFF | (i ^ byte)
    return state ^ 0xFFFFFFFF


def pieces(line, salt):
    """Yield (start, end, body) of each whole record on a line; there may be half of another before it."""
    done = 0
    for start in START.finditer(line):
        for end in END.finditer(line, max(start.end(), done)) if start.start() >= done else ():
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
    best = max(salts, key=salts.count, default=None)
    return {}, best


def load(text):
    """Return the event on a line whose crc fits, also where its writer has put no JSON there."""
    try:
        return json.loads(text)
    except ValueError as error:
        seq = re.match(rb'\{"seq":(\d+),', text)
        return {"seq": int(seq[1]), "ts": "?", "type": "unreadable", "payload": str(error)} if seq else {}


def read(directory):
    """Return ({seq: event}, [what is wrong and where]) of a session's directory."""
    closed = sorted(p for p in directory.glob("*.jsonl") if re.fullmatch(r"\d{6,}-\d{12,}", p.stem))
    parts = [(p, p.read_bytes()) for p in [*closed, directory / "events.jsonl"] if p.exists()]
    rules, cap, limit = [], 1 << 62, None
    for path, data in reversed(parts):  # later segments say what of the earlier ones counts
        header, salt = head(data)
        rules.append((path, data[:limit], header, salt, cap))
        parent, limit = header.get("parent"), None
        first = re.search(rb'\{"seq":(\d+),', data)
        if header.get("rescue") or (not header and first):  # one whose header is gone may be a rescue
            cap = min(cap, header["first_seq"] if header else int(first[1]))
        if parent:
            cap, limit = min(cap, parent["upto_seq"] + 1), parent["upto_bytes"]
    events, bodies, wrong = {}, {}, []
    for path, data, header, salt, cap in reversed(rules):
        at, bad = 0, []
        if data and not header:
            wrong.append(f"{path.name}:0 the header does not read")
        for n, line in enumerate(data.split(b"\n")):
            rest, done = [], 0
            for start, end, body in pieces(line, salt) if salt is not None else ():
                rest, done = [*rest, line[done:start]], end
                event = load(line[start:end])
                seq = event.get("seq", cap)
                wrong, bad = wrong + bad if seq < cap else wrong, []
                if seq >= cap:
                    continue
                if bodies.setdefault(seq, body) != body:
                    wrong.append(f"{path.name}:{at} another event {seq}: two programs have written at once")
                elif seq in events:
                    wrong.append(f"{path.name}:{at} event {seq} stands there twice")
                events.setdefault(seq, event)
            if any(r.strip(b"\r \t\xef\xbb\xbf") for r in [*rest, line[done:]]) and not (header and n == 0):
                bad.append(f"{path.name}:{at} {len(line)} bytes of which something does not read: {line[:20]!r}")
            at += len(line) + 1
        if bad and max(events, default=0) + 1 < cap:
            wrong.append(f"{bad[0]} (the end: not finished, or damaged)")
    return events, wrong + [f"event {n} is missing" for n in range(1, max(events, default=0)) if n not in events]


if __name__ == "__main__":
    found, problems = read(Path(sys.argv[1]))
    for number in sorted(found):
        event = found[number]
        print(number, event["ts"], event["type"], json.dumps(event["payload"])[:100])
    print(*(f"! {problem}" for problem in problems), sep="\n", end="\n" if problems else "")
    sys.exit(1 if problems else 0)
