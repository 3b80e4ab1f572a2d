"""Facts about the session as a whole: its birth, its settings, its openings, its place."""

from typing import Literal

from agentsh.base.typed import Value
from agentsh.events.base import Fact, JsonValue, Text

Mode = Literal["ask", "auto", "plan", "yolo"]
WorkspaceKind = Literal["git", "copy", "empty", "in-place"]


class WorkspaceOrigin(Value):
    """Where a workspace came from. origin: the directory it was made of. base: commit hash, for git.

    path: the working directory itself where it is not the session's own below the home (in place). start: where in
    the workspace commands begin, relative to it, where that is not its root.
    """

    kind: WorkspaceKind
    origin: str | None
    base: str | None
    path: str | None = None
    start: str | None = None


class SessionInit(Fact):
    """The first event; enough to list and resume without any sidecar."""

    type: Literal["session_init"] = "session_init"
    id: str
    title: str | None
    cwd: str
    project: str | None
    model: str
    mode: Mode
    workspace: WorkspaceOrigin


class Change(Value):
    """Something that is not as it was. what: `date`, `directory`, `tools` or `instructions NAME`.

    text: in words for the model.
    """

    what: str
    text: Text


class EnvironmentChanged(Fact):
    """What every request starts with, and from here on what is so: the newest of these tells all.

    system_prompt, tools: blobs; tools is the neutral JSON list of names, descriptions and parameter schemas.
    instructions: files such as AGENTS.md: {name, sha256, text}. request: the wire, its options, the profile's name
    and the host (scheme, name and port), by name. date (YYYY-MM-DD), directory: of this moment.
    changes: where it is not the first: requests still start with what was recorded before (but for tools), and these
    are told at the start of the next user message. instructions then have no text. Without changes it takes the
    place of what was before.
    """

    type: Literal["environment_changed"] = "environment_changed"
    system_prompt: Text
    tools: Text
    instructions: tuple[JsonValue, ...]
    request: dict[str, JsonValue] | None = None
    date: str | None = None
    directory: str | None = None
    changes: tuple[Change, ...] = ()


class Opened(Fact):
    """A later process took the lease. epoch: 1 for the creator, one more for each opening after it."""

    type: Literal["opened"] = "opened"
    epoch: int
    version: str
    host: str
    pid: int | None = None


class Recovered(Fact):
    """What opening found and put right; told to the user in one line.

    cut_bytes: bytes moved from the tail to quarantine. calls: tool calls that were closed for a dead process.
    damages: places that do not read, were left as they are and were not told of before: the first 20 of
    damages_total. may_have_run: what the first of those calls were about that had begun and have no end.
    """

    type: Literal["recovered"] = "recovered"
    cut_bytes: int
    quarantined: tuple[str, ...]
    damages: tuple[JsonValue, ...]
    calls: int
    turn: bool
    newline_added: bool = False
    damages_total: int | None = None
    may_have_run: tuple[str, ...] = ()


class ModeChanged(Fact):
    """From here on another approval mode holds."""

    type: Literal["mode_changed"] = "mode_changed"
    mode: Mode


class ModelChanged(Fact):
    """From here on requests go to another model."""

    type: Literal["model_changed"] = "model_changed"
    model: str
    request: dict[str, JsonValue] | None = None


class Renamed(Fact):
    """A title: by="prompt" where it was taken from the first prompt, "user" where somebody chose it."""

    type: Literal["renamed"] = "renamed"
    title: str
    by: Literal["prompt", "user"] = "user"


class Tagged(Fact):
    """The whole set of tags from here on."""

    type: Literal["tagged"] = "tagged"
    tags: tuple[str, ...]


class Checkpoint(Fact):
    """Folded state was saved. upto_seq: the last event in it."""

    type: Literal["checkpoint"] = "checkpoint"
    file: str
    upto_seq: int


class WorkspaceMoved(Fact):
    """The working directory is somewhere else from here on."""

    type: Literal["workspace_moved"] = "workspace_moved"
    path: str
    reason: str


class SnapshotTaken(Fact):
    """The content of the workspace was kept. snapshot: blob ref of its manifest. files, bytes: of the whole.

    by: who made what is new in it: `tool` (cause: its tool_started), `outside` (found before a tool ran), `rewind`
    (cause: the rewound), or `start` for the first one. left_out: caches and large files that it passes over, where
    these are others than before.
    """

    type: Literal["snapshot_taken"] = "snapshot_taken"
    snapshot: str
    files: int
    bytes: int
    by: Literal["start", "tool", "outside", "rewind"] = "tool"
    left_out: tuple[str, ...] | None = None


class Rewound(Fact):
    """Conversation and files went back to the state after event to_seq; nothing was deleted from the log.

    Recorded before the first file is touched; a `snapshot_taken` by `rewind` follows where files changed. files: how
    many paths were to change. conflicts: paths that somebody else had changed too, and that were left as they are.
    told: what the model has to know of it, at the start of the next user message.
    """

    type: Literal["rewound"] = "rewound"
    to_seq: int
    what: Literal["conversation", "files", "both"]
    files: int | None = None
    conflicts: tuple[str, ...] | None = None
    told: Text | None = None


class RewindUndone(Fact):
    """The rewind with seq `rewound` does not hold any more: all is as it was just before that event.

    files, conflicts, told: see `Rewound`.
    """

    type: Literal["rewind_undone"] = "rewind_undone"
    rewound: int
    files: int | None = None
    conflicts: tuple[str, ...] | None = None
    told: Text | None = None


class Note(Fact):
    """A remark for the record; shown, never sent to the model."""

    type: Literal["note"] = "note"
    text: Text
