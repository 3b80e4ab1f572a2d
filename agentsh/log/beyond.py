"""An end of a log that is not there any more, known from a checkpoint that is ahead of it.

A checkpoint is written once all up to its seq is durable. So where it is of this session and the log ends before it,
somebody has cut the log short, or put an older copy in its place; no line tells of that. The missing seqs are not
used again: the gap stays, as any other damage does, until `repair` fills it in.
"""

from collections.abc import Sequence

from agentsh.log.checkpoint import read_checkpoint
from agentsh.log.files import FileSystem
from agentsh.log.store import Damage


def seq_beyond(files: FileSystem, directory: str, session: str, last_seq: int, seqs: Sequence[int]) -> int:
    """Return the highest seq behind `last_seq` that this log had, as far as a checkpoint says, or 0.

    seqs: `checkpoint_seqs` of a moment before the log was read, so that its writer cannot have been ahead of us.
    """
    for seq in seqs:
        if seq <= last_seq:
            return 0
        found = read_checkpoint(files, directory, seq)
        if found is not None and found.session == session:
            return seq
    return 0


def missing_end(ordinal: int, offset: int, last_seq: int) -> Damage:
    """Return the damage at the place where the next line begins, which will find the same gap before it."""
    return Damage(f"{ordinal:06}:{offset}", "gap", 0, last_seq, rot=True)
