"""One table per hot command, read by two parsers: a small one of our own, and typer's.

`agentsh ls` must answer before a framework could even be imported, and a session need not wait for one (ADR 0002).
The options stand in a table; `parse` reads plain command lines by it, and `typer_function` makes the typer command
from the very same table, so the two cannot drift. Whatever `parse` does not understand it leaves to typer, which
knows best how to complain.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Option(NamedTuple):
    """One option. kind: `flag`, `text`, `path`, `count` (an int), `amount` (a float) or `choice`.

    many: may be repeated. least: the smallest count or amount.
    """

    name: str
    flags: tuple[str, ...]
    kind: str
    help: str
    default: Any = None
    many: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0


class Argument(NamedTuple):
    """An optional positional. metavar: how help shows it. many: the last one; its words are joined by blanks."""

    name: str
    help: str
    metavar: str | None = None
    many: bool = False


class Command(NamedTuple):
    """A hot command."""

    name: str
    help: str
    arguments: tuple[Argument, ...]
    options: tuple[Option, ...]


def defaults(command: Command) -> dict[str, Any]:
    """Return the values where nothing is given."""
    values: dict[str, Any] = {option.name: () if option.many else option.default for option in command.options}
    return values | dict.fromkeys(argument.name for argument in command.arguments)


def parse(command: Command, argv: list[str]) -> dict[str, Any] | None:
    """Return the values by name, or None where typer should have a look (help, mistakes, rare forms)."""
    by_flag = {flag: option for option in command.options for flag in option.flags}
    values = defaults(command)
    places, words = list(command.arguments), iter(argv)
    for word in words:
        if not word.startswith("-"):
            if not places:
                return None
            place = places[0] if places[0].many else places.pop(0)
            before = values[place.name]
            values[place.name] = word if before is None else f"{before} {word}"
            continue
        flag, equals, inline = word.partition("=")
        option = by_flag.get(flag)
        if option is None or (equals and (option.kind == "flag" or not flag.startswith("--"))):
            return None
        if option.kind == "flag":
            values[option.name] = True
            continue
        text = inline if equals else next(words, None)
        value = None if text is None else _value(option, text)
        if value is None:
            return None
        values[option.name] = (*values[option.name], value) if option.many else value
    return values


_PLAIN = {"count": re.compile("[0-9]{1,12}"), "amount": re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")}


def _value(option: Option, text: str) -> Any:
    if text.startswith("-"):
        return None
    if option.kind in ("count", "amount"):
        if not _PLAIN[option.kind].fullmatch(text):
            return None
        value = int(text) if option.kind == "count" else float(text)
        return value if value >= option.least else None
    if option.kind == "path":
        return Path(text) if text else None
    if option.kind == "choice":
        return text if text in option.choices else None
    return text


def _kind(argument: Argument) -> Any:
    return list[str] | None if argument.many else str | None


def typer_function(command: Command, run: Callable[[dict[str, Any]], None]) -> Callable[..., None]:
    """Return a function whose signature makes typer parse by the table and hand the values to `run`."""
    import enum
    import inspect
    from typing import Annotated

    import typer

    from agentsh.cli import completion

    make_enum: Any = enum.Enum  # its functional form, with names that no type checker can know
    kinds: dict[str, Any] = {"flag": bool, "count": int, "amount": float, "path": Path}

    def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
        return inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
        )

    def argument(a: Argument) -> Any:
        complete = completion.ids if a.metavar == "ID" else None
        return typer.Argument(help=a.help, metavar=a.metavar, autocompletion=complete)

    parameters = [parameter(a.name, Annotated[_kind(a), argument(a)], None) for a in command.arguments]
    for option in command.options:
        info = typer.Option(
            *option.flags,
            help=option.help,
            min=option.least if option.kind in ("count", "amount") else None,
        )
        kind: Any = kinds.get(option.kind, str)
        default = option.default
        if option.choices:  # typer knows choices as enums
            kind = make_enum(option.name.title(), {c: c for c in option.choices})
            default = None if option.default is None else kind(option.default)
        if option.many:
            kind, default = list[str], []
        elif default is None:
            kind = kind | None
        parameters.append(parameter(option.name, Annotated[kind, info], default))

    def function(**values: Any) -> None:
        plain = {k: v.value if isinstance(v, enum.Enum) else v for k, v in values.items()}
        plain |= {a.name: " ".join(plain[a.name]) if plain[a.name] else None for a in command.arguments if a.many}
        run({k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()})

    function.__name__ = command.name
    function.__doc__ = command.help
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    return function
