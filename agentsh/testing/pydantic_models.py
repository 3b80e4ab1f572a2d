"""The vocabulary as models of pydantic: what our own reading of facts is held against, in tests and in benches."""

from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model

from agentsh.base.typed import Value


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True, protected_namespaces=())


_made: dict[type[Value], type[BaseModel]] = {}


def model_of(kind: type[Value]) -> type[BaseModel]:
    """Return a model with the members of a class; its schema is built at its first use."""
    if kind not in _made:
        members: dict[str, Any] = {
            name: (_hint(member.annotation), ... if member.is_required() else member.default)
            for name, member in kind.model_fields.items()
        }
        _made[kind] = create_model(kind.__name__, __base__=_Model, **members)
    return _made[kind]


def _hint(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Value):
        return model_of(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if not arguments or origin is Literal:
        return hint
    inner = tuple(_hint(argument) for argument in arguments)
    return Union[inner] if origin not in (tuple, dict) else origin[inner]  # noqa: UP007 - of a tuple of types
