"""Light dataclasses do what those of the standard library do, seen from outside."""

import copy
import dataclasses
from typing import Any

import pytest

from agentsh.base import light

MAKERS = [pytest.param(light.dataclass, id="light"), pytest.param(dataclasses.dataclass, id="library")]


def made(dataclass: Any) -> tuple[Any, Any, Any]:
    @dataclass(frozen=True, slots=True)
    class Place:
        """A docstring."""

        name: str
        size: int = 3
        secret: str = light.field(default="", repr=False)
        call: Any = light.field(default=lambda: "called")

        def twice(self) -> int:
            return 2 * self.size

    @dataclass(slots=True)
    class Heap:
        items: list[int] = light.field(default_factory=list)
        last: int | None = None

    @dataclass(frozen=True, kw_only=True)
    class Named:
        b: int
        a: int = 1

    return Place, Heap, Named


def often(dataclass: Any, before: int) -> tuple[Any, Any, Any]:
    """Return the classes when so many objects of each have been made."""
    place, heap, named = made(dataclass)
    for _ in range(before):
        place("a"), heap(), named(b=1)
    return place, heap, named


@pytest.mark.parametrize("before", [0, 3 * light.MANY])
@pytest.mark.parametrize("dataclass", MAKERS)
def test_both_do_the_same(dataclass: Any, before: int) -> None:
    place, heap, named = often(dataclass, before)
    one = place("x", secret="s")
    assert (one.name, one.size, one.twice(), one.call()) == ("x", 3, 6, "called")
    assert (one == place(name="x", secret="s"), one == place("y"), one == ("x", 3)) == (True, False, False)
    assert hash(one) == hash(place("x", secret="s"))
    assert repr(one).startswith("made.<locals>.Place(name='x', size=3, call=")
    assert "secret" not in repr(one)
    assert dataclasses.replace(one, size=5) == place("x", 5, "s")
    assert [f.name for f in dataclasses.fields(place)] == ["name", "size", "secret", "call"]
    changes: list[Any] = [lambda: setattr(one, "size", 4), lambda: delattr(one, "name")]
    for change in changes:
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert copy.copy(one) == copy.deepcopy(one) == one
    match one:
        case place(name, 3):
            assert name == "x"
        case _:
            pytest.fail("it does not match")

    first, second = heap(), heap(last=2)
    first.items.append(1)
    second.last = 7
    assert dataclasses.asdict(first) == {"items": [1], "last": None}
    assert dataclasses.asdict(second) == {"items": [], "last": 7}
    assert copy.deepcopy(first).items is not first.items
    with pytest.raises(TypeError):
        hash(first)
    assert (named(b=2).a, named(b=2, a=3)) == (1, named(a=3, b=2))


@pytest.mark.parametrize("before", [0, 3 * light.MANY])
@pytest.mark.parametrize("dataclass", MAKERS)
@pytest.mark.parametrize(
    ("arguments", "given"), [((), {}), (("x", 1, 2, 3, 4), {}), (("x",), {"name": "y"}), (("x",), {"other": 1})]
)
def test_wrong_arguments_are_refused(
    dataclass: Any, before: int, arguments: tuple[Any, ...], given: dict[str, Any]
) -> None:
    place, _, named = often(dataclass, before)
    with pytest.raises(TypeError):
        place(*arguments, **given)
    with pytest.raises(TypeError):
        named(1)
    with pytest.raises(TypeError):
        named(a=1)


@pytest.mark.parametrize("before", [0, 3 * light.MANY])
@pytest.mark.parametrize("dataclass", MAKERS)
def test_members_may_have_any_name(dataclass: Any, before: int) -> None:
    @dataclass(frozen=True)
    class Odd:
        held: int
        members: int = 2
        given: Any = light.field(default_factory=dict)

    for _ in range(before):
        Odd(1)
    one, other = Odd(1, given=3), Odd(held=4)
    assert (one.held, one.members, one.given, other.held, other.given) == (1, 2, 3, 4, {})
    assert Odd(1).given is not Odd(1).given


@pytest.mark.parametrize("dataclass", MAKERS)
def test_what_would_break_only_later_is_refused_at_once(dataclass: Any) -> None:
    shared: list[Any] = [[], {}, set()]
    for default in shared:
        with pytest.raises(ValueError, match="default_factory"):
            dataclass()(type("Shared", (), {"__annotations__": {"a": list[int]}, "a": default}))
    with pytest.raises(TypeError, match="default"):
        dataclass()(type("Late", (), {"__annotations__": {"a": int, "b": int}, "a": 1}))
