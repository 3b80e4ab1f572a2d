"""Shipped contracts, fakes and servers, for agentsh's own tests and for those of its adapters."""

from agentsh.models.scripted import Say, ScriptedModel
from agentsh.stores.memory import MemoryBlobs, MemoryStore
from agentsh.testing.fakes import FakeClock, FunctionTool, KeepingRenderer, ScriptedApprover

__all__ = [
    "FakeClock",
    "FunctionTool",
    "KeepingRenderer",
    "MemoryBlobs",
    "MemoryStore",
    "Say",
    "ScriptedApprover",
    "ScriptedModel",
]
