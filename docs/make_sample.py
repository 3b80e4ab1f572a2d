"""Makes the sample session of this repository anew: `python docs/make_sample.py` (as root: it works in /home/ana).

A real run of the demo model, as somebody called Ana would have done it, so that no path of the maker's machine gets
into the log. What was there before is replaced; the new files are added to git by force, past .gitignore.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ANA = Path("/home/ana")
HOME = ANA / "agentsh"
PROMPT = "Create a small project and run its tests."


def main() -> None:
    """Run the session, and copy what it left."""
    if ANA.exists():
        sys.exit(f"{ANA} is there already")
    shop = ANA / "shop"
    shop.mkdir(parents=True)
    try:
        agentsh = str(Path(sys.executable).parent / "agentsh")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTSH_", "OPENAI_"))}
        env |= {"HOME": str(ANA), "AGENTSH_HOME": str(HOME)}
        words = [agentsh, "new", PROMPT, "--model", "demo", "--empty", "-p", "--tag", "sample"]
        subprocess.run(words, cwd=shop, env=env, check=True, stdout=subprocess.DEVNULL)
        (session,) = (p.name for p in (HOME / "sessions").iterdir())
        replace(session)
    finally:
        shutil.rmtree(ANA)


def replace(session: str) -> None:
    """Put the new sample where the old one was."""
    for place in ("sessions", "workspaces", "blobs"):
        subprocess.run(["git", "rm", "-rqf", "--ignore-unmatch", f"{place}/*"], cwd=ROOT, check=True)
        for old in (ROOT / place).iterdir() if (ROOT / place).is_dir() else ():
            if old.is_dir():
                shutil.rmtree(old)
    wanted = [Path("sessions") / session / "events.jsonl"]
    wanted += [p.relative_to(HOME) for p in (HOME / "workspaces" / session).rglob("*.*") if p.is_file()]
    wanted += [p.relative_to(HOME) for p in (HOME / "blobs").rglob("*.zst")]
    wanted = [p for p in wanted if "__pycache__" not in p.parts]
    for path in wanted:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HOME / path, ROOT / path)
    for keep in ("sessions/.gitkeep", "workspaces/.gitkeep"):
        (ROOT / keep).touch()
    files = [*map(str, wanted), "sessions/.gitkeep", "workspaces/.gitkeep"]
    subprocess.run(["git", "add", "-f", *files], cwd=ROOT, check=True)
    print(f"{session}: {len(wanted)} files")


if __name__ == "__main__":
    main()
