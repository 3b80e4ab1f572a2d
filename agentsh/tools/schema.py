"""Makes a tool of a typed function: its schema here, by the standard library alone, since each new session tells it.

What checks the arguments of a call is made of the same annotations, at the first call; see `arguments`.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from agentsh.base.errors import BadArguments
from agentsh.base.text import one_line
from agentsh.base.waiting import to_the_end
from agentsh.events.tool import Effect
from agentsh.ports.tool import ToolContext, ToolOutcome, ToolSpec
from agentsh.tools.fields import Argument, Field

if TYPE_CHECKING:
    from agentsh.tools.arguments import Checker

__all__ = ["Argument", "Field", "SchemaTool", "tool"]

Function = Callable[..., ToolOutcome | Awaitable[ToolOutcome]]

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean"}


class SchemaTool:
    """A tool made by `tool`; satisfies `ports.tool.Tool`."""

    def __init__(self, spec: ToolSpec, arguments: Mapping[str, Argument], function: Function) -> None:
        self._spec = spec
        self._arguments = arguments
        self._function = function
        self._awaits = inspect.iscoroutinefunction(function)

    @cached_property
    def _checker(self) -> "Checker":
        from agentsh.tools.arguments import Checker

        return Checker(self._spec, self._arguments)

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema, effects."""
        return self._spec

    def parse(self, arguments: str) -> Mapping[str, Any]:
        """Return the arguments that were given, checked; defaults are not filled in.

        Lenient where it is harmless: no text at all is `{}`, `"5"` is an integer, null is an argument left out,
        an object that was encoded twice is decoded twice.

        Raises:
            BadArguments: what is wrong with each argument, what was given, and what there is.
        """
        given = self._object(arguments)
        known = self._arguments
        given = {k: v for k, v in given.items() if v is not None or k not in known or known[k].default is ...}
        return self._checker.checked(given)

    async def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call the function; one that is not async runs in a thread, and cancellation waits for its end."""
        if self._awaits:
            return await cast(Awaitable[ToolOutcome], self._function(context, **arguments))
        function = cast(Callable[..., ToolOutcome], self._function)
        # A thread cannot be stopped: it must not write after the log says that the call was interrupted.
        return await to_the_end(asyncio.create_task(asyncio.to_thread(function, context, **arguments)))

    def _object(self, arguments: str) -> dict[str, Any]:
        value: Any = arguments.strip() or "{}"
        for _ in range(2):  # some models encode the object once more, as a string
            if isinstance(value, str):
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError) as error:
                    what = f"{error}; it starts with {one_line(arguments, 60)!r}"
                    raise BadArguments(f"{self._spec.name}: the arguments are not JSON: {what}") from None
        if not isinstance(value, dict):
            given = one_line(arguments, 60)
            raise BadArguments(f"{self._spec.name}: the arguments must be one JSON object, not {given}")
        return value


def tool(
    name: str,
    *,
    effects: Collection[Effect],
    subject: str | None = None,
    tryable: bool = False,
    paths: Callable[[Mapping[str, Any]], Sequence[str]] | None = None,
) -> Callable[[Function], SchemaTool]:
    """Make a tool of `(ctx: ToolContext, name: Annotated[type, Field(description=…)] = default, …) -> ToolOutcome`.

    The docstring is the description; it is sent with every request, so it should be terse and state the limits.

    Raises:
        TypeError: at definition: no docstring, no annotation, no description, `*args`, another first parameter.
    """

    def make(function: Function) -> SchemaTool:
        description = inspect.getdoc(function)
        if not description:
            raise TypeError(f"tool {name}: no docstring")
        fields = _fields(name, function)
        if subject is not None and subject not in fields:
            raise TypeError(f"tool {name}: the subject {subject!r} is no argument")
        spec = ToolSpec(name, description, _parameters(name, fields), frozenset(effects), subject, tryable, paths)
        return SchemaTool(spec, fields, function)

    return make


def _fields(name: str, function: Function) -> dict[str, Argument]:
    """Return the arguments, from the signature."""
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or hints.get(parameters[0].name) is not ToolContext:
        raise TypeError(f"tool {name}: the first parameter must be a ToolContext")
    if hints.get("return") is not ToolOutcome:
        raise TypeError(f"tool {name}: it must return a ToolOutcome")
    fields = {}
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"tool {name}: {parameter} cannot be told to a model")
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"tool {name}: {parameter.name} has no annotation")
        field = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Field)), None)
        if field is None or not field.description:
            raise TypeError(f"tool {name}: {parameter.name} has no description")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = Argument(get_args(hint)[0], field, default)
    return fields


def _parameters(name: str, arguments: Mapping[str, Argument]) -> dict[str, Any]:
    """Return the JSON schema of the arguments, without what tells a model nothing: titles, null as a default."""
    properties = {}
    for argument, (hint, field, default) in arguments.items():
        told: dict[str, Any] = {"description": field.description}
        if field.ge is not None:
            told["minimum"] = field.ge
        schema = _schema(name, hint)
        if default is None:  # an optional: leaving it out says the same as null
            properties[argument] = schema | told
            continue
        if default is not ...:
            told["default"] = default
        properties[argument] = dict(sorted((schema | told).items()))
    required = [argument for argument, known in arguments.items() if known.default is ...]
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _schema(name: str, hint: Any) -> dict[str, Any]:
    """Return the JSON schema of a type.

    Raises:
        TypeError: of one that has none here.
    """
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    of, kinds = get_origin(hint), get_args(hint)
    if of is Literal and all(isinstance(choice, str) for choice in kinds):
        return {"enum": [*kinds], "type": "string"}
    if of is list:
        return {"items": _schema(name, kinds[0]), "type": "array"}
    if of in (Union, UnionType) and len(kinds) == 2 and NoneType in kinds:
        return _schema(name, next(kind for kind in kinds if kind is not NoneType))
    if is_typeddict(hint):
        members = {member: _schema(name, kind) for member, kind in get_type_hints(hint).items()}
        needed = [member for member in members if member in hint.__required_keys__]
        about = {"description": doc} if (doc := inspect.getdoc(hint)) else {}
        return about | {"properties": members, "required": needed, "type": "object"}
    raise TypeError(f"tool {name}: {hint} cannot be told to a model")
