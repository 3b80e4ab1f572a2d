"""What each command loads: heavy packages stay out until they are needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, forever, reply

HEAVY = {
    "typer",
    "click",
    "rich",
    "prompt_toolkit",
    "openai",
    "pydantic",
    "zstandard",
    "tiktoken",
    "asyncio",
    "sqlite3",
}


def loaded_by(argv: list[str], home: Path) -> set[str]:
    """Run the command in a fresh interpreter and return which heavy packages it has loaded."""
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print('LOADED', *sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['agentsh', *{argv!r}]\n"
        "from agentsh.cli.entry import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "AGENTSH_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = next(row for row in done.stderr.splitlines() if row.startswith("LOADED"))
    return set(line.split()[1:])


def test_version_loads_nothing(tmp_path: Path) -> None:
    assert loaded_by(["--version"], tmp_path) == set()


@pytest.mark.parametrize("argv", [["ls"], ["ls", "--all", "--json"], ["ls", "--sort=cost", "--tag", "x", "word"]])
def test_ls_loads_no_framework(tmp_path: Path, argv: list[str]) -> None:
    assert loaded_by(argv, tmp_path) <= {"sqlite3"}


def test_the_store_loads_no_pydantic() -> None:
    code = (
        "import sys, agentsh.stores.jsonl, agentsh.stores.memory\n"
        "print(sorted({'pydantic', 'zstandard'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_tables_of_the_repl_and_the_models_load_no_client() -> None:
    code = (
        "import sys, agentsh.app.build, agentsh.models.openai_chat, agentsh.app.wiring\n"
        "print(sorted({'openai', 'tiktoken', 'prompt_toolkit', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


SLOW_IN_A_TURN = {
    "typer",
    "click",
    "rich",
    "prompt_toolkit",
    "tiktoken",
    "openai.types.responses.response",
    "tree_sitter",
    "pathspec",
    "tomllib",
    "sqlite3",
}
"""A headless turn without a shell line or a configuration needs none of them; each costs from 3 ms to 300 ms."""


def test_a_headless_turn_and_its_resume_load_what_they_need(tmp_path: Path) -> None:
    with ScriptedServer([forever(lambda request: reply("Done."))]) as server:
        env = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "AGENTSH_HOME": str(tmp_path)}
        home = ["--model", "m", "--mode", "yolo", "-p"]
        for argv in (["new", "go", "--empty", *home], ["resume", "--last", "go on", *home]):
            code = (
                "import sys, atexit\n"
                f"atexit.register(lambda: print('LOADED', *sorted({SLOW_IN_A_TURN!r} & set(sys.modules))))\n"
                f"sys.argv = ['agentsh', *{argv!r}]\n"
                "from agentsh.cli.entry import main\nmain()\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60,
                check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert done.stdout.splitlines() == ["Done.", "LOADED"], argv
