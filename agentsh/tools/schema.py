"""Makes a tool of a typed function: its schema, the check of its arguments, and texts that say what to mend."""

import asyncio
import difflib
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from agentsh.base.errors import BadArguments
from agentsh.base.text import one_line
from agentsh.base.waiting import to_the_end
from agentsh.events.tool import Effect
from agentsh.ports.tool import ToolContext, ToolOutcome, ToolSpec

__all__ = ["Field", "SchemaTool", "tool"]

Function = Callable[..., ToolOutcome | Awaitable[ToolOutcome]]

MAX_PROBLEMS = 5
"""Problems that a message to the model lists."""


class _Arguments(BaseModel):
    model_config = ConfigDict(
        extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False, protected_namespaces=(), frozen=True
    )


class SchemaTool:
    """A tool made by `tool`; satisfies `ports.tool.Tool`."""

    def __init__(self, spec: ToolSpec, model: type[BaseModel], function: Function) -> None:
        self._spec = spec
        self._model = model
        self._function = function
        self._awaits = inspect.iscoroutinefunction(function)

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
        fields = self._model.model_fields
        given = {k: v for k, v in given.items() if v is not None or k not in fields or fields[k].is_required()}
        try:
            checked = self._model.model_validate(given)
        except ValidationError as error:
            raise BadArguments(self._what_to_mend(error)) from None
        return {name: getattr(checked, name) for name in fields if name in checked.model_fields_set}

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

    def _what_to_mend(self, error: ValidationError) -> str:
        problems = error.errors(include_url=False, include_context=False)
        lines = [self._problem(p["loc"], p["type"], p["msg"], p["input"]) for p in problems]
        if len(lines) > MAX_PROBLEMS:
            lines[MAX_PROBLEMS:] = [f"and {len(lines) - MAX_PROBLEMS} more problems"]
        return f"{self._spec.name}: {'; '.join(lines)}. Arguments: {self._signature()}."

    def _problem(self, place: tuple[int | str, ...], kind: str, message: str, given: Any) -> str:
        field = _place(place)
        if kind == "missing":
            return f"{field!r} is missing"
        if kind == "extra_forbidden":
            near = difflib.get_close_matches(field, self._model.model_fields, 1) if len(place) == 1 else []
            return f"there is no argument {one_line(field, 40)!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
        return f"{field!r}: {message[:1].lower()}{message[1:]}, not {one_line(_json(given), 60)}"

    def _signature(self) -> str:
        required = self._spec.parameters.get("required", ())
        parts = []
        for name, schema in self._spec.parameters["properties"].items():
            kind = schema.get("type") or " or ".join(_json(v) for v in schema.get("enum", ("any",)))
            parts.append(f"{name} ({kind}{', required' if name in required else ''})")
        return ", ".join(parts) or "none"


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
        definitions: dict[str, Any] = dict(fields)
        model = create_model(f"{name}_arguments", __base__=_Arguments, **definitions)
        parameters = _compact(model.model_json_schema())
        return SchemaTool(
            ToolSpec(name, description, parameters, frozenset(effects), subject, tryable, paths), model, function
        )

    return make


def _fields(name: str, function: Function) -> dict[str, tuple[Any, Any]]:
    """Return the arguments as pydantic wants them, from the signature."""
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
        if not any(isinstance(m, FieldInfo) and m.description for m in getattr(hint, "__metadata__", ())):
            raise TypeError(f"tool {name}: {parameter.name} has no description")
        fields[parameter.name] = (hint, ... if parameter.default is parameter.empty else parameter.default)
    return fields


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema without what tells a model nothing: titles, references, null defaults."""
    properties = {
        name: _plain(value, schema.get("$defs", {})) for name, value in schema.get("properties", {}).items()
    }
    compact: dict[str, Any] = {"type": "object", "properties": properties}
    if schema.get("required"):
        compact["required"] = list(schema["required"])
    return compact


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]] | {k: v for k, v in schema.items() if k != "$ref"}
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:  # an optional: leaving it out says the same as null
        schema = choices[0] | {k: v for k, v in schema.items() if k != "anyOf"}
    return {
        key: {name: _plain(inner, definitions) for name, inner in value.items()}
        if key == "properties"
        else _plain(value, definitions)
        for key, value in schema.items()
        if key not in ("title", "additionalProperties") and not (key == "default" and value is None)
    }


def _place(place: tuple[int | str, ...]) -> str:
    """Return where in the arguments a problem is: `items[0].status`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
