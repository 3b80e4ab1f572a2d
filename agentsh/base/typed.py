"""Frozen values with typed members, checked when they are made; to plain data and back. Loads nothing (ADR 0012).

A class names its members with their types, as for a dataclass, and its methods are called as those of a model of
pydantic: `model_validate`, `model_copy`, `model_dump`, `model_fields`. Types that a member may have: str, int, float,
bool, None, Any, Literal, tuple[X, ...], Sequence (becomes a tuple), dict[str, X], Mapping, other values, unions of
these, and `Annotated` with functions that return the value, perhaps mended, or raise ValueError. How a class is read
is worked out at its first use. Only what was given is kept in an object; the rest is in its class.
"""

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

_MISSING: Any = ...
_V = TypeVar("_V", bound="Value")
EXACT = 2**53
"""A float beyond that is no longer one certain whole number."""


class Misfit(ValueError):
    """Something does not fit. where: its place, as in `models.a.price`; empty for the whole. what: in words."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.what = what
        self.where = where

    def within(self, name: str) -> "Misfit":
        """Return the same, told of what holds it."""
        return Misfit(self.what, f"{name}.{self.where}" if self.where else name)


class _Unlike(Misfit):
    """It is another kind of thing altogether."""


class Member(NamedTuple):
    """A member of a class. default: `...` where it has to be given."""

    annotation: Any
    default: Any

    def is_required(self) -> bool:
        """Whether it has to be given."""
        return self.default is _MISSING


class _Reading(NamedTuple):
    """How values of a type are taken. plain: classes whose objects are taken as they are. convert: for all others."""

    plain: frozenset[type]
    convert: Callable[[Any], Any]
    words: str

    def take(self, value: Any) -> Any:
        return value if type(value) in self.plain else self.convert(value)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value:
    """A frozen value. Members that its class does not have are kept and written back; `unknown="refuse"`: a fault.

    Making one checks it.

    Raises:
        Misfit: a member is missing, or is not of its type.
    """

    __slots__ = ("__dict__", "_unknown")

    model_fields: ClassVar[Mapping[str, Member]] = {}
    _refuses: ClassVar[bool] = False
    _needs: ClassVar[bool] = False
    _steps: ClassVar[tuple[tuple[str, frozenset[type], Callable[[Any], Any], bool], ...] | None] = None
    _unknown: Mapping[str, Any]

    def __init_subclass__(cls, *, unknown: Literal["keep", "refuse"] | None = None) -> None:
        super().__init_subclass__()
        own = {name: Member(hint, cls.__dict__.get(name, _MISSING)) for name, hint in cls.__annotations__.items()}
        cls.model_fields = {**cls.model_fields, **own}
        cls._steps = None
        cls._needs = any(member.is_required() for member in cls.model_fields.values())
        if unknown is not None:
            cls._refuses = unknown == "refuse"

    def __init__(self, **members: Any) -> None:
        _fill(self, members)

    @classmethod
    def model_validate(cls, members: Any) -> Self:
        """Return a value made of a mapping; one that is made already is returned as it is.

        Raises:
            Misfit: what does not fit, and where.
        """
        if type(members) is not dict:  # as it is in a log
            if isinstance(members, cls):
                return members
            if not isinstance(members, Mapping):
                raise _Unlike("must be a table")
        made = object.__new__(cls)
        _fill(made, members)
        return made

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return the same with other members. `update` is not checked."""
        return _again(type(self), {**self.__dict__, **update}, getattr(self, "_unknown", None))

    def model_dump(self, *, exclude_unset: bool = False) -> dict[str, Any]:
        """Return its members as JSON has them, in the order of the class. exclude_unset: those that were given."""
        held = self.__dict__
        names = [name for name in self.model_fields if name in held] if exclude_unset else self.model_fields
        dumped = {name: _dumped(getattr(self, name), exclude_unset) for name in names}
        return dumped | getattr(self, "_unknown", {})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if getattr(self, "_unknown", None) != getattr(other, "_unknown", None):
            return False
        mine, theirs = self.__dict__, other.__dict__
        return mine == theirs or all(getattr(self, name) == getattr(other, name) for name in self.model_fields)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.model_fields)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.__dict__, getattr(self, "_unknown", None))


def _again(kind: type[_V], members: Mapping[str, Any], unknown: Mapping[str, Any] | None) -> _V:
    """Return a value of members that were checked before."""
    made = object.__new__(kind)
    made.__dict__.update(members)
    if unknown:
        object.__setattr__(made, "_unknown", unknown)
    return made


def at_least(least: float) -> Callable[[Any], Any]:
    """Return a check of a number, for `Annotated`."""
    return _bound(lambda value: value >= least, f"must be at least {least:,}")


def above(limit: float) -> Callable[[Any], Any]:
    """Return a check of a number, for `Annotated`."""
    return _bound(lambda value: value > limit, f"must be more than {limit:,}")


def at_most(most: float) -> Callable[[Any], Any]:
    """Return a check of a number, for `Annotated`."""
    return _bound(lambda value: value <= most, f"must be at most {most:,}")


def below(limit: float) -> Callable[[Any], Any]:
    """Return a check of a number, for `Annotated`."""
    return _bound(lambda value: value < limit, f"must be less than {limit:,}")


def _bound(holds: Callable[[Any], bool], words: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not holds(value):  # nor does anything hold of nan
            raise Misfit(words)
        return value

    return check


def some(**members: Any) -> dict[str, Any]:
    """Return those that are not None: optional members are written only where there is something to say."""
    return {name: member for name, member in members.items() if member is not None}


def _fill(value: Value, given: Mapping[str, Any]) -> None:
    kind = type(value)
    if not given and not kind._needs:
        return  # all is as it is by default, as mostly in agentsh.toml: nothing has to be worked out
    held = value.__dict__
    for name, plain, convert, required in kind._steps or _prepare(kind):
        if name in given:
            member = given[name]
            if type(member) not in plain:
                try:
                    member = convert(member)
                except Misfit as misfit:
                    raise misfit.within(name) from None
            held[name] = member
        elif required:
            raise Misfit("is missing", name)
    if len(held) != len(given):
        unknown = {name: member for name, member in given.items() if name not in held}
        if kind._refuses:
            name = next(iter(unknown))
            raise Misfit("there is no such setting" + _meant(name, kind.model_fields), name)
        object.__setattr__(value, "_unknown", unknown)


def _meant(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean …?` where a name is nearly another one, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(names), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _prepare(kind: type[Value]) -> tuple[tuple[str, frozenset[type], Callable[[Any], Any], bool], ...]:
    steps = []
    for name, member in kind.model_fields.items():
        reading = _reading(member.annotation)
        steps.append((name, reading.plain, reading.convert, member.is_required()))
    kind._steps = tuple(steps)
    return kind._steps


def _dumped(value: Any, exclude_unset: bool) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is int or kind is bool or kind is float:
        return value
    if isinstance(value, Value):
        return value.model_dump(exclude_unset=exclude_unset)
    if isinstance(value, dict):
        return {key: _dumped(inner, exclude_unset) for key, inner in value.items()}
    return [_dumped(inner, exclude_unset) for inner in value] if isinstance(value, list | tuple) else value


@cache
def _reading(hint: Any) -> _Reading:
    """Return how values of a type are taken.

    Raises:
        TypeError: there is no way yet; it belongs here.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Reading(frozenset(), lambda value: value, "anything")
    if hint in _WORDS:
        return _of_class(hint)
    if hint is None or hint is types.NoneType:
        return _Reading(frozenset((types.NoneType,)), _refusing("nothing"), "nothing")
    if origin is Literal:
        return _of_choices(arguments)
    if origin in (Union, types.UnionType):
        return _of_union([_reading(argument) for argument in arguments])
    if origin in (tuple, Sequence):
        return _of_items(_reading(arguments[0]))
    if origin in (dict, Mapping):
        return _of_table(_reading(arguments[1]))
    if origin is Annotated:
        return _checked(_reading(arguments[0]), hint.__metadata__)
    if isinstance(hint, type) and issubclass(hint, Value):
        return _Reading(frozenset((hint,)), hint.model_validate, "a table")
    raise TypeError(f"a member cannot be {hint}: base.typed does not know how to read it")


_WORDS: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _refusing(words: str) -> Callable[[Any], Any]:
    def refuse(value: Any) -> Any:
        raise _Unlike(f"must be {words}")

    return refuse


def _of_class(kind: type) -> _Reading:
    words = _WORDS[kind]

    def convert(value: Any) -> Any:
        if kind is int and type(value) is float and value.is_integer() and abs(value) <= EXACT:
            return int(value)
        if kind is float and type(value) is int:
            try:
                return float(value)
            except OverflowError:
                raise Misfit("is too large") from None
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
        raise _Unlike(f"must be {words}")

    return _Reading(frozenset((kind,)), convert, words)


def _of_choices(choices: tuple[Any, ...]) -> _Reading:
    words = " or ".join(repr(choice) for choice in choices)

    def convert(value: Any) -> Any:
        if isinstance(value, str) and value in choices:
            return value
        raise _Unlike(f"must be {words}")

    return _Reading(frozenset(), convert, words)


def _of_union(readings: list[_Reading]) -> _Reading:
    words = " or ".join(reading.words for reading in readings if reading.words != "nothing")
    plain = frozenset[type]().union(*(reading.plain for reading in readings))

    def convert(value: Any) -> Any:
        why = None
        for reading in readings:
            try:
                return reading.take(value)
            except _Unlike:
                pass
            except Misfit as misfit:  # it is of that kind, but for something in it
                why = misfit
        raise why or _Unlike(f"must be {words}")

    return _Reading(plain, convert, words)


def _of_items(item: _Reading) -> _Reading:
    take = item.take

    def convert(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _Unlike("must be a list")
        taken: list[Any] = []
        try:
            for inner in value:
                taken.append(take(inner))  # noqa: PERF401 - the place of the one that fails is told
        except Misfit as misfit:
            raise misfit.within(str(len(taken))) from None
        return tuple(taken)

    return _Reading(frozenset(), convert, "a list")


def _of_table(item: _Reading) -> _Reading:
    def convert(value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise _Unlike("must be a table")
        taken = {}
        for key, inner in value.items():
            try:
                taken[key] = item.take(inner)
            except Misfit as misfit:
                raise misfit.within(key) from None
        return taken

    return _Reading(frozenset(), convert, "a table")


def _checked(reading: _Reading, checks: tuple[Callable[[Any], Any], ...]) -> _Reading:
    def convert(value: Any) -> Any:
        value = reading.take(value)
        for check in checks:
            try:
                value = check(value)
            except Misfit:
                raise
            except ValueError as error:
                raise Misfit(str(error)) from None
        return value

    return _Reading(frozenset(), convert, reading.words)
