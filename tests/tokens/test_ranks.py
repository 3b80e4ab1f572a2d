"""The ranks that ship: the very files that tiktoken fetches, in the wheel, with their licence, and no network."""

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from agentsh.models import ranks
from agentsh.models.ranks import SOURCES, EncodingName, encoding_of, rank_file
from agentsh.models.token_counter import ModelCounter, shared
from agentsh.ports.tokens import is_estimate

ROOT = Path(__file__).parents[2]
DATA = ROOT / "agentsh" / "models" / "data"
NAMES: list[EncodingName] = ["o200k_base", "cl100k_base"]


@pytest.mark.parametrize(
    ("name", "size", "sha256"),
    [
        ("o200k_base", 3_613_922, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
        ("cl100k_base", 1_681_126, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    ],
)
def test_the_files_are_those_that_tiktoken_names(name: EncodingName, size: int, sha256: str) -> None:
    data = rank_file(name)
    assert (len(data), hashlib.sha256(data).hexdigest(), SOURCES[name].sha256) == (size, sha256, sha256)
    assert sha256 in (DATA / "SOURCES.md").read_text()


def test_they_are_what_the_installed_tiktoken_would_build() -> None:
    """Patterns and special tokens are copied facts: held against the source that is installed."""
    public = importlib.import_module("tiktoken_ext.openai_public")
    source = Path(str(public.__file__)).read_text()
    for name, known in SOURCES.items():
        assert known.sha256 in source, name
        assert all(f"{number}" in source for number in known.special.values())
    own = shared("cl100k_base")
    assert own._pat_str in source  # the other is joined from parts there
    parts = shared("o200k_base")._pat_str.split("|")
    assert all(part in source for part in parts if "\\p{N}{1,3}" in part or part.startswith("\\s"))


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        # From OpenAI's cookbook, "How to count tokens with tiktoken".
        ("o200k_base", "tiktoken is great!", [83, 8251, 2488, 382, 2212, 0]),
        ("cl100k_base", "tiktoken is great!", [83, 1609, 5963, 374, 2294, 0]),
        ("o200k_base", "お誕生日おめでとう", [8930, 9697, 243, 128225, 8930, 17693, 4344, 48669]),
        ("cl100k_base", "お誕生日おめでとう", [33334, 45918, 243, 21990, 9080, 33334, 62004, 16556, 78699]),
    ],
)
def test_published_encodings(name: EncodingName, text: str, ids: list[int]) -> None:
    assert shared(name).encode_ordinary(text) == ids


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-5", "o200k_base"), ("gpt-5-mini", "o200k_base"), ("gpt-5.1-codex", "o200k_base"),
        ("gpt-4o-2024-08-06", "o200k_base"), ("gpt-4.1-nano", "o200k_base"), ("o1-preview", "o200k_base"),
        ("o3", "o200k_base"), ("o4-mini", "o200k_base"), ("gpt-oss:20b", "o200k_base"),
        ("openai/gpt-5", "o200k_base"), ("ft:gpt-4o:org", "o200k_base"),
        ("gpt-4", "cl100k_base"), ("gpt-4-turbo", "cl100k_base"), ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-45", None), ("o365", None), ("qwen3-coder", None), ("claude-sonnet-4-5", None),
        ("demo", None), ("", None),
    ],
)  # fmt: skip
def test_which_model_has_which_encoding(model: str, encoding: str | None) -> None:
    assert encoding_of(model) == encoding


def test_it_is_built_without_network_and_without_tiktokens_loader() -> None:
    """G: a proxy in the way, or no network at all, is no stall (H143)."""
    code = (
        "import socket\n"
        "def refuse(*_, **__): raise AssertionError('the network was asked')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "import tiktoken\n"
        "tiktoken.get_encoding = tiktoken.encoding_for_model = refuse\n"
        "from agentsh.models.token_counter import ModelCounter\n"
        "counter = ModelCounter()\n"
        "assert counter.load('gpt-5') and counter.load('gpt-4')\n"
        "counter.wait(30)\n"
        "for model in ('gpt-5', 'gpt-4'):\n"
        "    counter.adopt(model)\n"
        "    print(counter.name, counter.count('tiktoken is great!'))\n"
        "import sys\n"
        "print('requests' in sys.modules)\n"
    )
    env = {"PATH": os.environ["PATH"], "TIKTOKEN_CACHE_DIR": "/nonexistent", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60, check=True
    )
    assert done.stdout.split("\n")[:3] == ["o200k 6", "cl100k 6", "False"]


@pytest.mark.parametrize("harm", ["gone", "cut", "other"])
def test_a_damaged_installation_counts_by_the_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    place = tmp_path / "data"
    shutil.copytree(DATA, place)
    file = place / "o200k_base.tiktoken.zst"
    if harm == "gone":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        shutil.copy(place / "cl100k_base.tiktoken.zst", file)
    monkeypatch.setattr(ranks, "PLACE", place)
    monkeypatch.setattr("agentsh.models.token_counter._LOADED", {})
    counter = ModelCounter()
    assert counter.load("gpt-5")
    counter.wait(30)
    counter.adopt("gpt-5")
    assert is_estimate(counter)
    assert counter.failure
    assert not counter.load("gpt-5"), "it is not tried again and again"
    assert counter.count("still counts") > 0


def test_the_wheel_holds_the_data_and_its_licences(tmp_path: Path) -> None:
    """Built as pip would build it, without an isolated environment, so that no network is needed."""
    build = shutil.which("hatchling", path=str(Path(sys.executable).parent))
    if build is None:
        pytest.skip("hatchling is not installed here; the include rule is tested beside this")
    subprocess.run(
        [build, "build", "-t", "wheel", "-d", str(tmp_path)], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for name in NAMES:
            packed = archive.read(f"agentsh/models/data/{name}.tiktoken.zst")
            assert packed == (DATA / f"{name}.tiktoken.zst").read_bytes()
    assert "agentsh/models/data/windows.json" in names
    licences = {Path(n).name for n in names if ".dist-info/licenses/" in n}
    assert {"LICENSE", "LICENSE.tiktoken", "LICENSE.models.dev", "LICENSE.genai-prices"} <= licences


def test_the_include_rule_names_the_data() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["agentsh"]}, "all below, data too"
    patterns = project["project"]["license-files"]
    for file in DATA.glob("LICENSE.*"):
        assert any(fnmatch(str(file.relative_to(ROOT)), pattern) for pattern in patterns)
        assert "MIT" in file.read_text()
    tracked = subprocess.run(
        ["git", "ls-files", "agentsh/models/data"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert not tracked or {Path(t).name for t in tracked} >= {f"{n}.tiktoken.zst" for n in NAMES} | {"windows.json"}
