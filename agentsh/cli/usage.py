"""How a command's help reads: `ID` where typer has `ID <list[str]>`, and `<int>` where it has `<int range>`."""

import re
from typing import Any

from typer.core import TyperCommand

MAX_COLUMNS = 100
"""Help is no wider, however wide the terminal: longer lines are hard to read."""
_LIST = re.compile(r"<list\[(\w+)\]>")


class Command(TyperCommand):
    """A command whose usage line and whose columns name what is to be given, not the types of Python."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words behind the command's name."""
        return ["[OPTIONS]", *(_usage(p) for p in self.get_params(ctx) if p.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        found: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                found[parameter.param_type_name].append((_named(parameter, record[0]), record[1]))
        for kind, records in found.items():
            if records:
                with formatter.section(f"{kind.title()}s"):
                    formatter.write_dl(records)


def _named(parameter: Any, name: str) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.display_name_raw)
    return _LIST.sub(r"<\1>", name).replace(" range>", ">").replace("<str>", "<text>")


def _usage(argument: Any) -> str:
    name = argument.display_name_raw + "..." * (argument.nargs != 1)
    return name if argument.required else f"[{name}]"
