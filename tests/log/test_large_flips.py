"""Random flips of a large log: no readable event is lost, none is silently wrong, and all is told."""

import random

from agentsh.log.segment import closed_name
from tests.log.disks import MemFiles
from tests.log.logs import DIR, LOG, header, lines, scanned


def test_random_flips_of_a_large_log() -> None:
    """Of ten thousand events, in two segments: each flip costs its line at most, and is told."""
    dice, per = random.Random(11), 5_000
    heads = [header(0, 1), header(1, per + 1)]
    texts = [lines(heads[0], 1, per), lines(heads[1], per + 1, 2 * per)]
    disk = MemFiles()
    disk.put(f"{DIR}/{closed_name(0, 1)}", heads[0].raw + b"".join(texts[0]))
    data = bytearray(heads[1].raw + b"".join(texts[1]))
    disk.put(LOG, bytes(data))
    good = [text[:-1] for text in [*texts[0], *texts[1]]]
    names = [f"{DIR}/{closed_name(0, 1)}", LOG]
    for _ in range(12):
        hits = {name: sorted(dice.sample(range(len(disk.data(name))), 4)) for name in names}
        whole = {name: disk.data(name) for name in names}
        gone: set[int] = set()
        for n, name in enumerate(names):
            flipped = bytearray(whole[name])
            for at in hits[name]:
                flipped[at] ^= 1 << dice.randrange(8)
                at_line = whole[name].count(b"\n", 0, at)
                if at_line and whole[name][at : at + 1] != b"\n":  # a header is known again, a line end found again
                    gone.add(n * per + at_line)
            disk.put(name, bytes(flipped))
        found, scan = scanned(disk)
        assert [seq for seq, _ in found] == [seq for seq in range(1, 2 * per + 1) if seq not in gone]
        assert all(text == good[seq - 1] for seq, text in found)
        assert scan.damages
        for name in names:
            disk.put(name, whole[name])
