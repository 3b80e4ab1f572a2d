"""Azure Blob Storage on loopback: block blobs in one piece, listings, and requests signed with the account's key.

After https://learn.microsoft.com/rest/api/storageservices/ : authorize-with-shared-key, put-blob, get-blob,
list-blobs, blob-service-error-codes.
"""

import base64
import hmac
import re
import time
from email.utils import parsedate_to_datetime
from urllib.parse import unquote
from xml.sax.saxutils import escape

from tests.clouds.objects import Answer, Object, ObjectServer, Refusal, Request, base64_of

MAX_SKEW_S = 900
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}")
_SIGNED = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip


class AzureServer(ObjectServer):
    """Knows one account. key: what it is signed with, in base64."""

    own_headers = "x-ms-"
    known_headers = frozenset({"x-ms-version", "x-ms-date", "x-ms-blob-type", "x-ms-range", "x-ms-client-request-id"})

    def __init__(self, account: str, key: str) -> None:
        super().__init__()
        self._account = account
        self._key = base64.b64decode(key)

    def authorize(self, asked: Request) -> None:
        """Take a shared key's signature, of now."""
        if "x-ms-version" not in asked.headers:
            raise Refusal(400, "MissingRequiredHeader", "An HTTP header that's mandatory is not specified.")
        kind, _, rest = asked.headers.get("authorization", "").partition(" ")
        if not kind:
            raise Refusal(401, "NoAuthenticationInformation", "Server failed to authenticate the request.")
        when = asked.headers.get("x-ms-date") or asked.headers.get("date") or ""
        try:
            skew_s = abs(parsedate_to_datetime(when).timestamp() - time.time())
        except ValueError:
            skew_s = MAX_SKEW_S + 1
        account, _, signature = rest.partition(":")
        fits = hmac.compare_digest(signature, self._signature(asked))
        if kind != "SharedKey" or account != self._account or skew_s > MAX_SKEW_S or not fits:
            raise Refusal(403, "AuthenticationFailed", "Server failed to authenticate the request.")

    def _signature(self, asked: Request) -> str:
        values = {**asked.headers}
        if values.get("content-length") == "0":
            values["content-length"] = ""
        if "x-ms-date" in values:
            values["date"] = ""
        own = sorted((name, value) for name, value in values.items() if name.startswith("x-ms-"))
        lines = [asked.method, *(values.get(name, "") for name in _SIGNED)]
        lines += [f"{name}:{value}" for name, value in own]
        resource = f"/{self._account}{asked.path}"
        resource += "".join(f"\n{name.lower()}:{value}" for name, value in sorted(asked.query.items()))
        text = "\n".join([*lines, resource])
        return base64_of(hmac.digest(self._key, text.encode(), "sha256"))

    def handle(self, asked: Request) -> Answer:
        """Do what is asked."""
        if asked.method not in ("GET", "HEAD", "PUT"):
            raise self.odd(f"{asked.method} {asked.path}")
        if _CONTAINER.fullmatch(asked.bucket) is None:
            raise Refusal(400, "InvalidResourceName", "The specified resource name contains invalid characters.")
        blobs = self.buckets.get(asked.bucket)
        if blobs is None:
            raise Refusal(404, "ContainerNotFound", "The specified container does not exist.")
        if not asked.key:
            return self._list(asked, blobs)
        if asked.query:
            raise self.odd(f"{asked.method} of a blob with {asked.query}")
        if not 1 <= len(asked.key) <= 1024 or any(len(part) > 254 for part in asked.key.split("/")):
            raise Refusal(400, "InvalidUri", "The requested URI does not represent any resource on the server.")
        found = blobs.get(asked.key)
        if asked.method == "PUT":
            return self._put(asked, blobs, found)
        if found is None:
            raise Refusal(404, "BlobNotFound", "The specified blob does not exist.")
        about = _about(found)
        if asked.headers.get("if-match", about["ETag"]) != about["ETag"]:
            raise Refusal(
                412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."
            )
        about |= {"Content-Type": "application/octet-stream", "x-ms-blob-type": "BlockBlob"}
        return self.content(asked, found, about, Refusal(416, "InvalidRange"))

    def _put(self, asked: Request, blobs: dict[str, Object], found: Object | None) -> Answer:
        if "x-ms-blob-type" not in asked.headers:
            raise Refusal(400, "MissingRequiredHeader", "An HTTP header that's mandatory is not specified.")
        if asked.headers["x-ms-blob-type"] != "BlockBlob":
            raise self.odd(f"a blob of the type {asked.headers['x-ms-blob-type']}")
        none, same = asked.headers.get("if-none-match"), asked.headers.get("if-match")
        if none is None and same is None:
            raise self.odd("a blob that is written without a condition")
        if none not in (None, "*"):
            raise Refusal(400, "InvalidHeaderValue", "The value for one of the HTTP headers is not correct.")
        if none == "*" and found is not None:
            raise Refusal(409, "BlobAlreadyExists", "The specified blob already exists.")
        if same is not None and (found is None or same != _about(found)["ETag"]):
            raise Refusal(
                412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met."
            )
        made = blobs[asked.key] = self.stored(asked.body)
        return Answer(201, _about(made))

    def _list(self, asked: Request, blobs: dict[str, Object]) -> Answer:
        unknown = set(asked.query) - {"restype", "comp", "prefix", "delimiter", "marker", "maxresults"}
        wanted = (asked.query.get("restype"), asked.query.get("comp"), asked.query.get("delimiter"))
        if asked.method != "GET" or unknown or wanted != ("container", "list", "/"):
            raise self.odd(f"{asked.method} of a container with {asked.query}")
        prefix = asked.query.get("prefix", "")
        keys, prefixes, onward = self.page(list(blobs), prefix, unquote(asked.query.get("marker", "")))
        body = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{blobs[key].modified}</Last-Modified>"
            f"<Etag>{escape(_about(blobs[key])['ETag'].strip(chr(34)))}</Etag>"
            f"<Content-Length>{len(blobs[key].data)}</Content-Length>"
            "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for key in keys
        )
        body += "".join(f"<BlobPrefix><Name>{escape(p)}</Name></BlobPrefix>" for p in prefixes)
        document = (
            '<?xml version="1.0" encoding="utf-8"?>'
            f'<EnumerationResults ServiceEndpoint="http://127.0.0.1:{self.port}/" ContainerName="{asked.bucket}">'
            f"<Prefix>{escape(prefix)}</Prefix><Delimiter>/</Delimiter><Blobs>{body}</Blobs>"
            f"<NextMarker>{escape(onward or '')}</NextMarker></EnumerationResults>"
        )
        # The service sends a byte order mark before it.
        return Answer(200, {"Content-Type": "application/xml"}, document.encode("utf-8-sig"))

    def problem(self, refusal: Refusal) -> Answer:
        """Return the error document, and its code as a header, which HEAD has too."""
        text = f"<Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message>"
        document = f'<?xml version="1.0" encoding="utf-8"?><Error>{text}</Error>'
        headers = {"Content-Type": "application/xml", "x-ms-error-code": refusal.code}
        return Answer(refusal.status, headers, document.encode("utf-8-sig"))


def _about(found: Object) -> dict[str, str]:
    return {
        "ETag": f'"0x{found.number:X}"', "Last-Modified": found.modified, "Content-MD5": base64_of(found.md5),
        "x-ms-version": "2023-11-03", "x-ms-creation-time": found.modified,
    }  # fmt: skip
