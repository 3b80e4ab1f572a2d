"""What secrets look like: the prefixes that issuers document, and assignments to names that say so.

Sources: GitHub's "token formats" and the pages of each issuer on its keys, read in 2026; lengths are lower bounds,
since issuers lengthen keys without notice. A marker is searched for first, as plain text, so that ordinary text costs
little.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from math import log2
from typing import NamedTuple

from agentsh.base.pattern import later

START = r"(?:(?<![A-Za-z0-9_+/=-])|(?<=\\[nrt]))"
"""Not in the middle of a word; a line break inside of a JSON text is two characters of which one is a letter."""
_WORD = r"[A-Za-z0-9_-]"

_SHAPES = (
    # marker, rest of the key. OpenAI, Anthropic and many that follow them.
    ("sk-", rf"sk-(?:ant-|proj-|svcacct-|admin-|or-v1-|lf-)?{_WORD}{{20,}}"),
    ("sk_", r"sk_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("rk_", r"rk_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    ("gh", r"gh[pousr]_[A-Za-z0-9]{36,}"),
    ("github_pat_", rf"github_pat_{_WORD}{{40,}}"),
    ("glpat-", rf"glpat-{_WORD}{{20,}}"),
    ("AKIA", r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9])"),
    ("ASIA", r"ASIA[A-Z2-7]{16}(?![A-Z0-9])"),
    ("AIza", rf"AIza{_WORD}{{35}}"),
    ("GOCSPX-", rf"GOCSPX-{_WORD}{{28}}"),
    ("ya29.", rf"ya29\.{_WORD}{{20,}}"),
    ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("xapp-", r"xapp-\d-[A-Za-z0-9-]{20,}"),
    ("npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-", rf"pypi-AgE{_WORD}{{50,}}"),
    ("hf_", r"hf_[A-Za-z]{30,}"),
    ("gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    ("xai-", r"xai-[A-Za-z0-9]{40,}"),
    ("SG.", rf"SG\.{_WORD}{{20,24}}\.{_WORD}{{39,50}}"),
    ("dop_v1_", r"dop_v1_[a-f0-9]{64}"),
    ("dapi", r"dapi[a-f0-9]{32}"),
    ("shpat_", r"shpat_[a-fA-F0-9]{32}"),
    ("AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("eyJ", rf"eyJ{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.{_WORD}{{16,}}"),
)
_WHOLE = (
    # marker, pattern whose group 1 is the secret; each begins with plain text, so that no place is looked at twice
    ("://", r"://[^\s/:@'\"<>\\]{0,200}:([^\s/@:'\"<>\\]{3,200})@"),
    ("earer ", r"earer ([A-Za-z0-9._~+/-]{20,}=*)"),
    ("asic ", r"asic ([A-Za-z0-9+/]{16,}=*)"),
    ("AccountKey=", r"AccountKey=([A-Za-z0-9+/]{40,}={0,2})"),
    ("password ", r"password ([^\s'\"]*\d[^\s'\"]*)(?=\s|$)"),
    ("<password>", r"<password>([^<\s]{4,200})</"),
    ("-u ", r"-u [^\s:'\"]{1,64}:([^\s'\"]{4,200})"),
    ("--user ", r"--user [^\s:'\"]{1,64}:([^\s'\"]{4,200})"),
)
_KEY_BEGIN = later(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = later(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")

_PASSWORD = r"(?:PASS(?:WORD|WD|PHRASE)|SECRETS?(?:_KEY(?:_BASE)?)?|CREDENTIALS?)"
_KEY = r"(?:(?:API|ACCESS|PRIVATE|SECRET|ENCRYPTION|SIGNING|MASTER|AUTH|SERVICE|ACCOUNT)_?KEY|TOKEN|KEY)"
_OPEN = r"\\?[\"']?[ \t]{0,8}(?:=>|=|:)[ \t]{0,8}\\?[\"']?"
# Of an environment file: NAME=value, where nothing but a value can be meant.
_ENVIRONMENT = (
    rf"{START}(?P<name>(?:[A-Z][A-Z0-9]*_)*(?:(?P<weak>{_PASSWORD})|{_KEY}))(?:_\d+)?"
    r"=(?:\\?[\"'](?P<quoted>[^\"'\\\n]{6,200})(?=\\?[\"'])|(?P<value>[^\s\"'`\\#;,&|<>]{6,}))"
)
# Of code and configuration: a name of any case, quoted or not.
_ASSIGNED = (
    r"(?i:(?<![A-Za-z0-9_.‹-])(?P<name>[A-Za-z0-9_.-]{0,60}?"
    rf"(?:(?P<weak>{_PASSWORD.replace('_', '[_-]?')})|{_KEY.replace('_?', '[_-]?')}))){_OPEN}"
    r"(?P<value>[^\s\"'`\\#;,&|<>(){}\[\]]{8,})(?=[\"'\\\s,;]|$)"
)
_BARE = later(r"[A-Za-z0-9_+/.-]+$")
_NAMES_MARKERS = ("pass", "secret", "credential", "key", "token")
_SECRET_NAME = rf"(?:^|_)(?:(?P<weak>{_PASSWORD})|{_KEY})(?:_\d+)?$"
_HARMLESS_NAME = r"(?i)(?:PUBLIC|PRIMARY|FOREIGN|SORT|PARTITION|CACHE|HOT|NEXT|PAGE|GPG)[_-]?KEY$"

_FILLER = r"(?i)[$%‹{]|.*(?:example|changeme|placeholder|redacted|dummy|your[_-])|(.)\1+$"
_NO_VALUE = (
    rf"{_FILLER}|(?:\./|~|/)|.*://|"
    r"[a-z_][\w-]*(?:\.[a-z_]\w*)+$|sha\d+[:-]|true|false|none|null|undefined|process\.|os\."
)
_JOINTS = later(r"[^A-Za-z0-9]+")
_ORDINARY = later(r"[A-Za-z]{0,16}\d{0,4}|\d+|[A-Za-z]{0,3}\d+[A-Za-z]{0,3}")
"""Of which names and versions are made: a word, with or without a number; a number."""
STRONG_CHARS = 12
WEAK_CHARS = 8
STRONG_BITS = 3.0
"""Shannon entropy per character: words and names lie mostly below, random keys of 12 and more characters above."""


class Found(NamedTuple):
    """A secret in a text: value at [start, end). remember: it is worth looking for everywhere else."""

    start: int
    end: int
    remember: bool


@cache
def _shape(pattern: str) -> "re.Pattern[str]":
    return re.compile(START + f"({pattern})")


@cache
def _whole(pattern: str) -> "re.Pattern[str]":
    return re.compile(pattern, re.DOTALL)


def may_begin(line: str, word: str) -> bool:
    """Return whether `word`, which ends `line` and may go on, is or may become part of a secret."""
    if not word:
        return False
    bare = _BARE.search(word)
    start = word if bare is None else bare[0]
    markers = ["-----BEGIN ", *(marker for marker, _ in (*_SHAPES, *_WHOLE))]
    if any(marker.startswith(start) or marker in line for marker in markers):
        return True
    lowered = line.lower()
    return any(marker in lowered for marker in _NAMES_MARKERS)


def secret_name(name: str) -> bool | None:
    """Return None for the name of a variable that holds no secret, else whether it is one that people make up."""
    match = re.search(_SECRET_NAME, name, re.IGNORECASE)
    return None if match is None else match["weak"] is not None


def harmless_name(name: str) -> bool:
    """Return whether a name only sounds like a secret's, as that of a public key does."""
    return re.search(_HARMLESS_NAME, name) is not None


def strong(value: str) -> bool:
    """Return whether a value looks as if it was made by chance: no word, no name, no number, none joined by signs."""
    if len(value) < STRONG_CHARS or not good(value):
        return False
    counts = [value.count(c) / len(value) for c in set(value)]
    return -sum(share * log2(share) for share in counts) >= STRONG_BITS


def good(value: str) -> bool:
    """Return whether a value can be a password and no name: letters and digits, more than words and numbers."""
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= WEAK_CHARS and mixed and not all(map(_ORDINARY.fullmatch, _JOINTS.split(value)))


def worth_remembering(value: str, *, weak: bool) -> bool:
    """Return whether the value of a variable is replaced wherever it stands: a word that everybody uses must not be.

    weak: the name says password, so that less will do.
    """
    mixed = any(c.isalpha() for c in value) and any(not c.isalpha() for c in value)
    return strong(value) or (weak and len(value) >= WEAK_CHARS and mixed)


def is_value(value: str) -> bool:
    """Return whether something assigned to a secret's name can be the secret: no variable, path, number or filler."""
    return re.match(_NO_VALUE, value) is None


def find(text: str) -> Iterator[Found]:
    """Yield what looks like a secret, in no order; some may overlap. Time grows with the text alone."""
    sure = list(_private_keys(text)) if "-----BEGIN " in text else []
    for marker, pattern in _SHAPES:
        if marker in text:
            sure += [
                Found(*m.span(1), remember=True) for m in _shape(pattern).finditer(text) if "EXAMPLE" not in m[0]
            ]
    for marker, pattern in _WHOLE:
        if marker in text:
            found = [match for match in _whole(pattern).finditer(text) if not re.match(_FILLER, match[1])]
            sure += [Found(*match.span(1), remember=strong(match[1])) for match in found]
    yield from sure
    lowered = text.lower()
    if any(marker in lowered for marker in _NAMES_MARKERS):
        sure.sort()
        for one in _in_lines(text):
            before = bisect_right(sure, one.start, key=lambda known: known.start)
            if not before or one.start >= sure[before - 1].end:
                yield one


def _private_keys(text: str) -> Iterator[Found]:
    start = text.find("-----BEGIN ")
    while start >= 0:
        if _KEY_BEGIN.match(text, start):
            end = text.find("-----END ", start)
            if end < 0:
                return
            trailer = _KEY_END.match(text, end)
            if trailer is not None:
                yield Found(start, trailer.end(), remember=True)
                start = end
        start = text.find("-----BEGIN ", start + 1)


def _in_lines(text: str) -> Iterator[Found]:
    start = 0
    for line in text.split("\n"):
        lowered = line.lower()
        if any(marker in lowered for marker in _NAMES_MARKERS):
            for found in _assigned(line):
                yield found._replace(start=found.start + start, end=found.end + start)
        start += len(line) + 1


def _assigned(line: str) -> Iterator[Found]:
    """Yield what is assigned to the name of a secret."""
    for match in re.finditer(_ENVIRONMENT, line):
        group = "value" if match["quoted"] is None else "quoted"
        value, weak = match[group], match["weak"] is not None
        if is_value(value) and (weak or strong(value)) and not harmless_name(match["name"]):
            yield Found(*match.span(group), remember=strong(value))
    for match in re.finditer(_ASSIGNED, line):
        value, weak = match["value"], match["weak"] is not None
        quoted = weak and match.start("value") > 0 and line[match.start("value") - 1] in "\"'"
        if is_value(value) and (strong(value) or (quoted and good(value))) and not harmless_name(match["name"]):
            yield Found(*match.span("value"), remember=strong(value))
