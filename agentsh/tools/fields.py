"""The arguments of a tool, as its function declares them."""

from typing import Any, NamedTuple


class Field(NamedTuple):
    """What a model is told of an argument. ge: the least number that is taken."""

    description: str
    ge: float | None = None


class Argument(NamedTuple):
    """An argument of a tool. hint: its type. default: `...` where it has to be given."""

    hint: Any
    field: Field
    default: Any
