"""What a job printed is given once, in order, whatever its size, and no cut in it makes half a secret."""

import re
from pathlib import Path
from random import Random

import pytest

from agentsh.engine.secret_stream import SecretStream
from agentsh.engine.secrets import Secrets
from agentsh.workspace import job_output
from agentsh.workspace.job_output import JobOutput

MUCH = 10_000_000
MAX_KEPT_BYTES, MAX_TAIL_BYTES, MAX_LINE_BYTES = 40_000, 8_192, 512
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobOutput:
    """With small limits: looking for secrets takes its time."""
    for name in ("MAX_KEPT_BYTES", "MAX_TAIL_BYTES", "MAX_LINE_BYTES"):
        monkeypatch.setattr(job_output, name, globals()[name])
    secrets = Secrets()
    return JobOutput(tmp_path / "jobs" / "1.out", SecretStream(secrets), secrets.clean)


def lines(first: int, last: int) -> bytes:
    return b"".join(b"line %07d\n" % n for n in range(first, last))


def test_the_last_output_of_a_long_job_is_not_lost_when_it_ends(output: JobOutput, tmp_path: Path) -> None:
    output.add(lines(0, 4_000))
    seen = output.end
    assert seen == 4_000 * 13
    output.add(b"the last word\n")
    output.close()
    assert output.end == seen + 14, "positions do not go back"
    assert output.read(seen, MUCH) == "the last word\n"
    assert output.read(output.end, MUCH) == ""
    kept = (tmp_path / "jobs/1.out").read_text()
    assert output.read(0, MUCH) == kept
    (left_out,) = re.findall(r"… ([\d,]+) bytes left out", kept)
    assert len(re.sub(r"\n\[….*?…\]\n", "", kept)) + int(left_out.replace(",", "")) == output.end


@pytest.mark.parametrize("seed", range(6))
def test_what_is_read_as_it_comes_is_what_was_printed(output: JobOutput, seed: int) -> None:
    dice, given, printed, end = Random(seed), "", b"", 0
    while len(printed) < MAX_KEPT_BYTES + 3 * MAX_TAIL_BYTES:
        size = dice.choice((1, 100, 900, 3_000))
        data = b"".join(
            b"%d" % len(printed)
            + dice.choice((b"\n", b"\r\n", b"\r", b" ", b"x" * 100, b"token " + SECRET.encode() + b"\n"))
            for _ in range(size // 20 + 1)
        )
        printed += data
        output.add(data)
        begin, end = end, output.end
        assert begin <= end
        given += output.read(begin, MUCH)
    output.close()
    assert end <= output.end
    given += output.read(end, MUCH)
    whole = Secrets.clean(Secrets(), printed.decode())
    assert re.sub("‹secret:[0-9a-f]+›", "S", given) == re.sub("‹secret:[0-9a-f]+›", "S", whole)


def test_what_nobody_read_in_time_is_told_by_its_size(output: JobOutput) -> None:
    output.add(lines(0, 3_200))
    seen = output.end
    output.add(lines(3_200, 4_000))
    shown = output.read(seen, MUCH)
    mark, _, tail = shown.lstrip("\n").partition("\n")
    assert mark == f"[… {800 * 13 - len(tail):,} bytes left out …]"
    assert tail.encode() == lines(4_000 - len(tail) // 13, 4_000)
    assert MAX_TAIL_BYTES - MAX_LINE_BYTES < len(tail) <= MAX_TAIL_BYTES


@pytest.mark.parametrize("shift", range(0, len(SECRET) + 7, 3))
def test_o206_no_cut_goes_through_a_secret(output: JobOutput, tmp_path: Path, shift: int) -> None:
    """Where the file ends, where the tail begins, where reading begins, and where it ends in a running job."""
    row = b"token " + SECRET.encode() + b"\n"
    output.add(b"a b\n" * (MAX_KEPT_BYTES // 4 - 60) + b"-" * shift + b"\n" + row * 10)
    output.add(row * (2 * MAX_TAIL_BYTES // len(row)) + b"-" * shift + b"\n")
    output.add(row[: 10 + shift])
    said = output.read(0, 500 + shift) + output.read(0, MUCH)
    seen = output.end
    output.add(row[10 + shift :] + b"\n")
    said += output.read(seen, MUCH)
    output.close()
    for text in (said, (tmp_path / "jobs/1.out").read_text()):
        assert set(re.findall("token (.{3})", text)) == {"‹se"}
        assert SECRET[:9] not in text
        assert SECRET[-9:] not in text


def test_a_line_without_an_end_is_shown_all_the_same(output: JobOutput) -> None:
    output.add(b"x" * (MAX_KEPT_BYTES + 2 * MAX_LINE_BYTES))
    output.add(b"y" * 3 * MAX_TAIL_BYTES)
    shown = output.read(0, MUCH)
    assert shown.endswith("x\n[… 16,384 bytes left out …]\n" + "y" * MAX_TAIL_BYTES)
    assert output.read(0, 100) == "y" * 100
    output.close()
    assert output.read(0, 100) == "y" * 100


def test_a_short_line_waits_for_its_end_or_the_job_s(output: JobOutput) -> None:
    output.add(lines(0, 3_500))
    seen = output.end
    output.add(b"50 %")
    assert output.read(seen, MUCH) == ""
    output.add(b"\r99 %")
    assert output.read(seen, MUCH) == "50 %\r"
    seen = output.end
    output.close()
    assert output.read(seen, MUCH) == "99 %"


def test_half_a_character_at_the_end(output: JobOutput) -> None:
    output.add("ü".encode()[:1])
    output.close()
    assert output.read(0, MUCH) == "\N{REPLACEMENT CHARACTER}"


def test_a_very_long_word_does_not_hold_up_everything(output: JobOutput) -> None:
    """It took the square of its length: minutes for half a megabyte, on the event loop."""
    output.add(b"-" * 500_000 + b"\nend\n")
    assert output.end >= 500_000
