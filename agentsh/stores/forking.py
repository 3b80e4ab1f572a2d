"""Forks of logs as files, with what goes wrong in our own words."""

from agentsh.base.errors import LogWriteFailed, SessionExists, UsageProblem
from agentsh.log.files import FileSystem
from agentsh.log.fork import NoSuchEvent, fork
from agentsh.log.lease import Lease
from agentsh.log.recover import OpenSegment
from agentsh.log.reserve import what_to_do


def forked(
    files: FileSystem, root: str, parent: str, child: str, upto_seq: int | None, *, by: str
) -> tuple[OpenSegment, Lease, int]:
    """Make a child's log; return its open segment, its lease, and the last seq that it has from its parent.

    Raises:
        SessionExists: the child's id is taken.
        UsageProblem: the parent has no such event.
        LogWriteFailed: the disk refused.
    """
    try:
        return fork(files, root, parent, child, upto_seq, by=by)
    except FileExistsError as error:
        raise SessionExists(f"session {child} is there already") from error
    except NoSuchEvent as error:
        hint = f"the last one is {error.last_seq}"
        raise UsageProblem(f"session {parent} has no event {upto_seq or 'yet'}", hint=hint) from None
    except OSError as error:
        raise LogWriteFailed(
            f"cannot fork session {parent}: {error.strerror or error}", hint=what_to_do(error)
        ) from error
