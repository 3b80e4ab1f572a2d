"""No file of the package imports what imports it: at the top, inside of functions, or for type checkers alone."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imports(root: Path) -> dict[str, set[str]]:
    """Return what each module of the package imports of it."""
    files = {path: path.relative_to(root).with_suffix("") for path in sorted((root / "agentsh").rglob("*.py"))}
    names = {".".join(place.parts).removesuffix(".__init__"): path for path, place in files.items()}
    found: dict[str, set[str]] = {}
    for name, path in names.items():
        told: set[str] = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                told.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                told.update(inner & names.keys(), {node.module} if inner - names.keys() else ())
        found[name] = told & names.keys()
    return found


def test_no_file_imports_what_imports_it() -> None:
    found = imports(ROOT)
    assert len(found) > 400
    TopologicalSorter(found).prepare()


@pytest.mark.parametrize(
    "line", ["import agentsh.a", "def f():\n    from agentsh import a", "from agentsh.a import x"]
)
def test_a_seeded_circle_is_found(tmp_path: Path, line: str) -> None:
    package = tmp_path / "agentsh"
    (package / "b").mkdir(parents=True)
    (package / "a.py").write_text("from agentsh.b import c\n")
    (package / "b" / "__init__.py").touch()
    (package / "b" / "c.py").write_text(line)
    with pytest.raises(CycleError, match=r"agentsh\.b\.c"):
        TopologicalSorter(imports(tmp_path)).prepare()
