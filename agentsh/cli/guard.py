"""Errors to exit codes: one clear line on stderr, no traceback, whatever happened."""

import os
import sys
from collections.abc import Callable

from agentsh.base.errors import AgentshError, SessionAmbiguous

INTERRUPTED = 130


def guarded(body: Callable[[], int]) -> int:
    """Return the exit code of `body`, with errors told in one line.

    AGENTSH_DEBUG=1 shows the traceback of an error that is not one of ours.
    """
    try:
        code = body()
        sys.stdout.flush()
        return code
    except AgentshError as error:
        complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("AGENTSH_DEBUG"):
            raise
        kind = type(error).__name__
        print(
            f"agentsh: internal error: {kind}: {error} (this is a bug; AGENTSH_DEBUG=1 shows where)", file=sys.stderr
        )
        return 1


def complain(error: AgentshError) -> None:
    """Print an error as one line; the candidates of an ambiguous id follow, a line each."""
    from agentsh.base.text import clean

    print(f"agentsh: {' '.join(clean(str(error)).split())}", file=sys.stderr)
    if isinstance(error, SessionAmbiguous):
        for candidate in error.candidates:
            print(f"  {candidate}", file=sys.stderr)
