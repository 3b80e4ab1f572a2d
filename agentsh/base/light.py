"""`dataclass` as in the standard library, for a tenth of its cost at start-up: nothing is compiled (ADR 0012).

Each dataclass of the standard library compiles up to seven functions, 0.5 ms, and a session needs fifty of them
before it can begin. These share theirs; making an object takes some 0.5 µs longer. Type checkers see the original,
and so do `dataclasses.fields`, `replace` and `asdict`. Taken are frozen, eq, kw_only, and slots, which does nothing.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from typing import TYPE_CHECKING, Any, NamedTuple

__all__ = ["dataclass", "field"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen=False, eq=True, kw_only=False, slots=False):
        """Return a decorator; see the module."""
        return lambda cls: _made(cls, _Params(frozen=frozen, eq=eq, kw_only=kw_only, slots=slots))


MANY = 50
"""From so many objects on, a class gets an initialiser of its own."""


class _Params(NamedTuple):
    """What the standard library looks at in the bases of a dataclass."""

    frozen: bool
    eq: bool
    kw_only: bool
    slots: bool


def _made(cls: Any, params: _Params) -> Any:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= getattr(base, "__dataclass_fields__", {})
    for name, hint in cls.__annotations__.items():
        found[name] = _field(cls, name, hint, params.kw_only)
    cls.__dataclass_fields__ = found
    cls.__dataclass_params__ = params
    cls.__init__ = _initialiser(cls, tuple(found.values()))
    shown, compared = [n for n, f in found.items() if f.repr], tuple(n for n, f in found.items() if f.compare)
    methods: dict[str, Any] = {"__repr__": _representation(shown)}
    methods["__match_args__"] = tuple(name for name, each in found.items() if not each.kw_only)
    if params.eq:
        methods |= {"__eq__": _equality(compared), "__hash__": _hash(compared) if params.frozen else None}
    if params.frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


def _field(cls: Any, name: str, hint: Any, kw_only: bool) -> Any:
    default = cls.__dict__.get(name, MISSING)
    made: Any = default if isinstance(default, Field) else field(default=default)
    if made.default is not MISSING and type(made.default).__hash__ is None:
        raise ValueError(f"{cls.__name__}.{name}: all objects would share this default, use default_factory")
    made.name, made.type, made.kw_only = name, hint, kw_only
    made._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
    if isinstance(default, Field):
        if default.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, default.default)
    return made


def _initialiser(cls: Any, members: tuple[Any, ...]) -> Callable[..., None]:
    """Return the initialiser. What has a plain default and is not given is found in the class."""
    known = frozenset(f.name for f in members)
    places = tuple(f.name for f in members if not f.kw_only)
    optional = [f.default is not f.default_factory for f in members if not f.kw_only]
    if optional != sorted(optional):
        raise TypeError(f"{cls.__name__}: a member without a default follows one with a default")
    factories = [(f.name, f.default_factory) for f in members if f.default_factory is not MISSING]
    bound = [f for f in members if hasattr(type(f.default), "__get__")]  # a function: in the class it were a method
    factories += [(f.name, lambda default=f.default: default) for f in bound]
    required = frozenset(f.name for f in members if f.default is MISSING)  # for now or, by a factory, in a moment
    after = getattr(cls, "__post_init__", None)
    made = 0

    def __init__(self: Any, /, *arguments: Any, **given: Any) -> None:
        nonlocal made
        made += 1
        if made == MANY and after is None:
            cls.__init__ = _compiled(members, dict(factories))
        held = self.__dict__
        if arguments:
            if len(arguments) > len(places):
                raise TypeError(f"{cls.__name__} takes {len(places)} arguments by place, not {len(arguments)}")
            held.update(zip(places, arguments, strict=False))
        if given:
            for name in given:
                if name in held or name not in known:
                    raise TypeError(f"{cls.__name__} got {name!r} twice, or has no such member")
            held.update(given)
        for name, factory in factories:
            if name not in held:
                held[name] = factory()
        if not required <= held.keys():
            raise TypeError(f"{cls.__name__} needs {', '.join(sorted(required - held.keys()))}")
        if after is not None:
            after(self)

    return __init__


def _compiled(members: tuple[Any, ...], factories: dict[str, Callable[[], Any]]) -> Any:
    """Return the initialiser as the standard library would have it: twice as quick, and 0.1 ms to make."""
    names: dict[str, Any] = {"_absent": MISSING}
    by_place, by_name, lines = ["_self", "/"], ["*"], ["_held = _self.__dict__"]
    for n, f in enumerate(members):
        made, default = f"_made{n}", f"_default{n}"
        names[made], names[default] = factories.get(f.name), f.default
        optional = "" if f.default is f.default_factory else f"={'_absent' if names[made] else default}"
        (by_name if f.kw_only else by_place).append(f.name + optional)
        value = f"{made}() if {f.name} is _absent else {f.name}" if names[made] else f.name
        lines.append(f"_held[{f.name!r}] = {value}")
    parameters = by_place + (by_name if len(by_name) > 1 else [])
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), names)  # names of members only
    return names["__init__"]


def _representation(names: list[str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _equality(names: tuple[str, ...]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    return __eq__


def _hash(names: tuple[str, ...]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(tuple(getattr(self, name) for name in names))

    return __hash__


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")
