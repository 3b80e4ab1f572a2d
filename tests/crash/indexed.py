"""The index beside logs that crash: it lies on another disk and keeps what it was told, whatever the logs lost.

After each crash and each recovery `ls` with that index must say what it says without one. Without rot: that `ls`
cannot see, and does not look for.
"""

import os
from pathlib import Path

from agentsh.app.catalog import Filter, rows
from agentsh.app.paths import Home, Homes
from tests.crash.laboratory import ROOT, Figures, Options, Run
from tests.crash.ledger import Ledger, Violation
from tests.crash.runs import one_run


class IndexedRun(Run):
    """A run whose sessions are also laid out as real files, where they are listed. place: an empty directory."""

    def __init__(self, seed: int, options: Options, figures: Figures, place: Path) -> None:
        super().__init__(seed, options, figures)
        self.home = Home(place, trusted=True)
        self.home.sessions.mkdir(parents=True)
        self.clock = 0

    def stop(self, power_cut: bool) -> None:
        super().stop(power_cut)
        self.listed()

    def recover(self, ledger: Ledger) -> None:
        super().recover(ledger)
        self.listed()

    def listed(self) -> None:
        """Compare what `ls` says with the index and without it."""
        self._lay_out()
        untrusted = self.home._replace(trusted=False)  # whose index is not believed
        shown = [rows(Homes((home,), home), Filter(limit=0)) for home in (self.home, untrusted)]
        told, true = ([(r.place.id, r.state, r.place.size, r.summary) for r in some] for some in shown)
        if told != true:
            raise Violation(f"ls says {told} by the index, and {true} by the logs")

    def _lay_out(self) -> None:
        """Make the real files those of the disk. A file that is as it was keeps its inode and time."""
        try:
            found = self.disk.tree(ROOT)
        except FileNotFoundError:
            found = {}
        wanted = {self.home.sessions / os.path.relpath(path, ROOT): data for path, data in found.items()}
        for path in [p for p in self.home.sessions.rglob("*") if p.is_file() and p not in wanted]:
            path.unlink()
        for path, data in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_bytes() != data:
                path.write_bytes(data)
                self.clock += 1
                os.utime(path, ns=(self.clock, self.clock))  # the clock of a disk may stand still for a while


def indexed_runs(first_seed: int, count: int, place: Path, *, enough: int = 0) -> Figures:
    """Make runs with an index each, until there were `enough` violations."""
    figures = Figures()
    for seed in range(first_seed, first_seed + count):
        if enough and len(figures.violations) >= enough:
            break
        run = IndexedRun(seed, Options(lives=4, rot=0.0), figures, place / str(seed))
        one_run(seed, run.options, figures, lambda _, run=run: run.go())  # type: ignore[misc]
    return figures
