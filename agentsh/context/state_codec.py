"""State to bytes and back, driven by its own annotations: a field that is added to the state is carried as it is.

The bytes are one JSON document. Dataclasses are lists in the order of their fields, facts are objects without their
unset members. A dataclass that can change is written once and named by its number after that, so that a call which
stands in the conversation and among the open ones is one object again.

`reducer` names what folded a state. Whoever reads bytes of another reducer folds the log instead.
"""

import json
import types
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from agentsh import __version__
from agentsh.base.typed import Value
from agentsh.context.fold import FOLD_VERSION
from agentsh.context.state import SessionState

CODEC_VERSION = 1
"""Grows when the same state becomes other bytes, or the same bytes another state."""

_PLAIN = (str, int, float, bool, types.NoneType, Any)
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Pool:
    """The dataclasses that can change, in the order of their end: by identity, and by number."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.objects: list[Any] = []


class _Coder(NamedTuple):
    encode: Callable[[Any, _Pool], Any]
    decode: Callable[[Any, _Pool], Any]


def encode_state(state: SessionState) -> bytes:
    """Return the bytes of a state; the same state gives the same bytes."""
    value = _coder(SessionState).encode(state, _Pool())
    return _dumps(value).encode("utf-8", "surrogatepass")


def decode_state(data: bytes) -> SessionState:
    """Return the state that `encode_state` was given.

    Raises:
        ValueError: the bytes are not of this reducer.
    """
    try:
        state: SessionState = _coder(SessionState).decode(json.loads(data.decode("utf-8", "surrogatepass")), _Pool())
    except (TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"no state of this version: {error}") from None
    return state


@cache
def reducer() -> str:
    """Return the name of what folds today: the version, and a hash over the shape of the state.

    A new release folds anew in any case, so that a change of a handler that nobody thought of is not kept for ever.
    """
    digest = sha256("\n".join(_shape(SessionState)).encode()).hexdigest()
    return f"agentsh {__version__} fold {FOLD_VERSION} codec {CODEC_VERSION} {digest[:32]}"


def _shape(kind: type) -> Iterator[str]:
    """Yield what a class is made of, and all that is in it, each class once."""
    seen: set[Any] = {kind}
    waiting: list[Any] = [kind]
    while waiting:
        hint = waiting.pop()
        inner: list[Any] = list(get_args(hint))
        if isinstance(hint, type) and issubclass(hint, Value):
            for name, member in hint.model_fields.items():
                # Not the repr of the member: of what has no default it names an object, other in every process.
                default = "" if member.is_required() else f" = {member.default!r}"
                yield f"{hint.__qualname__}.{name}: {member.annotation!r}{default}"
                inner.append(member.annotation)
        elif isinstance(hint, type) and is_dataclass(hint):
            hints = dict(_hints(hint))
            yield f"{hint.__qualname__} {hints!r}"
            inner += hints.values()
        for each in inner:
            if each not in seen:
                seen.add(each)
                waiting.append(each)


def _hints(kind: Any) -> list[tuple[str, Any]]:
    """Return the members of a dataclass and their types, which only the oldest way of writing them has to look up."""
    found = [(f.name, f.type) for f in fields(kind)]
    if not any(isinstance(hint, str) for _, hint in found):
        return found
    hints = get_type_hints(kind)
    return [(name, hints[name]) for name, _ in found]


@cache
def _coder(kind: Any) -> _Coder:
    """Return how values of a type are written and read.

    Raises:
        TypeError: there is no way yet; it belongs here.
    """
    origin = get_origin(kind)
    if origin is Annotated:
        return _coder(get_args(kind)[0])
    if kind in _PLAIN or origin is Literal:
        return _Coder(_as_it_is, _as_it_is)
    if origin in (Union, types.UnionType):
        return _union(get_args(kind))
    if origin in (list, set, frozenset, tuple, dict):
        return _container(origin, get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind)
    if isinstance(kind, type) and issubclass(kind, Value):
        return _fact(kind)
    raise TypeError(f"the state has a field of type {kind}, which its codec does not know")


def _as_it_is(value: Any, pool: _Pool) -> Any:
    return value


def _fact(kind: type[Value]) -> _Coder:
    validate = kind.model_validate
    return _Coder(lambda value, pool: value.model_dump(exclude_unset=True), lambda value, pool: validate(value))


def _dataclass(kind: Any) -> _Coder:
    if any(not f.init or f.kw_only for f in fields(kind)):
        raise TypeError(f"{kind.__name__} has fields that are not given by place")
    names = [f.name for f in fields(kind)]
    coders = [_coder(hint) for _, hint in _hints(kind)]
    encoders = [(name, c.encode) for name, c in zip(names, coders, strict=True)]
    decoders = [c.decode for c in coders]

    def encode(value: Any, pool: _Pool) -> Any:
        return [encoder(getattr(value, name), pool) for name, encoder in encoders]

    def decode(value: Any, pool: _Pool) -> Any:
        return kind(*[decoder(inner, pool) for decoder, inner in zip(decoders, value, strict=True)])

    if kind.__dataclass_params__.frozen:
        return _Coder(encode, decode)

    def encode_once(value: Any, pool: _Pool) -> Any:
        number = pool.numbers.get(id(value))
        if number is not None:
            return number
        made = encode(value, pool)
        pool.numbers[id(value)] = len(pool.numbers)
        return made

    def decode_once(value: Any, pool: _Pool) -> Any:
        if type(value) is int:
            return pool.objects[value]
        made = decode(value, pool)
        pool.objects.append(made)
        return made

    return _Coder(encode_once, decode_once)


def _union(members: tuple[Any, ...]) -> _Coder:
    """Write a member's number in front of a value, unless there is only one beside None."""
    some = [m for m in members if m is not types.NoneType]
    if len(some) == 1:
        encode_some, decode_some = _coder(some[0])
        return _Coder(
            lambda value, pool: None if value is None else encode_some(value, pool),
            lambda value, pool: None if value is None else decode_some(value, pool),
        )
    coders = [_coder(m) for m in some]
    numbers = {get_origin(m) or m: n for n, m in enumerate(some)}
    if len(numbers) != len(some) or any(not isinstance(m, type) for m in numbers):
        raise TypeError(f"the members of {members} cannot be told apart by their class")

    def encode(value: Any, pool: _Pool) -> Any:
        if value is None:
            return None
        number = numbers[type(value)]
        return [number, coders[number].encode(value, pool)]

    def decode(value: Any, pool: _Pool) -> Any:
        return None if value is None else coders[value[0]].decode(value[1], pool)

    return _Coder(encode, decode)


def _container(origin: Any, arguments: tuple[Any, ...]) -> _Coder:
    """Write every container as a list: JSON knows no other keys than text, and no sets."""
    if origin is dict:
        (encode_key, decode_key), (encode_value, decode_value) = map(_coder, arguments)
        return _Coder(
            lambda value, pool: [[encode_key(k, pool), encode_value(v, pool)] for k, v in value.items()],
            lambda value, pool: {decode_key(k, pool): decode_value(v, pool) for k, v in value},
        )
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        coders = [_coder(argument) for argument in arguments]
        return _Coder(
            lambda value, pool: [c.encode(v, pool) for c, v in zip(coders, value, strict=True)],
            lambda value, pool: tuple(c.decode(v, pool) for c, v in zip(coders, value, strict=True)),
        )
    encode, decode = _coder(arguments[0])
    if origin in (set, frozenset):
        return _Coder(
            lambda value, pool: [encode(inner, pool) for inner in sorted(value)],
            lambda value, pool: origin(decode(inner, pool) for inner in value),
        )
    return _Coder(
        lambda value, pool: [encode(inner, pool) for inner in value],
        lambda value, pool: origin([decode(inner, pool) for inner in value]),
    )
