"""Shipped contracts, fakes and servers, for agentsh's own tests and for those of its adapters.

The names below load on first use: the scripted server starts as a process of its own and needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentsh.models.scripted import Say, ScriptedModel
    from agentsh.stores.memory import MemoryBlobs, MemoryStore
    from agentsh.testing.fakes import FakeClock, FunctionTool, KeepingRenderer, ScriptedApprover
    from agentsh.testing.faults import FailingLog

_PLACES = {
    "FailingLog": "agentsh.testing.faults",
    "FakeClock": "agentsh.testing.fakes",
    "FunctionTool": "agentsh.testing.fakes",
    "KeepingRenderer": "agentsh.testing.fakes",
    "MemoryBlobs": "agentsh.stores.memory",
    "MemoryStore": "agentsh.stores.memory",
    "Say": "agentsh.models.scripted",
    "ScriptedApprover": "agentsh.testing.fakes",
    "ScriptedModel": "agentsh.models.scripted",
}

__all__ = [
    "FailingLog",
    "FakeClock",
    "FunctionTool",
    "KeepingRenderer",
    "MemoryBlobs",
    "MemoryStore",
    "Say",
    "ScriptedApprover",
    "ScriptedModel",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(name)
