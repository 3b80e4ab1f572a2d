"""Errors to exit codes: one clear line on stderr, no traceback, whatever happened."""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable

from agentsh.base.errors import AgentshError

INTERRUPTED = 130
MAX_LINES = 10
"""Of what there is to choose from."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What a disk under stdout says. The log's own disk is told of in errors of ours, a file of that name has one."""


def guarded(body: Callable[[], int]) -> int:
    """Return the exit code of `body`, with errors told in one line.

    AGENTSH_DEBUG=1 shows the traceback of an error that is not one of ours.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of another encoding shows `?`, and nothing fails
        sys.stdout.reconfigure(errors="replace")
    _take_signals()
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
        _drop_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            _drop_output()
            print(f"agentsh: the output cannot be written: {error.strerror}", file=sys.stderr)
            return 1
        if os.environ.get("AGENTSH_DEBUG"):
            raise
        kind = type(error).__name__
        print(
            f"agentsh: internal error: {kind}: {error} (this is a bug; AGENTSH_DEBUG=1 shows where)", file=sys.stderr
        )
        return 1


def _take_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that it cleans up; a session takes them over later.

    What a caller had ignored (nohup) stays ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def _drop_output() -> None:
    """Send what is still buffered nowhere, or the interpreter would complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(error: AgentshError) -> None:
    """Print an error as one line. What there is to choose from follows, a line each: its `candidates` or `ways`."""
    from agentsh.base.text import clean

    print(f"agentsh: {' '.join(clean(str(error)).split())}", file=sys.stderr)
    more: tuple[str, ...] = getattr(error, "candidates", ()) or getattr(error, "ways", ())
    for line in more[:MAX_LINES]:
        print(f"  {line}", file=sys.stderr)
    if len(more) > MAX_LINES:
        print(f"  … and {len(more) - MAX_LINES:,} more", file=sys.stderr)


def print_json(value: object) -> None:
    """Print a value as one line of JSON in UTF-8, whatever the locale."""
    sys.stdout.buffer.write(json_line(value).encode() + b"\n")


def json_line(value: object) -> str:
    """Return a value as one line of JSON that is harmless to look at: escaped is what the log escapes too."""
    import json

    from agentsh.base.text import escaped

    return escaped(json.dumps(value, ensure_ascii=False))
