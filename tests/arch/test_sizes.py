"""The limits of the house: files under 400 lines, functions under 60, a docstring on everything public."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "agentsh").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "core", "misc"}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_is_longer_than_its_limit(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_function_is_longer_than_its_limit(path: Path) -> None:
    long = [
        f"{f.name}: {(f.end_lineno or f.lineno) - f.lineno + 1}"
        for f in functions(ast.parse(path.read_text(encoding="utf-8")))
        if (f.end_lineno or f.lineno) - f.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_why_it_exists_and_has_a_name_that_means_something(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a module opens with the one reason for which it exists"
    assert path.stem not in FORBIDDEN_NAMES
    assert path.parent.name not in FORBIDDEN_NAMES


def test_the_limits_can_fail() -> None:
    tree = ast.parse("def f():\n" + "    x = 1\n" * 80)
    (function,) = functions(tree)
    assert (function.end_lineno or 0) - function.lineno + 1 > MAX_FUNCTION_LINES
