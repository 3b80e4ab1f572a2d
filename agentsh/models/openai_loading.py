"""Loads the openai package without its models of every API, of which no request here needs one (ADR 0010).

`import openai` runs the `__init__` of `openai.types` and of the packages below it: more than four hundred modules of
pydantic models, more than half of the time of the import. Here these packages begin as shells, whose `__init__` runs
when a name is asked for that it would define. Nothing is missing afterwards, it only comes later.
"""

import importlib.machinery
import sys
from collections.abc import Sequence
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # their module takes longer to load than this one, and nothing of it is needed
    Loader = MetaPathFinder = object

TYPES = "openai.types"

_filling = RLock()


def load_openai() -> None:
    """Import openai, the quick way where nothing has imported it yet. A later `import openai` finds it."""
    if "openai" not in sys.modules:
        shells = _Shells()
        sys.meta_path.insert(0, shells)
        try:
            import openai  # noqa: F401 - the import is the purpose
        finally:
            sys.meta_path.remove(shells)


class _Shells(MetaPathFinder):
    """Finds the packages of the types as they are, and puts off running them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != TYPES and not fullname.startswith(TYPES + "."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is not None:
            spec.loader = _Later(spec.loader)
        return spec


class _Later(Loader):
    """Makes a shell, and remembers how it is filled."""

    def __init__(self, real: Loader) -> None:
        self.real = real
        self.running = False

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Shell(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing yet."""


class _Shell(ModuleType):
    """A package whose `__init__` has not run. Python asks `__getattr__` only for what is not there."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        with _filling:
            self._fill()
        if name in self.__dict__:
            return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def _fill(self) -> None:
        """Run the `__init__`, once. Inside of it what is missing is missing, as in any circle of imports."""
        spec = self.__spec__
        if spec is None or not isinstance(later := spec.loader, _Later) or later.running:
            return
        later.running = True
        try:
            later.real.exec_module(self)
        finally:
            later.running = False
        spec.loader = self.__loader__ = later.real
