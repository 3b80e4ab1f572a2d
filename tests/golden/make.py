"""Writes the cases that are not in the corpus yet, with what the program makes of them, for review."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentsh.app.repairing import WORDS
from agentsh.base.errors import AgentshError
from agentsh.stores.blobs import FileBlobs
from agentsh.stores.jsonl import JsonlStore
from agentsh.stores.repair import repairing
from agentsh.stores.verify import Verifier
from tests.golden.cases import CASES, SESSION
from tests.log.disks import UnsyncedFiles

CORPUS = Path(__file__).parent / "format1"


def ranges(seqs: Iterable[int]) -> list[str]:
    """Return `["1-5", "7"]` for 1, 2, 3, 4, 5, 7."""
    found: list[list[int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1][1] = seq
        else:
            found.append([seq, seq])
    return [str(a) if a == b else f"{a}-{b}" for a, b in found]


def report_of(log: Path) -> dict[str, Any]:
    """Return what this program makes of a session's directory, which is copied first."""
    with tempfile.TemporaryDirectory() as place:
        sessions = Path(place) / "sessions"
        copies = [sessions / SESSION, Path(place) / "again" / SESSION]
        for copy in copies:
            shutil.copytree(log, copy)
        store = JsonlStore(sessions, FileBlobs(Path(place) / "blobs"), files=UnsyncedFiles())
        (found,) = Verifier(str(sessions), None).check([SESSION])
        return {
            "reads": ranges(r.seq for r in store.read(SESSION)),
            "ok": found.ok,
            "damages": [damage._asdict() for damage in found.damages],
            "remarks": list(found.remarks),
            "newer": found.newer,
            "opens": asyncio.run(opens(store)),
            "repair": repairs(copies[1].parent),
        }


async def opens(store: JsonlStore) -> dict[str, Any]:
    """Return what opening for writing does."""
    try:
        opened = await store.open(SESSION)
    except AgentshError as error:
        return {"error": type(error).__name__, "exit": error.exit_code}
    recovery = opened.recovery
    await opened.log.close()
    return {
        "cut_bytes": recovery.cut_bytes,
        "newline_added": recovery.newline_added,
        "quarantined": list(recovery.quarantined),
        "damages": len(recovery.damages),
        "next_seq": opened.log.last_seq + 1,
    }


def repairs(sessions: Path) -> dict[str, Any] | None:
    """Return what a repair does, after which all is well."""
    try:
        with repairing(str(sessions), SESSION, WORDS, files=UnsyncedFiles()) as repairer:
            plan = repairer.plan()
            if plan is None:
                return None
            repairer.repair(plan)
    except AgentshError as error:
        return {"error": type(error).__name__, "exit": error.exit_code}
    (found,) = Verifier(str(sessions), None).check([SESSION])
    assert found.ok, found
    return {
        "kept": plan.salvage.kept,
        "from_seq": plan.salvage.first_seq,
        "lost": [list(pair) for pair in plan.salvage.lost],
        "other_writers": [list(branch) for branch in plan.salvage.branches],
    }


def main() -> None:
    """Write what is missing."""
    for name, make in CASES.items():
        log, report = CORPUS / name, CORPUS / f"{name}.report.json"
        if not log.exists():
            log.mkdir(parents=True)
            for file, data in make().items():
                (log / file).write_bytes(data)
        if not report.exists():
            report.write_text(json.dumps(report_of(log), indent=1) + "\n")
            print("new:", name)


if __name__ == "__main__":
    main()
