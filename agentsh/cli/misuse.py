"""What is said of a command line that does not parse: the parser's own line and, where there is one, the way out."""

import sys
from typing import Any

WITH_PROMPT = {"new": "agentsh new", "resume": "agentsh resume ID"}
LEAK = "Value error, "
"""How the parser's library begins what one of its checks says."""


def tell(error: Any, argv: list[str]) -> int:
    """Print a usage error of the parser on stderr; return its exit code. argv: what did not parse."""
    if isinstance(error.message, str):
        error.message = error.message.replace(LEAK, "")
    error.show()
    if hint := _hint(error.format_message(), argv):
        from agentsh.base.text import clean

        print(clean(hint), file=sys.stderr)
    return int(error.exit_code)


def _hint(said: str, argv: list[str]) -> str | None:
    """Return what to do about it, or None where the parser's line says it."""
    command = argv[0] if argv else ""
    if "unexpected extra argument" in said and command in WITH_PROMPT:
        return f'A prompt of several words stands in quotes: {WITH_PROMPT[command]} "…"'
    if said.startswith("Missing argument 'ID"):
        return f"Which session? `agentsh {command} ID`; `agentsh ls` lists them."
    if said.startswith("No such option") and command.startswith("-") and len(argv) > 1:
        return "The command comes first, its options behind it; bare options are those of `agentsh new`."
    if said.startswith("No such command") and "Did you mean" not in said:
        return f'To start a session with it: agentsh new "{command}"'
    return None
