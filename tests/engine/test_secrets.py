"""Secrets are found by what they look like and by the name they are given, and only they."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh.engine.secret_stream import SecretStream
from agentsh.engine.secrets import MAX_KNOWN, PLACEHOLDER, Secrets, UnknownSecret

HEX = "a8f5f167f44f4964e6c998dee827110c"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 2


def of(length: int) -> str:
    return LETTERS[:length]


def secrets(**more: Any) -> Secrets:
    return Secrets(key=lambda: b"a key of the user", **more)


SHAPES = [
    f"sk-{of(48)}", f"sk-proj-{of(60)}", f"sk-ant-api03-{of(90)}", f"sk_live_{of(24)}", f"ghp_{of(36)}",
    f"github_pat_{of(22)}_{of(59)}", f"glpat-{of(20)}", "AKIAIOSFODNN7ABCDEFG", "ASIAIOSFODNN7ABCDEFG",
    f"AIza{of(35)}", "xoxb-123456789012-abcdefghijkl", f"npm_{of(36)}", f"pypi-AgE{of(60)}", f"hf_{'aBcD' * 9}",
    f"gsk_{of(50)}", f"SG.{of(22)}.{of(43)}", f"dop_v1_{HEX * 2}", f"dapi{HEX}", f"eyJ{of(20)}.eyJ{of(30)}.{of(43)}",
    PEM,
]  # fmt: skip


@pytest.mark.parametrize("value", SHAPES, ids=lambda value: value[:12])
@pytest.mark.parametrize("around", ["{}", "the key is {}.", "x = '{}'", "a\n{}\nb", "[{}](b)", "日本{}語"])
def test_what_issuers_hand_out(value: str, around: str) -> None:
    cleaned = secrets().clean(around.format(value))
    assert value not in cleaned
    assert PLACEHOLDER.sub(lambda match: value, cleaned).startswith(around.format(value)[:20])
    assert len(PLACEHOLDER.findall(cleaned)) == 1


ASSIGNED = [
    ("DB_PASSWORD={}", "hunter2"),
    ("export DB_PASSWORD={}", "hunter2x"),
    ("POSTGRES_PASSWORD={}", "postgres"),
    ('SECRET_KEY="{}"', "django-insecure-4x9z"),
    ("     3\tAPI_KEY={}", HEX),
    ("DJANGO_SECRET_KEY_BASE={}", "abcdefgh-ijkl"),
    ('  "api_key": "{}",', HEX),
    ("password: {}", "c0rrect-h0rse-7x9"),
    ('db_password = "{}"', "hunter2hunter2"),
    ("client_secret => '{}'", HEX),
    ("Authorization: Bearer {}", f"{of(30)}.{of(10)}"),
    ("curl -H 'authorization: Basic {}'", "dXNlcjpwYXNzd29yZA=="),
    ("postgres://admin:{}@db.example.net/x", "s3cr3tpw"),
    ("https://x-access-token:{}@github.com/a/b.git", HEX),
    ("DefaultEndpointsProtocol=https;AccountKey={};x", "A" * 20 + of(60) + "=="),
]


@pytest.mark.parametrize(("text", "value"), ASSIGNED)
def test_what_a_name_says(text: str, value: str) -> None:
    cleaned = secrets().clean(text.format(value))
    assert value not in cleaned
    assert PLACEHOLDER.sub("{}", cleaned) == text


@pytest.mark.parametrize(
    "text",
    [
        "def login(password: str, token: str | None = None) -> Token:",
        "password = os.environ['DB_PASSWORD']",
        "password = getpass.getpass()",
        "api_key = settings.OPENAI_API_KEY",
        "TOKEN=$(cat token.txt)",
        "API_KEY=${API_KEY}",
        "API_KEY=<your key>",
        "API_KEY=your-api-key-here-1234",
        "SECRET_FILE=/run/secrets/key1234",
        "PASSWORD_HASHERS = ['django.contrib.auth.hashers.PBKDF2PasswordHasher']",
        "MAX_TOKENS=100000",
        "TOKEN_TYPE=Bearer",
        "prompt_tokens: 123456789012",
        "primary_key=True, foreign_key='users.id'",
        "PUBLIC_KEY=ssh-ed25519-AAAAC3NzaC1lZDI1NTE5",
        "cache_key = f'{a}:{b}:{c}'",
        "the key point of the token is the password",
        "commit 0123456789abcdef0123456789abcdef01234567",
        f"sha256:{HEX * 2}",
        "password: ************",
        "AKIAIOSFODNN7EXAMPLE",
        "task-123-something-that-begins-with-sk",
        "https://example.net/a:b/c@d",
        "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
        '{"type":"tool_call","call":"call_5f0ebd2f3c4a5b6d7e8f9012","name":"read"}',
    ],
)
def test_what_is_none(text: str) -> None:
    assert secrets().clean(text) == text


def test_cleaning_twice_is_cleaning_once() -> None:
    cleaner = secrets()
    for text in [*SHAPES, *(text.format(value) for text, value in ASSIGNED)]:
        cleaned = cleaner.clean(text)
        assert cleaner.clean(cleaned) == secrets().clean(cleaned) == cleaned


def test_a_strong_value_is_one_wherever_it_stands_and_a_weak_one_only_where_it_is_assigned() -> None:
    cleaner = secrets()
    text = cleaner.clean(f"first {HEX}, DB_KEY={HEX}\nPOSTGRES_PASSWORD=postgres\npostgres runs, {HEX}")
    assert HEX not in text
    assert text.endswith(f"postgres runs, {cleaner.clean(HEX)}")
    assert cleaner.clean("postgres and " + HEX) == f"postgres and {cleaner.clean(HEX)}"


def test_the_digits_depend_on_the_key_alone() -> None:
    one, same = secrets(), secrets()
    other = Secrets(key=lambda: b"another")
    assert one.clean(SHAPES[0]) == same.clean(SHAPES[0]) != other.clean(SHAPES[0])


def test_known_values_patterns_and_exceptions() -> None:
    cleaner = Secrets(["swordfish-9"], patterns=[r"badge (\d{6})", "T-[A-Z]{4}"], allow=[HEX])
    assert PLACEHOLDER.sub("*", cleaner.clean("say swordfish-9, swordfish-9!")) == "say *, *!"
    assert PLACEHOLDER.sub("*", cleaner.clean("badge 123456 of T-ABCD")) == "badge * of *"
    assert cleaner.clean(f"API_KEY={HEX}") == f"API_KEY={HEX}"
    assert secrets(on=False).clean(SHAPES[0]) == SHAPES[0]


def test_what_comes_back_is_the_value() -> None:
    cleaner = secrets()
    value = {"content": f"KEY_A=1\nAPI_KEY={HEX}\n{PEM}\n", "list": [SHAPES[0], 3, None], "n": 1}
    cleaned = cleaner.payload(value)
    assert HEX not in json.dumps(cleaned)
    assert cleaner.restore(cleaned) == value
    assert cleaner.restore("no placeholder") == "no placeholder"
    with pytest.raises(UnknownSecret, match="‹secret:00000000›"):
        cleaner.restore({"a": ["x ‹secret:00000000› y"]})
    with pytest.raises(UnknownSecret):
        secrets().restore(cleaned)


def test_what_is_not_changed_is_shared() -> None:
    value = {"a": "plain", "b": [1, {"c": "d"}], "n": None}
    assert secrets().payload(value) is value


def test_arguments_are_cleaned_inside_of_their_json() -> None:
    cleaner = secrets()
    arguments = {"path": ".env", "content": f'A="b"\nAPI_KEY="{HEX}"\n{PEM}'}
    cleaned = cleaner.json(json.dumps(arguments))
    assert HEX not in cleaned
    assert "MIIEow" not in cleaned
    assert cleaner.restore(json.loads(cleaned)) == arguments
    text = '{"path": "a.txt"}  '
    assert cleaner.json(text) is text
    assert HEX not in cleaner.json(f'{{"content": "API_KEY={HEX}')  # cut off: no JSON


def test_values_with_the_same_digits_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Digits:
        def __init__(self, data: bytes, **options: Any) -> None:
            self.salt = data.count(b"\0")

        def hexdigest(self) -> str:
            return f"{self.salt:08x}"

    monkeypatch.setattr("agentsh.engine.secrets.blake2b", Digits)
    cleaner = secrets()
    cleaned = [cleaner.clean(value) for value in SHAPES[:3]]
    assert len(set(cleaned)) == 3
    assert cleaner.restore(cleaned) == SHAPES[:3]


def test_memory_is_bounded() -> None:
    cleaner = secrets()
    first = cleaner.clean(f"API_KEY={HEX}")
    for n in range(MAX_KNOWN):
        cleaner._placeholder(f"value {n}")
    with pytest.raises(UnknownSecret):
        cleaner.restore(first)


PIECES = st.sampled_from(
    [
        *SHAPES[:6],
        PEM,
        *(text.format(value) for text, value in ASSIGNED),
        "word",
        "s",
        "sk",
        "-",
        "日本語",
        "...",
        HEX[:9],
    ]
)


@given(st.lists(st.tuples(PIECES, st.sampled_from([" ", "\n", "\n\n"])), max_size=12), st.data())
def test_a_stream_shows_the_start_of_what_is_recorded(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    text = "".join(piece + gap for piece, gap in parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    stream, shown = SecretStream(secrets()), ""
    whole = secrets().clean(text)
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        shown += stream.feed(text[start:end])
        assert whole.startswith(shown)
    assert shown + stream.rest() == whole


def test_ordinary_text_is_not_held_back() -> None:
    stream = SecretStream(secrets())
    assert stream.feed("half of the work") == "half of the work"
    assert stream.feed("日本語の文章") == "日本語の文章"
    assert stream.feed(" is s") == " is "
    assert stream.feed("o") == "so"
    assert stream.rest() == ""


def test_a_long_line_costs_no_more_than_its_length() -> None:
    class Counting(Secrets):
        chars = 0

        def clean(self, text: str) -> str:
            self.chars += len(text)
            return super().clean(text)

    cleaner = Counting()
    stream, text = SecretStream(cleaner), ""
    for _ in range(2_000):
        text += stream.feed("twelve chars ")
    assert text == "twelve chars " * 2_000
    assert cleaner.chars < 2_000 * 13 * 300


def test_the_bytes_of_an_image_are_left_alone() -> None:
    """Base64 is no text; what looks like a key in it is chance, and megabytes of it take seconds to look through."""
    secrets = Secrets(["iVBORw0KGgo="])
    image = {"name": "a.png", "media_type": "image/png", "content": "iVBORw0KGgo="}
    text = {"name": "a.txt", "media_type": "text/plain", "content": "iVBORw0KGgo="}
    cleaned = secrets.payload({"attachments": [image, text]})["attachments"]
    assert cleaned[0] == image
    assert cleaned[1]["content"].startswith("‹secret:")


@pytest.mark.parametrize(
    "text",
    [
        "credentials: 'same-origin'",
        "password = user_input",
        "self.password = new_password",
        "login(password=hash_password, token=auth_token2)",
        "key=get_score2024,",
        '"key": "user_profile_v2"',
        'Key: "uploads/2024/img.png"',
        "issue key: PROJECT-12345",
        "key: linux-node-18-modules",
        "const token = parseToken2(input);",
    ],
)
def test_ordinary_code_is_none(text: str) -> None:
    assert secrets().clean(text) == text


def test_our_own_sources_hold_none() -> None:
    cleaner, found = secrets(), []
    for path in sorted(Path("agentsh").rglob("*.py")):
        text = path.read_text()
        if cleaner.clean(text) != text:
            found.append(path.name)
    assert found == []


def test_half_of_a_secret_is_one_too() -> None:
    value = of(30)
    for kept in range(7, 29):
        cleaner = secrets()
        cleaner.clean(f"API_KEY={value}")
        ahead = cleaner.clean(f"the command is run {value[:kept]}…")
        assert value[:7] not in ahead, kept
        behind = cleaner.clean(f"begun\n[… 3,000 bytes left out …]\n{value[kept - 6 :]} and more")
        assert value[-7:] not in behind, kept
        assert behind.endswith(" and more")


def test_a_weak_value_that_came_back_is_replaced_where_it_stands_alone() -> None:
    cleaner = secrets()
    placeholder = cleaner.clean("DB_PASSWORD=hunter2").partition("=")[2]
    assert cleaner.clean("hunter2 is a word") == "hunter2 is a word"
    assert cleaner.restore(placeholder) == "hunter2"
    assert cleaner.clean("+password: hunter2, hunter22, xhunter2") == f"+password: {placeholder}, hunter22, xhunter2"


def test_a_placeholder_in_a_file_is_a_text_like_any_other() -> None:
    cleaner, example = secrets(), "as in ‹secret:1f0c9a3e›"
    with pytest.raises(UnknownSecret):
        cleaner.restore(example)
    cleaner.literal(example)
    assert cleaner.restore(example) == cleaner.clean(example) == example
    assert secrets(on=False).restore(example) == example


def test_a_pattern_does_not_look_into_placeholders() -> None:
    cleaner = Secrets(key=lambda: b"k", patterns=[r"\b[0-9a-f]{8}\b"])
    cleaned = cleaner.clean("id 0123abcd of it")
    assert cleaner.clean(cleaned) == cleaned
    assert cleaner.restore(cleaned) == "id 0123abcd of it"


def test_what_is_known_is_never_forgotten() -> None:
    cleaner = secrets(known=["swordfish-9x"])
    cleaner.know("another-1-known")
    for n in range(MAX_KNOWN + 5):
        cleaner._placeholder(f"value {n}")
    assert PLACEHOLDER.sub("*", cleaner.clean("swordfish-9x another-1-known")) == "* *"


def test_an_image_is_not_looked_through_and_what_stands_beside_it_is() -> None:
    value = {"media_type": "image/png", "content": SHAPES[0], "name": SHAPES[1]}
    cleaned = secrets().payload(value)
    assert cleaned["content"] == SHAPES[0]
    assert SHAPES[1] not in cleaned["name"]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "see https://example.net/ " + "0a" * n,
        lambda n: "-----BEGIN RSA PRIVATE KEY-----\n" * (n // 16),
        lambda n: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n" * (n // 24),
        lambda n: "key=" * (n // 2),
        lambda n: "A_" * n,
        lambda n: "password " * (n // 4),
        lambda n: "API_KEY=a8f5f167f44f4964e6c998dee827110c\n" * (n // 20),
        lambda n: "…" * n + "API_KEY=a8f5f167f44f4964e6c998dee827110c",
    ],
)
def test_time_grows_with_the_text_and_not_with_its_square(make: Callable[[int], str]) -> None:
    def seconds(n: int) -> float:
        text = make(n)
        began = time.process_time()
        secrets().clean(text)
        return time.process_time() - began

    assert seconds(40_000) < 40 * seconds(4_000) + 0.5  # its square would be a hundred times


def test_a_word_without_end_is_let_go() -> None:
    stream = SecretStream(secrets())
    began = time.process_time()
    shown = "".join(stream.feed("k" * 100) for _ in range(1_000))
    assert len(shown) > 90_000
    assert time.process_time() - began < 20
