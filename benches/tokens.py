"""Token counting, as Markdown: `python benches/tokens.py [ROUNDS]`. Ratios of interleaved runs, no absolute times.

How far estimates are from o200k on a small corpus of our own (tests/tokens/corpus.py), what exact counting costs
against estimating, and what the ranks cost against what surrounds them.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from agentsh.models.token_counter import TiktokenCounter, shared  # noqa: E402 - tests are beside this, not installed
from agentsh.ports.tokens import ByteEstimate, PieceEstimate  # noqa: E402
from tests.tokens.corpus import CORPUS  # noqa: E402

Estimate = Callable[[str], int]
ESTIMATES: Mapping[str, Estimate] = {
    "characters/4": lambda text: len(text) // 4,
    "bytes/3": ByteEstimate().count,
    "pieces (ours)": PieceEstimate().count,
}


def errors() -> None:
    exact = {name: TiktokenCounter(shared(name)) for name in ("o200k_base", "cl100k_base")}  # type: ignore[arg-type]
    print("## Estimates against o200k\n")
    print(f"| text | o200k tokens | {' | '.join(ESTIMATES)} | o200k by chunks | pieces against cl100k |")
    print(f"|---|---|{'---|' * (len(ESTIMATES) + 2)}")
    for name, text in CORPUS.items():
        whole = len(shared("o200k_base").encode_ordinary(text))
        row = [f"{estimate(text) / whole - 1:+.0%}" for estimate in ESTIMATES.values()]
        row.append(f"{exact['o200k_base'].count(text) / whole - 1:+.2%}")
        row.append(f"{PieceEstimate().count(text) / exact['cl100k_base'].count(text) - 1:+.0%}")
        print(f"| {name} | {whole:,} | {' | '.join(row)} |")


def speeds(rounds: int) -> None:
    counter, text = TiktokenCounter(shared("o200k_base")), "".join(CORPUS.values())[:200_000]
    runs: dict[str, Callable[[], object]] = {
        "bytes/3": lambda: ByteEstimate().count(text),
        "pieces (ours)": lambda: PieceEstimate().count(text),
        "o200k": lambda: counter.count(text),
        "o200k, 5 MB of one letter": lambda: counter.count("a" * 5_000_000),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    print(f"\n## Counting {len(text):,} characters, against the estimate by pieces\n")
    print("| | times its seconds |\n|---|---|")
    base = times["pieces (ours)"]
    for name, own in times.items():
        print(f"| {name} | {statistics.median(a / b for a, b in zip(own, base, strict=True)):.2f} |")


LOADS = {
    "nothing": "pass",
    "import tiktoken": "import tiktoken",
    "cl100k ready": "from agentsh.models.token_counter import shared; shared('cl100k_base')",
    "o200k ready": "from agentsh.models.token_counter import shared; shared('o200k_base')",
    "windows of models": "from agentsh.models.windows import shipped; shipped('gpt-5')",
    "import openai": "import openai",
}


def loading(rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in LOADS}
    for _ in range(rounds):
        for name, code in LOADS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
            times[name].append(time.perf_counter() - start)
    print("\n## Loading, as whole processes, against the import of the openai client\n\n| | share |\n|---|---|")
    bare, base = times["nothing"], times["import openai"]
    for name in LOADS:
        shares = [(a - n) / (b - n) for a, b, n in zip(times[name], base, bare, strict=True)]
        print(f"| {name} | {statistics.median(shares):.2f} |")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    errors()
    speeds(rounds)
    loading(rounds)


if __name__ == "__main__":
    main()
