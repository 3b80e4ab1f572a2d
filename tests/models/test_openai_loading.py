"""openai loaded the quick way: what a request does not need stays out, and nothing of the package is missing."""

import json
import subprocess
import sys
from typing import Any

COUNT = """
import json, sys
from agentsh.models.openai_loading import load_openai
load_openai()
import openai
openai.AsyncOpenAI(api_key="k").post
print(json.dumps(sorted(m for m in sys.modules if m.startswith("openai.types"))))
"""
NAMES = """
import importlib, json, pkgutil, sys
if sys.argv[1] == "quick":
    from agentsh.models.openai_loading import load_openai
    load_openai()
import openai, openai.types
packages = ["openai.types"]
packages += [m.name for m in pkgutil.walk_packages(openai.types.__path__, "openai.types.") if m.ispkg]
for name in packages[::-1]:
    exec(f"from {name} import *", {})
    getattr(importlib.import_module(name), "no such name", None)
print(json.dumps({name: sorted(n for n in vars(sys.modules[name]) if n[0].isupper()) for name in packages}))
"""
THREADS = """
import sys, threading
from agentsh.models.openai_loading import load_openai
def use():
    load_openai()
    import openai
    gate.wait()
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response
    seen.append((openai.OpenAIError, CompletionUsage, ChatCompletion, Response))
seen, gate = [], threading.Barrier(4)
threads = [threading.Thread(target=use) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(seen), len(set(seen)))
"""


def printed(code: str, *arguments: str) -> Any:
    """Run the code in a fresh interpreter and return what it printed."""
    argv = [sys.executable, "-c", code, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout


def test_the_models_of_other_apis_stay_out() -> None:
    loaded = json.loads(printed(COUNT))
    assert "openai.types" in loaded
    assert "openai.types.responses.response" not in loaded
    assert len(loaded) < 120, loaded  # of more than 460


def test_every_name_of_the_types_is_there_when_it_is_asked_for() -> None:
    plain, quick = json.loads(printed(NAMES, "plain")), json.loads(printed(NAMES, "quick"))
    assert len(plain) > 10
    assert quick == plain


def test_a_missing_name_is_missing_and_importing_in_threads_agrees() -> None:
    assert printed(THREADS).split() == ["4", "1"]
    code = (
        "from agentsh.models.openai_loading import load_openai\nload_openai()\nimport openai.types, inspect\n"
        "try:\n    openai.types.NoSuchThing\nexcept AttributeError as error:\n    print(error)\n"
        "print('class' in inspect.getsource(openai.types.CompletionUsage), openai.types.__spec__.loader)\n"
    )
    missing, source = printed(code).splitlines()
    assert missing == "module 'openai.types' has no attribute 'NoSuchThing'"
    assert source.startswith("True <_frozen_importlib_external.SourceFileLoader")
