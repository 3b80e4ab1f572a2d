"""Session ids: sortable by day, short, typeable.

`YYYYMMDD-` (UTC) and six lower-case Crockford base32 characters: no i, l, o, u,
so that an id read aloud or copied by hand stays the same. Unique by exclusive creation, not by chance.
"""

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
SUFFIX_LENGTH = 6
_ID = re.compile(f"[0-9]{{8}}-[{CROCKFORD}]{{{SUFFIX_LENGTH}}}")  # `ls` asks this of each session: it has to be quick


def new_session_id(now: "datetime") -> str:
    """Return a fresh id for a session created at `now` (UTC)."""
    import secrets  # loads hashlib and hmac, which `ls` does without

    suffix = "".join(secrets.choice(CROCKFORD) for _ in range(SUFFIX_LENGTH))
    return f"{now:%Y%m%d}-{suffix}"


def random_hex(count: int) -> str:
    """Return `count` random bytes in hexadecimal: `secrets.token_hex`, whose module loads four others at start-up."""
    return os.urandom(count).hex()


def is_session_id(text: str) -> bool:
    """Tell whether `text` has the form of a whole session id."""
    return _ID.fullmatch(text) is not None


def matching_ids(ids: list[str], text: str) -> list[str]:
    """Return the ids that `text` names: the exact one alone, else by prefix or suffix, in the given order."""
    if text in ids:
        return [text]
    return [i for i in ids if text and (i.startswith(text) or i.endswith(text))]
