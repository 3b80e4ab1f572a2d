"""Our own reading of facts takes and refuses what models of pydantic do, and gives the same back."""

import json
import random
from typing import Any, get_args, get_origin

import pytest
from pydantic import ValidationError

from agentsh.base.typed import Misfit, Value
from agentsh.events.codec import decode
from agentsh.events.event import Opaque
from agentsh.events.union import KINDS
from agentsh.log.record import Record
from agentsh.testing.pydantic_models import model_of

ODD: tuple[Any, ...] = (None, True, 0, 7, -1, 1.5, "", "x", "7", [], ["x"], [1], {}, {"a": 1}, {"a": None}, [{}])
BLOB = {"blob": "sha256:0", "bytes": 3, "head": "a", "tail": "c"}


def fitting(hint: Any, chance: random.Random) -> Any:
    """Return something of a type, as JSON has it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Value):
        return members(hint, chance)
    if origin is tuple:
        return [fitting(arguments[0], chance) for _ in range(chance.randrange(3))]
    if origin is dict:
        return {f"k{n}": fitting(arguments[1], chance) for n in range(chance.randrange(3))}
    if arguments:
        choice = chance.choice(arguments)
        return choice if isinstance(choice, str) else fitting(choice, chance)
    if hint is Any:
        return chance.choice((*ODD, BLOB))
    return {str: "text", int: 5, float: 0.25, bool: False, type(None): None}[hint]


def members(kind: type[Value], chance: random.Random) -> dict[str, Any]:
    return {
        name: fitting(member.annotation, chance)
        for name, member in kind.model_fields.items()
        if name != "type" and (member.is_required() or chance.random() < 0.5)
    }


def spoiled(payload: Any, chance: random.Random) -> Any:
    """Return it with something in it that is odd, missing or new, at any depth."""
    if isinstance(payload, dict) and payload and chance.random() < 0.8:
        name = chance.choice(list(payload))
        if chance.random() < 0.2:
            return {k: v for k, v in payload.items() if k != name}
        if chance.random() < 0.2:
            return payload | {"model_copy": 1, "later": [{"x": None}]}
        return payload | {name: spoiled(payload[name], chance)}
    if isinstance(payload, list) and payload and chance.random() < 0.8:
        return [spoiled(payload[0], chance), *payload[1:]]
    return chance.choice((*ODD, BLOB))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_facts_are_read_as_by_models_of_pydantic(kind: type[Value]) -> None:
    chance, model = random.Random(kind.__name__), model_of(kind)
    taken = refused = 0
    for n in range(150):
        payload = members(kind, chance)
        if n % 3:
            payload = spoiled(payload, chance)
        try:
            theirs = model.model_validate_json(json.dumps(payload), strict=True)
        except ValidationError:
            with pytest.raises(Misfit):
                kind.model_validate(payload)
            refused += 1
            continue
        ours = kind.model_validate(payload)
        for unset in (True, False):
            mine = ours.model_dump(exclude_unset=unset)
            assert list(mine.items()) == list(theirs.model_dump(mode="json", exclude_unset=unset).items())
        assert kind.model_validate(ours.model_dump(exclude_unset=True)) == ours
        taken += 1
    assert taken >= 50
    assert refused


def test_a_number_that_no_float_holds_is_a_misfit_as_any_other() -> None:
    record = Record(5, "2026-01-01T00:00:00.000Z", "note", 0, None, {}, b"")
    long = {"text": "x", "reasoning": "", "finish": "stop", "model": "m", "usage": None, "cost_usd": 10**400}
    event = decode(record._replace(type="agent_message", payload=long))
    assert isinstance(event.fact, Opaque)
    assert event.fact.problem == "cost_usd: is too large"
