"""The tree of errors: each of them gets from one process to another as it was."""

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from inspect import Parameter, signature
from multiprocessing import get_context
from typing import Any

import pytest

import agentsh
from agentsh.base.errors import AgentshError, SessionHeld


def every(kind: type[AgentshError]) -> Iterator[type[AgentshError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every(below)


def classes() -> list[type[AgentshError]]:
    for module in pkgutil.walk_packages(agentsh.__path__, "agentsh."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = {kind for kind in every(AgentshError) if kind.__module__.startswith("agentsh.")}
    return sorted(found, key=lambda kind: kind.__qualname__)


def made(kind: type[AgentshError]) -> AgentshError:
    """Return one with something in each of its members."""
    some: dict[str, Any] = {"candidates": ("b", "a"), "holder": "pid 7"}
    parameters = list(signature(kind).parameters.values())
    words = {p.name: some.get(p.name, f"the {p.name}") for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
    positional = [f"the {p.name}" for p in parameters if p.kind is not Parameter.KEYWORD_ONLY]
    return kind(*positional, **words)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__qualname__)
def test_an_error_is_pickled_whole(kind: type[AgentshError]) -> None:
    error = made(kind)
    error.__notes__ = ["a note"]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for again in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is kind
            assert again.__dict__ == error.__dict__
            assert (str(again), again.args, again.exit_code) == (str(error), error.args, error.exit_code)


def _fail() -> None:
    raise SessionHeld("it is held", holder="pid 7", hint="wait")


def test_one_that_is_raised_in_another_process_is_raised_here() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(SessionHeld) as caught:
        pool.submit(_fail).result()
    assert (caught.value.message, caught.value.holder, caught.value.hint) == ("it is held", "pid 7", "wait")
