"""S3, Google Cloud Storage, Azure Blob Storage and what speaks like them, through obstore (the extra `upload`).

This module owns obstore: it loads it where it is needed, and translates what it raises. What a server or the client
says may hold signed URLs, so that of their texts only the status and the code get through.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agentsh.base.errors import StorageError, StorageRefused, StorageUnavailable, UsageProblem
from agentsh.stores.bucket import Found

if TYPE_CHECKING:
    from obstore.store import ObjectStore

CONNECT_S = 5
RETRIES = 2
"""obstore's default of 10 makes a dead endpoint take 8 s for each call (reference/libraries.md, section 4)."""
CREDENTIALS_HINT = "credentials come from the environment: see docs/upload.md"

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
_STATUS = re.compile(r"status code: ([0-9]{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_TAKEN = frozenset({"BlobAlreadyExists", ""})
"""Codes of a 409 that says that an object is there; others say that the server is busy with something else."""
_PASSING = frozenset({"408", "409", "412", "425", "429"})
"""Of the statuses 4xx, those that another try may not get."""
_ADDRESS = re.compile(r"https?://\S*")
_CREDENTIALS = re.compile("redential|service account file|Access Key|token file|SAS")
_SETTINGS = re.compile(
    "Unable to recognise|must be specified|builder error|Unrecognised|MissingAccount|MissingBucket"
)
_OF_MACHINES = re.compile(r"https?://(169\.254\.[0-9.]+|metadata\.google\.internal)[:/]")
"""Asked for credentials where the environment holds none: only machines of the services' own have an answer."""
_LOOPBACK = re.compile(r"http://(127\.[0-9.]+|localhost|\[::1\])(:[0-9]+)?(/|$)")


class ObjectBucket:
    """Objects below `url`: `s3://bucket/prefix`, `gs://…`, `az://container/…`. timeout_s: for one request."""

    def __init__(self, url: str, *, timeout_s: float, endpoint: str | None = None) -> None:
        self.url = url
        try:
            from obstore import exceptions, store
        except ImportError:
            raise UsageProblem(
                f"{url} needs the package obstore", hint="`pip install 'agentsh[upload]'` brings it"
            ) from None
        self._exceptions = exceptions
        config: dict[str, Any] = {"checksum_algorithm": "SHA256"} if url.startswith("s3:") else {}
        options: dict[str, Any] = {
            "timeout": f"{int(timeout_s * 1000)}ms", "connect_timeout": f"{int(min(CONNECT_S, timeout_s) * 1000)}ms",
        }  # fmt: skip
        if endpoint is not None and _LOOPBACK.match(endpoint):
            options["allow_http"] = True
        backoff = {
            "init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=5), "base": 2,
        }  # fmt: skip
        retry = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=timeout_s * 1.5), "backoff": backoff}
        make: Any = store.from_url  # its overloads know no kind of store that is chosen at run time
        with self._told():
            self._store: ObjectStore = make(url, config=config, client_options=options, retry_config=retry)

    def ready(self) -> None:
        """Nothing is known of a bucket without writing to it."""

    def read(self, key: str) -> tuple[bytes, Found] | None:
        """Return an object's bytes with what it is."""
        with self._told():
            try:
                got = self._store.get(key)
                return bytes(got.bytes()), _found(key, got.meta["size"], got.meta)
            except FileNotFoundError as error:
                self._no_bucket(error)
        return None

    def head(self, key: str) -> Found | None:
        """Return what an object is."""
        with self._told():
            try:
                meta = self._store.head(key)
                return _found(key, meta["size"], meta)
            except FileNotFoundError as error:
                self._no_bucket(error)
        return None

    def create(self, key: str, data: bytes) -> Found | None:
        """Make an object."""
        with self._told():
            try:
                return _found(key, len(data), self._store.put(key, data, mode="create", use_multipart=False))
            except self._exceptions.AlreadyExistsError as error:
                status, code = _status_and_code(str(error))
                if status != "409" or code in _TAKEN or self.head(key) is not None:
                    return None
                raise  # two wrote it at a time and neither did, or the bucket is being changed

    def replace(self, key: str, data: bytes, old: Found) -> Found | None:
        """Put new bytes in the place of `old`."""
        e_tag, _, version = old.version.partition("\n")
        mode: Any = {"e_tag": e_tag} | ({"version": version} if version else {})
        with self._told():
            try:
                return _found(key, len(data), self._store.put(key, data, mode=mode, use_multipart=False))
            except (self._exceptions.PreconditionError, self._exceptions.AlreadyExistsError):
                return None

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the names directly below `prefix`."""
        with self._told():
            found = self._store.list_with_delimiter(prefix.rstrip("/"))
        paths = [*found["common_prefixes"], *(meta["path"] for meta in found["objects"])]
        yield from sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            raise
        except FileNotFoundError as error:
            raise self._refused("there is no such bucket", error) from None
        except (self._exceptions.PermissionDeniedError, self._exceptions.UnauthenticatedError) as error:
            raise self._refused("it refuses these credentials", error, CREDENTIALS_HINT) from None
        except (self._exceptions.NotSupportedError, self._exceptions.InvalidPathError) as error:
            raise self._refused("it cannot do what uploads need", error) from None
        except (ValueError, self._exceptions.UnknownConfigurationKeyError) as error:
            raise self._refused("the URL or its settings cannot be", error, "see docs/upload.md") from None
        except (self._exceptions.BaseError, OSError) as error:
            raise self._other(error) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # pyo3's, which no module exports; no Exception
                raise
            raise self._refused("the client cannot go on with these settings", None, "see docs/upload.md") from None

    def _other(self, error: Exception) -> StorageError:
        """Return what a failure is that the client has no class for: only its words tell, and the status in them."""
        text = str(error)
        said = _ADDRESS.sub("", text.partition("Debug source")[0])  # an address holds the user's own words
        status, code = _status_and_code(text)
        if code in _NO_BUCKET:
            return self._refused("there is no such bucket", error)
        if _OF_MACHINES.search(text):
            return self._refused("there are no credentials for it", None, CREDENTIALS_HINT)
        if status in ("401", "403"):
            return self._refused("it refuses these credentials, or there are none", error, CREDENTIALS_HINT)
        if not status and _CREDENTIALS.search(said):
            return self._refused("its credentials cannot be read", None, CREDENTIALS_HINT)
        if not status and _SETTINGS.search(said):
            return self._refused("the URL or its settings cannot be", error, "see docs/upload.md")
        if "redirect without LOCATION" in said:
            return self._refused("the bucket is somewhere else", None, "is AWS_REGION right, or the endpoint?")
        if status.startswith("4") and status not in _PASSING:
            return self._refused("it refuses the request", error, "see docs/upload.md")
        return StorageUnavailable(f"{self.url}: {_why(text)}")

    def _no_bucket(self, error: Exception) -> None:
        if _status_and_code(str(error))[1] in _NO_BUCKET:
            raise self._refused("there is no such bucket", error) from None

    def _refused(self, what: str, error: Exception | None, hint: str | None = None) -> StorageRefused:
        code = _coded(str(error)) if error is not None else ""
        return StorageRefused(f"{self.url}: {what}{f' ({code})' if code else ''}", hint=hint)


def _status_and_code(text: str) -> tuple[str, str]:
    """Return what a server said, "" each where it did not: the status, and the code in the error document."""
    status, code = _STATUS.search(text), _CODE.search(text)
    return status[1] if status is not None else "", code[1] if code is not None else ""


def _coded(text: str) -> str:
    return " ".join(part for part in _status_and_code(text) if part)


def _why(text: str) -> str:
    """Return in our own words why a request failed; the client's may hold what nobody should read."""
    if code := _coded(text):
        return f"it failed ({code})"
    if "kind: Timeout" in text:
        return "it does not answer"
    return "there is no connection to it" if "error sending request" in text else "it failed"


def _found(key: str, size: int, meta: Any) -> Found:
    e_tag, version = meta.get("e_tag") or "", meta.get("version") or ""
    md5_of = _MD5.fullmatch(e_tag)
    return Found(key, size, f"{e_tag}\n{version}" if version else e_tag, md5_of[1] if md5_of else None)
