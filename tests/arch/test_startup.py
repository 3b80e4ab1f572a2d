"""What each command loads: heavy packages stay out until they are needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh.testing.server import ScriptedServer, forever, reply
from tests.repl.pty import Terminal

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


BEHIND_THE_PROMPT = {"openai", "pydantic", "httpx2", "anyio", "markdown_it", "pygments"} | {
    "agentsh.render.code",
    "agentsh.tools.arguments",
}
"""What the first answer needs, and no key that is typed before it."""
NOT_FOR_A_PROMPT = {
    *(SLOW_IN_A_TURN - {"rich", "prompt_toolkit"}),
    "agentsh.cli.context",
    "agentsh.cli.headless",
    "agentsh.cli.main",
    "agentsh.cli.replay",
    "agentsh.repl.plain",
    "agentsh.repl.slash",
    "agentsh.render.final",
    "agentsh.render.jsonl",
    "email",
    "importlib.resources",
    "rich.syntax",
    "rich.table",
}
"""What only a command of some kind, or another screen, needs."""
WATCHED = """
import json, os, sys, time
from agentsh.cli import behind
real, told = behind._load, os.environ["TOLD"]
def load(model):
    before = [*sys.modules]
    while not os.path.exists(told + ".go"):
        time.sleep(0.01)
    real(model)
    with open(told + ".part", "w") as file:
        json.dump([before, [*sys.modules]], file)
    os.rename(told + ".part", told)
behind._load = load
from agentsh.cli.entry import main
main()
"""


@pytest.mark.parametrize("argv", [["new", "--model", "m", "--mode", "yolo", "--empty"], ["resume", "--last"]])
def test_a_prompt_takes_keys_before_the_rest_is_loaded(tmp_path: Path, argv: list[str]) -> None:
    told, program = tmp_path / "told", [sys.executable, "-c", WATCHED]
    home, own, url = str(tmp_path / "home"), str(tmp_path), "http://127.0.0.1:9"
    if argv[0] == "resume":
        born = [sys.executable, "-m", "agentsh", "new", "hi", "--model", "demo", "--empty", "-p"]
        env = {**os.environ, "AGENTSH_HOME": home, "HOME": own}
        subprocess.run(born, env=env, cwd=tmp_path, check=True, capture_output=True)
        argv = [*argv, "--model", "m"]
    with Terminal(
        argv=[*program, *argv], cwd=tmp_path, AGENTSH_HOME=home, HOME=own, OPENAI_BASE_URL=url, TOLD=str(told)
    ) as t:
        t.type("typed")
        t.wait(lambda: "› typed" in t.page)  # and nothing has been loaded yet
        (tmp_path / "told.go").touch()
        t.wait(told.exists)
    before, after = map(set, json.loads(told.read_text()))
    shown = {"markdown_it"} if argv[0] == "resume" else set()  # the answer of before is on the screen
    assert before & (BEHIND_THE_PROMPT | NOT_FOR_A_PROMPT) == shown
    assert after >= BEHIND_THE_PROMPT


NOT_BEFORE_A_CONTEXT = {
    "pydantic",
    "openai",
    "agentsh.tools.schema",
    "agentsh.models.openai_loading",
    "email.utils",
    "importlib.resources",
    "shutil",
    "tempfile",
    "random",
    "secrets",
    "difflib",
}
"""From 1 ms to 70 ms each, in a process that takes 120 ms to a context that is ready (ADR 0012)."""

RESUMED = """
import json, sys
before = set(sys.modules)
import asyncio
from pathlib import Path
from agentsh.app.paths import Home, Homes
from agentsh.app.settings import choose_model, load_settings
from agentsh.app.build import resume_session
from agentsh.app.plan import Plan, Screens
from agentsh.app.stores import blob_store
from agentsh.app.texts import BlobTexts
from agentsh.context.budget import fit
from agentsh.context.marks import Marks
from agentsh.ports.tokens import ByteEstimate

async def main():
    home = Home(Path(sys.argv[1]), True)
    (session,) = (path.name for path in home.sessions.iterdir())
    settings = load_settings(Homes((home,), home), {"HOME": sys.argv[1]})

    async def plan_for(state):
        return Plan(home, settings, choose_model(settings, {"OPENAI_API_KEY": "k"}, "gpt-5"), Screens(()))

    running = await resume_session(home, session, settings, plan_for=plan_for, show=lambda past: None)
    assert fit(running.session.state, BlobTexts(blob_store(home)), ByteEstimate(), marks=Marks(9_000)).messages
    loaded = dict(sys.modules)
    await running.session.close()
    ours = [module for name, module in loaded.items() if name.startswith("agentsh.")]
    classes = [each for module in ours for each in vars(module).values() if isinstance(each, type)]
    made = [c for c in classes if c.__module__ != "dataclasses" and "__dataclass_fields__" in vars(c)]
    compiled = {c.__qualname__ for c in made if c.__init__.__code__.co_filename == "<string>"}
    print(json.dumps([sorted(set(loaded) - before), sorted(compiled)]))

asyncio.run(main())
"""


def test_a_context_is_ready_before_anything_slow_is_loaded(tmp_path: Path) -> None:
    env = {**os.environ, "AGENTSH_HOME": str(tmp_path), "HOME": str(tmp_path)}
    new = ["-m", "agentsh", "new", "--model", "demo", "--empty", "-p", "Create a small project and run its tests."]
    for argv in (new, ["-c", RESUMED, str(tmp_path)]):
        done = subprocess.run(
            [sys.executable, *argv], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    loaded, compiled = json.loads(done.stdout)
    assert sorted(NOT_BEFORE_A_CONTEXT & set(loaded)) == []
    assert compiled == [], "agentsh.base.light has dataclasses that cost less"
