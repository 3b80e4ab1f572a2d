"""Google Cloud Storage on loopback: the XML API, with tokens that a service account's key signs.

After https://cloud.google.com/storage/docs/xml-api/reference-headers and …/reference-status. Not there: `x-goog-hash`
has no crc32c, and a token is taken until it is an hour old, whatever the scope says.
"""

import base64
import binascii
import json
import time
from hashlib import sha256
from typing import NamedTuple
from xml.sax.saxutils import escape

from tests.clouds.objects import Answer, Object, ObjectServer, Refusal, Request, base64_of

MAX_KEY_BYTES = 1024
_SHA256_OF = bytes.fromhex("3031300d060960864801650304020105000420")
"""What stands before a SHA-256 in an RSA signature (RFC 8017, section 9.2)."""


class PublicKey(NamedTuple):
    """Of a service account: what checks its signatures."""

    email: str
    n: int
    e: int


class GoogleServer(ObjectServer):
    """Knows one service account, which may do everything in the buckets that there are."""

    own_headers = "x-goog-"
    known_headers = frozenset({"x-goog-if-generation-match"})

    def __init__(self, account: PublicKey) -> None:
        super().__init__()
        self._account = account

    def authorize(self, asked: Request) -> None:
        """Take a bearer token: a JWT that the account has signed."""
        kind, _, token = asked.headers.get("authorization", "").partition(" ")
        if not token:
            raise Refusal(403, "AccessDenied", "Anonymous caller does not have storage.objects.get access.")
        if kind != "Bearer" or not self._signed(token):
            raise Refusal(401, "AuthenticationRequired", "Authentication required.")

    def _signed(self, token: str) -> bool:
        try:
            content, _, signature = token.rpartition(".")
            head, claims = (json.loads(_decoded(part)) for part in content.split("."))
            number = int.from_bytes(_decoded(signature), "big")
        except (ValueError, binascii.Error):
            return False
        size = (self._account.n.bit_length() + 7) // 8
        padded = pow(number, self._account.e, self._account.n).to_bytes(size, "big")
        expected = _SHA256_OF + sha256(content.encode()).digest()
        fits = padded == b"\0\1" + b"\xff" * (size - len(expected) - 3) + b"\0" + expected
        alive = claims["iat"] - 60 <= time.time() < min(claims["exp"], claims["iat"] + 3600)
        return fits and bool(alive) and head["alg"] == "RS256" and claims["iss"] == self._account.email

    def handle(self, asked: Request) -> Answer:
        """Do what is asked."""
        if asked.method not in ("GET", "HEAD", "PUT"):
            raise self.odd(f"{asked.method} {asked.path}")
        objects = self.buckets.get(asked.bucket)
        if objects is None:
            raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist.")
        if not asked.key:
            return self._list(asked, objects)
        if asked.query:
            raise self.odd(f"{asked.method} of an object with {asked.query}")
        if len(asked.key.encode()) > MAX_KEY_BYTES:
            raise Refusal(400, "KeyTooLong", "The specified key was longer than the maximum allowed size.")
        found = objects.get(asked.key)
        if asked.method == "PUT":
            condition = asked.headers.get("x-goog-if-generation-match")
            if condition is None:
                raise self.odd("an object that is written without a condition")
            if not condition.isdigit():
                raise Refusal(400, "InvalidArgument", "Invalid argument.")
            if int(condition) != (0 if found is None else found.number):
                message = "At least one of the pre-conditions you specified did not hold."
                raise Refusal(412, "PreconditionFailed", message)
            made = objects[asked.key] = self.stored(asked.body)
            return Answer(200, _about(made))
        if found is None:
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        if asked.headers.get("if-match", _about(found)["ETag"]) != _about(found)["ETag"]:
            raise Refusal(412, "PreconditionFailed")
        about = _about(found) | {"Last-Modified": found.modified, "Content-Type": "application/octet-stream"}
        return self.content(asked, found, about, Refusal(416, "InvalidRange"))

    def _list(self, asked: Request, objects: dict[str, Object]) -> Answer:
        unknown = set(asked.query) - {"list-type", "delimiter", "prefix", "continuation-token", "max-keys"}
        if asked.method != "GET" or unknown or asked.query.get("list-type") != "2":
            raise self.odd(f"{asked.method} of a bucket with {asked.query}")
        if asked.query.get("delimiter") != "/":
            raise self.odd("a listing of all levels")
        prefix, token = asked.query.get("prefix", ""), asked.query.get("continuation-token", "")
        keys, prefixes, onward = self.page(list(objects), prefix, _decoded(token).decode() if token else "")
        next_token = "" if onward is None else base64_of(onward.encode())
        body = "".join(
            f"<Contents><Key>{escape(key)}</Key><Generation>{objects[key].number}</Generation>"
            f"<MetaGeneration>1</MetaGeneration><LastModified>2026-11-30T12:00:00.000Z</LastModified>"
            f"<ETag>{escape(_about(objects[key])['ETag'])}</ETag><Size>{len(objects[key].data)}</Size></Contents>"
            for key in keys
        )
        body += "".join(f"<CommonPrefixes><Prefix>{escape(p)}</Prefix></CommonPrefixes>" for p in prefixes)
        more = f"<NextContinuationToken>{next_token}</NextContinuationToken>" if next_token else ""
        document = (
            "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>"
            f"<Name>{asked.bucket}</Name><Prefix>{escape(prefix)}</Prefix><Delimiter>/</Delimiter>"
            f"<IsTruncated>{'true' if next_token else 'false'}</IsTruncated>{more}{body}</ListBucketResult>"
        )
        return Answer(200, {"Content-Type": "application/xml; charset=UTF-8"}, document.encode())

    def problem(self, refusal: Refusal) -> Answer:
        """Return the error document."""
        text = f"<Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message>"
        document = f"<?xml version='1.0' encoding='UTF-8'?><Error>{text}</Error>"
        return Answer(refusal.status, {"Content-Type": "application/xml; charset=UTF-8"}, document.encode())


def _about(found: Object) -> dict[str, str]:
    return {
        "ETag": f'"{found.md5.hex()}"', "x-goog-generation": str(found.number), "x-goog-metageneration": "1",
        "x-goog-hash": f"md5={base64_of(found.md5)}", "x-goog-stored-content-length": str(len(found.data)),
    }  # fmt: skip


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_") + "=" * (-len(text) % 4))
