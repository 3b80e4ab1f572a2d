"""The one tree of errors, each with an exit code and, where a user can act, a hint.

    AgentshError                     1
    ├── UsageProblem                 2   wrong words on the command line, wrong settings
    │   └── NotTrusted               2   a home or configuration that needs `agentsh trust`
    ├── SessionMissing               3   no such session
    ├── SessionAmbiguous             3   several sessions fit
    ├── SessionHeld                  4   another process has the lease
    ├── SessionReadOnly              5   opens read-only until `repair`
    ├── LogError                     1
    │   ├── SessionExists            1   the id is taken
    │   ├── LogWriteFailed           1   the disk refused; nothing half-written is left
    │   ├── LogTooNew                5   a format this version cannot write
    │   └── BlobMissing              1   a blob that an event names is not there
    ├── ModelError                   6
    │   ├── ModelKeyMissing          6
    │   ├── ModelKeyRefused          6   401, 403
    │   ├── ModelUnknown             6   404
    │   ├── RequestRejected          6   400, 413, 422
    │   │   └── ContextOverflow      6
    │   ├── ModelUnavailable         6   429, 5xx, no connection; may be retried
    │   ├── StreamCut                6   the stream died before its finish reason
    │   └── StreamGarbled            6   what came is not the protocol
    ├── ContextInvalid               1   a request that no provider would take; a bug here
    ├── ToolFailed                   1   text for the model, never a crash
    │   ├── BadArguments             1
    │   └── PathRefused              1   outside the workspace, or not a plain file
    ├── StorageError                 6   object storage: a copy of sessions elsewhere
    │   ├── StorageUnavailable       6   no connection, no answer, 5xx; may be retried
    │   ├── StorageRefused           6   401, 403, no such bucket, no conditional writes
    │   ├── StorageConflict          1   the copy there and the session here have gone different ways
    │   └── StorageDamaged           1   an object is not what its manifest says
    └── WorkspaceError               1   provisioning failed

Foreign exceptions are translated into these in one place per adapter.
"""

from typing import Any, ClassVar


class AgentshError(Exception):
    """Root of the tree. `message` is one clear line; `hint` says what to do next, or is None."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by what it is, not by calling its class: processes pass errors on whose words are keywords only."""
        return _unpickled, (type(self), self.args), self.__dict__

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


def _unpickled(kind: type[AgentshError], args: tuple[Any, ...]) -> AgentshError:
    return kind.__new__(kind, *args)  # the state that pickle sets next has the rest


class UsageProblem(AgentshError):
    """The command line or the settings cannot be obeyed as they stand."""

    exit_code = 2


class NotTrusted(UsageProblem):
    """A home or a configuration that came with a project was not trusted yet."""


class SessionMissing(AgentshError):
    """No session has that id, prefix, suffix or name. Nothing was created."""

    exit_code = 3


class SessionAmbiguous(AgentshError):
    """Several sessions fit; `candidates` are their full ids, newest first."""

    exit_code = 3

    def __init__(self, message: str, *, candidates: tuple[str, ...], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.candidates = candidates


class SessionHeld(AgentshError):
    """Another process may append to this session; `holder` says who, for people only."""

    exit_code = 4

    def __init__(self, message: str, *, holder: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class SessionReadOnly(AgentshError):
    """The log can be read but not continued until `agentsh repair`."""

    exit_code = 5


class LogError(AgentshError):
    """The log or the blob store could not do what was asked."""


class SessionExists(LogError):
    """A session with that id is there already. Nothing was changed."""


class LogWriteFailed(LogError):
    """An append or a sync failed; what was not acknowledged was cut back."""


class LogTooNew(LogError):
    """The log was written by a newer format."""

    exit_code = 5


class BlobMissing(LogError):
    """A blob is not in the store, or its bytes are not those of its name."""


class ModelError(AgentshError):
    """The model could not answer."""

    exit_code = 6
    retryable: ClassVar[bool] = False


class ModelKeyMissing(ModelError):
    """No key for a provider that needs one."""


class ModelKeyRefused(ModelError):
    """The provider refused the key (401, 403)."""


class ModelUnknown(ModelError):
    """The provider has no such model, or the URL has no such path (404)."""


class RequestRejected(ModelError):
    """The provider refused the request itself (400, 413, 422)."""


class ContextOverflow(RequestRejected):
    """The request is longer than the model's context window.

    limit_tokens, request_tokens: what the provider said that the model takes and that the request had, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        limit_tokens: int | None = None,
        request_tokens: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.limit_tokens = limit_tokens
        self.request_tokens = request_tokens


class ModelUnavailable(ModelError):
    """Busy, broken or unreachable: 408, 409, 429, 5xx, no connection.

    retry_after_s: seconds that the server asked us to wait, or None.
    """

    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class StreamCut(ModelError):
    """The stream ended without a finish reason, however the transport closed."""

    retryable = True


class StreamGarbled(ModelError):
    """The server answered with something that is not the protocol."""

    retryable = True


class ContextInvalid(AgentshError):
    """The validator found a request that a provider would refuse."""


class ToolFailed(AgentshError):
    """A tool could not do its work; the message goes to the model as the result."""


class BadArguments(ToolFailed):
    """The model's arguments do not fit the tool's schema."""


class PathRefused(ToolFailed):
    """The path leads out of the workspace or names no plain file or directory."""


class StorageError(AgentshError):
    """Object storage could not do what was asked. No message ever holds a credential, or what a server said."""

    exit_code = 6


class StorageUnavailable(StorageError):
    """No connection, no answer in time, or a server that failed. Trying again later may help."""


class StorageRefused(StorageError):
    """The storage answered, and will go on to say no: credentials, rights, the bucket's name, what it can do."""


class StorageConflict(StorageError):
    """The copy and the session do not follow one from the other; nothing was overwritten."""

    exit_code = 1


class StorageDamaged(StorageError):
    """An object is missing or is not what the manifest says; nothing was put in place."""

    exit_code = 1


class WorkspaceError(AgentshError):
    """A workspace could not be made or opened."""
