"""Builds tiktoken's encodings from the rank files that ship with agentsh; asks no network, ever.

`tiktoken.get_encoding` fetches its ranks at run time and raises without a network, so it is never called. Where the
files come from is in `data/SOURCES.md`. Patterns, special tokens and which model has which encoding are facts of
tiktoken 0.14.0: `tiktoken_ext/openai_public.py` and `tiktoken/model.py`, https://github.com/openai/tiktoken.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import tiktoken

PLACE = Path(__file__).parent / "data"

EncodingName = Literal["o200k_base", "cl100k_base"]


class Source(NamedTuple):
    """What an encoding is made of. sha256: of the unpacked rank file. pattern: splits text into pieces."""

    sha256: str
    pattern: str
    special: dict[str, int]


_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

SOURCES: dict[EncodingName, Source] = {
    "o200k_base": Source(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(
            (
                rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}",
                rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
    "cl100k_base": Source(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
}

# The first prefix that fits decides; gpt-oss has other special tokens (o200k_harmony) over the same ranks.
_PREFIXES: tuple[tuple[str, EncodingName], ...] = (
    ("gpt-5", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-4o", "o200k_base"),
    ("chatgpt-4o", "o200k_base"),
    ("gpt-oss", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4-mini", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-35", "cl100k_base"),
)


def encoding_of(model: str) -> EncodingName | None:
    """Return the encoding of an OpenAI model, or None where no file here is its own.

    A provider's name in front (`openai/gpt-5`) and `ft:` of a fine-tuned model are looked past.
    """
    name = model.lower().removeprefix("ft:").rpartition("/")[2]
    for prefix, encoding in _PREFIXES:
        if name == prefix or (name.startswith(prefix) and not name[len(prefix)].isalnum()):
            return encoding
    return None


def rank_file(name: EncodingName) -> bytes:
    """Return the unpacked rank file.

    Raises:
        OSError: it is not there.
        ValueError: it is not the file that its hash names.
    """
    import zstandard

    packed = (PLACE / f"{name}.tiktoken.zst").read_bytes()
    try:
        data = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise ValueError(f"the ranks of {name} do not unpack: {error}") from None
    if hashlib.sha256(data).hexdigest() != SOURCES[name].sha256:
        raise ValueError(f"the ranks of {name} are damaged")
    return data


def load_encoding(name: EncodingName) -> "tiktoken.Encoding":
    """Build the encoding: for o200k_base about 0.2 s of one core and 75 MB, for cl100k_base half of that.

    Raises:
        OSError, ValueError: as `rank_file` says.
        ImportError: tiktoken does not load here.
    """
    from base64 import b64decode

    import tiktoken

    source = SOURCES[name]
    # A line is a token in base64, a blank, and its rank.
    ranks = {b64decode(token): int(rank) for token, _, rank in (line.partition(b" ") for line in _lines(name))}
    return tiktoken.Encoding(
        name=name, pat_str=source.pattern, mergeable_ranks=ranks, special_tokens=dict(source.special)
    )


def _lines(name: EncodingName) -> list[bytes]:
    return rank_file(name).splitlines()
