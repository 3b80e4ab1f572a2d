"""Checks the arguments of a call against the annotations of its tool, and says what to mend.

Loads pydantic (60 ms): at the first call of a tool, or before, behind the prompt.
"""

import difflib
import json
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from typing_extensions import TypedDict

from agentsh.base.errors import BadArguments
from agentsh.base.text import one_line
from agentsh.ports.tool import ToolSpec
from agentsh.tools.fields import Argument

MAX_PROBLEMS = 5
"""Problems that a message to the model lists."""


class _Arguments(BaseModel):
    model_config = ConfigDict(
        extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False, protected_namespaces=(), frozen=True
    )


class Checker:
    """Of one tool."""

    def __init__(self, spec: ToolSpec, arguments: Mapping[str, Argument]) -> None:
        self._spec = spec
        fields: dict[str, Any] = {
            name: (Annotated[_readable(a.hint), Field(ge=a.field.ge)], a.default) for name, a in arguments.items()
        }
        self._model = create_model(f"{spec.name}_arguments", __base__=_Arguments, **fields)

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that are given, as the types that they must have.

        Raises:
            BadArguments: what is wrong with each argument, what was given, and what there is.
        """
        try:
            checked = self._model.model_validate(given)
        except ValidationError as error:
            raise BadArguments(self._what_to_mend(error)) from None
        set_ = checked.model_fields_set
        return {name: getattr(checked, name) for name in self._model.model_fields if name in set_}

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


def _readable(hint: Any) -> Any:
    """Return a type as pydantic takes it: before Python 3.12 it wants the TypedDict of typing_extensions."""
    if is_typeddict(hint):
        return TypedDict(hint.__name__, {k: _readable(v) for k, v in get_type_hints(hint).items()})  # type: ignore[operator]
    if get_origin(hint) is list:
        return list[_readable(get_args(hint)[0])]  # type: ignore[misc]
    return hint


def _place(place: tuple[int | str, ...]) -> str:
    """Return where in the arguments a problem is: `items[0].status`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
