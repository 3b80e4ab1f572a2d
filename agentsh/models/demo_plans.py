"""What the demo model does: its scripts, and finding the next move in them from the messages alone. Pure."""

import keyword
import re
import sys
from collections.abc import Generator, Iterable, Sequence
from typing import Any

from agentsh.base.light import dataclass
from agentsh.context.items import NO_RESULT
from agentsh.context.repairs import DID_NOT_RUN, MAY_HAVE_RUN, WAS_INTERRUPTED

SCRIPTED = "I am agentsh's demo model: a script, not an AI. No model was called."
HELP = """You can ask me to

- create a small project
- replace "old" with "new" in FILE, or edit a file
- run the tests, or run `COMMAND`
- list the files, search for TEXT, read FILE

For real work, set OPENAI_API_KEY or point OPENAI_BASE_URL at a server, and choose a model with --model."""
CONTINUE = re.compile(r"\s*(?:please\s+)?(?:continue|go on|carry on|proceed|resume|retry|try again|again)\W*", re.I)

ToolAsk = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Move:
    """One reply: what is said, and the tools that are asked for together; without any, the turn is over."""

    text: str
    calls: tuple[ToolAsk, ...] = ()


Plan = Generator[Move, list[str], str]
"""A script: yields moves, is sent their results, and returns its last words."""
Steps = Generator[Move, list[str], list[str]]


class Stopped(Exception):
    """The script cannot go on; the message says why, in its last words."""


def next_move(messages: Sequence[dict[str, Any]]) -> Move:
    """Return the next move: the script of the newest task, played up to the results that are there."""
    task, since = _task(messages)
    plan = script(task)
    try:
        move = next(plan)
        for names, results in _steps(since):
            if names != [name for name, _ in move.calls[: len(names)]]:
                return Move(f"{SCRIPTED}\nWhat happened so far is in none of my scripts, so I stop here.\n{HELP}")
            # A crash may have kept the reply and only the first of its calls.
            move = plan.send(results + [DID_NOT_RUN] * (len(move.calls) - len(names)))
    except StopIteration as end:
        return Move(_last_words(end.value))
    except Stopped as stop:
        return Move(_last_words(f"{stop} So I stop here."))
    return move


def script(task: str) -> Plan:
    """Return the script for a task, by its words; the tour where none fits."""
    for pattern, make in SCRIPTS:
        if found := pattern.search(task):
            return make(found)
    return _tour()


def _task(messages: Sequence[dict[str, Any]]) -> tuple[str, Sequence[dict[str, Any]]]:
    """Return the newest task and the messages since; `continue` goes on with the one before it."""
    places = [n for n, message in enumerate(messages) if message.get("role") == "user"]
    for place in reversed(places):
        text = _own_words(messages[place])
        if not CONTINUE.fullmatch(text) or place == places[0]:
            return text, messages[place + 1 :]
    return "", messages[len(messages) :]


def _own_words(message: dict[str, Any]) -> str:
    """Return a user message without attached files and other marked blocks."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    return re.sub(r"<(\w[\w-]*)\b[^>\n]*>.*?</\1>", "", text, flags=re.DOTALL).strip()


def _steps(messages: Iterable[dict[str, Any]]) -> Iterable[tuple[list[str], list[str]]]:
    """Yield (names of calls, their results) of each reply that asked for tools."""
    messages = list(messages)
    results = {m.get("tool_call_id"): str(m.get("content") or "") for m in messages if m.get("role") == "tool"}
    for message in messages:
        if calls := message.get("tool_calls"):
            yield [c["function"]["name"] for c in calls], [results.get(c["id"], NO_RESULT) for c in calls]


def _last_words(text: str) -> str:
    return text if SCRIPTED in text else f"{text}\n{SCRIPTED}"


def do(text: str, *calls: ToolAsk, repeatable: bool = True) -> Steps:
    """Make calls together and return their results.

    A call that did not run is made again; one that may have run is looked into first, and made again only where
    it left nothing. Not repeatable: it is never made again if it may have run.

    Raises:
        Stopped: a call was refused, or may have run and is not repeatable.
    """
    results = yield Move(text, calls)
    again = [n for n, result in enumerate(results) if _fate(result) != "done"]
    for n in again:
        if _fate(results[n]) == "refused":
            raise Stopped(f"`{_about(calls[n])}` was refused: {_first_line(results[n])}.")
    if not again:
        return results
    unknown = [n for n in again if _fate(results[n]) == "unknown"]
    if unknown and not repeatable:
        raise Stopped(
            f"Whether `{_about(calls[unknown[0]])}` ran to its end is not known; look before you repeat it."
        )
    if unknown:
        about = ", ".join(f"`{_about(calls[n])}`" for n in unknown)
        seen = yield Move(
            f"Whether {about} ran is not known, so I look first.", tuple(_look(calls[n]) for n in unknown)
        )
        for n, found in zip(unknown, seen, strict=True):
            if _happened(calls[n], found):
                results[n] = "It had run to its end before."
                again.remove(n)
    if again:
        redone = yield Move("It left nothing, so I do it again.", tuple(calls[n] for n in again))
        for n, result in zip(again, redone, strict=True):
            if _fate(result) != "done":
                raise Stopped(f"`{_about(calls[n])}` did not run again: {_first_line(result)}.")
            results[n] = result
    return results


def _fate(result: str) -> str:
    """Tell from a result whether a call is done, refused, not_run or unknown."""
    if result.startswith(("Denied", "The user said no", "A hook of the user")):
        return "refused"
    if result.startswith((DID_NOT_RUN, WAS_INTERRUPTED)) or "It had no effects." in result[:120]:
        return "not_run"
    interrupted = result.startswith("The user interrupted while this ran")
    return "unknown" if interrupted or result.startswith((MAY_HAVE_RUN, NO_RESULT)) else "done"


def _look(call: ToolAsk) -> ToolAsk:
    """Return the read-only call that tells whether another one ran."""
    name, arguments = call
    return ("read", {"path": arguments["path"]}) if name in ("write", "edit", "read") else ("list", {"path": "."})


def _happened(call: ToolAsk, seen: str) -> bool:
    name, arguments = call
    if name == "write":
        return arguments["content"].strip() in seen
    return name == "edit" and arguments["new"] in seen and arguments["old"] not in seen.replace(arguments["new"], "")


def _about(call: ToolAsk) -> str:
    name, arguments = call
    return f"{name} {next(iter(arguments.values()), '')}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200].rstrip(".")


def _succeeded(call: ToolAsk, result: str) -> None:
    """Raise Stopped where a change was not made: nothing that follows would make sense."""
    if not re.match(r"(?:created|replaced|edited|changed|It had run)\b|.*\bhas this content already\b", result):
        raise Stopped(f"`{_about(call)}` failed: {_first_line(result)}.")


def _project(found: re.Match[str]) -> Plan:
    wanted = re.search(r"\b(?:called|named)\s+[`'\"]?([a-z][a-z0-9_]{0,30})", found.string, re.IGNORECASE)
    base = wanted[1].lower() if wanted else "wordcount"
    if keyword.iskeyword(base) or base in sys.stdlib_module_names:
        base += "_demo"  # Python would import its own
    looked = yield from do(
        f"{SCRIPTED} I create a small Python project with a test. First I look at what is here.",
        ("list", {"path": "."}),
        ("grep", {"pattern": f"\\b{base}\\b", "glob": "*.py"}),
    )
    name = _free_name(base, looked[0])
    code, test = f"{name}/__init__.py", f"test_{name}.py"
    writes: list[ToolAsk] = [
        ("write", {"path": code, "content": CODE}),
        ("write", {"path": test, "content": TEST.format(name=name)}),
        ("write", {"path": f"{name}/README.md", "content": README.format(name=name)}),
    ]
    written = yield from do(f"The name `{name}` is free. I write the package, its test and a README.", *writes)
    for call, result in zip(writes, written, strict=True):
        _succeeded(call, result)
    run = ("shell", {"command": f"python3 -m unittest -q test_{name}", "timeout_s": 60})
    first = yield from do("Now its tests. One will fail: I left a mistake in on purpose.", run)
    if "FAILED" not in first[0] and not _passed(first[0]):
        raise Stopped(f"The tests could not run: {_first_line(first[0])}.")
    yield from do(
        "As planned, two spaces in a row count as a word. I look at the line again.",
        ("read", {"path": code}),
        ("grep", {"pattern": "split", "path": code}),
    )
    edit = ("edit", {"path": code, "old": 'text.split(" ")', "new": "text.split()"})
    edited = yield from do("`split()` without an argument takes any white space. I change that.", edit)
    _succeeded(edit, edited[0])
    second = yield from do("And the tests again.", run)
    if not _passed(second[0]):
        raise Stopped(f"The tests still fail: {_first_line(second[0])}.")
    return (
        f"Done: `{code}` counts words, and both tests of `{test}` pass. The first run failed on purpose; one edit "
        f"mended it.\n{SCRIPTED}"
    )


def _free_name(base: str, listing: str) -> str:
    names = [base, *(f"{base}{n}" for n in range(2, 100))]
    return next((name for name in names if not re.search(rf"\b(?:test_)?{name}\b", listing)), base)


def _passed(result: str) -> bool:
    return result.startswith("exit 0") or "\nOK" in result


def _replace(found: re.Match[str]) -> Plan:
    old, new, path = _unquoted(found["old"]), _unquoted(found["new"]), _unquoted(found["path"])
    yield from do(f"{SCRIPTED} I read `{path}` first.", ("read", {"path": path}))
    edit = ("edit", {"path": path, "old": old, "new": new})
    edited = yield from do("Now the change.", edit)
    _succeeded(edit, edited[0])
    seen = yield from do("And I look at the result.", ("read", {"path": path}))
    return f"`{path}` now has:\n{_excerpt(seen[0])}\n{SCRIPTED}"


def _notes(found: re.Match[str]) -> Plan:
    path, old, new = "demo-notes.txt", "a first line", "an edited line"
    looked = yield from do(
        f'{SCRIPTED} I edit a file of my own; for yours, say: replace "old" with "new" in FILE.',
        ("list", {"path": "."}),
        ("grep", {"pattern": f"{old}|{new}", "glob": path}),
    )
    if path not in looked[0]:
        write = ("write", {"path": path, "content": f"This is {old}.\n"})
        written = yield from do(f"I create `{path}`.", write)
        _succeeded(write, written[0])
    elif new in looked[1]:
        old, new = new, old
    edit = ("edit", {"path": path, "old": old, "new": new})
    edited = yield from do("Now the edit.", edit)
    _succeeded(edit, edited[0])
    seen = yield from do("And I read it back.", ("read", {"path": path}))
    return f"`{path}` now has:\n{_excerpt(seen[0])}\n{SCRIPTED}"


def _command(found: re.Match[str]) -> Plan:
    command = found["command"].strip()
    ran = yield from do(f"{SCRIPTED} I run what you wrote.", ("shell", {"command": command}), repeatable=False)
    return f"`{command}` gave:\n{_excerpt(ran[0])}\n{SCRIPTED}"


def _tests(found: re.Match[str]) -> Plan:
    looked = yield from do(f"{SCRIPTED} I look for tests.", ("list", {"path": "."}), ("glob", {"pattern": "*test*"}))
    runners = {"package.json": "npm test", "Cargo.toml": "cargo test", "go.mod": "go test ./..."}
    command = next((c for file, c in runners.items() if file in looked[0]), "python3 -m unittest -q")
    ran = yield from do(f"I run `{command}`.", ("shell", {"command": command, "timeout_s": 120}))
    how = "The tests pass" if _passed(ran[0]) else "The tests do not pass"
    return f"{how}:\n{_excerpt(ran[0])}\n{SCRIPTED}"


def _search(found: re.Match[str]) -> Plan:
    text = _unquoted(found["text"])
    seen = yield from do(
        f"{SCRIPTED} I search for `{text}`.",
        ("grep", {"pattern": re.escape(text), "ignore_case": True}),
        ("list", {"path": "."}),
    )
    return f"Found:\n{_excerpt(seen[0])}\n{SCRIPTED}"


def _list(found: re.Match[str]) -> Plan:
    seen = yield from do(f"{SCRIPTED} I list the files.", ("list", {"path": "."}), ("glob", {"pattern": "**"}))
    return f"At the top:\n{_excerpt(seen[0])}\nEvery file:\n{_excerpt(seen[1])}\n{SCRIPTED}"


def _read(found: re.Match[str]) -> Plan:
    path = _unquoted(found["path"])
    seen = yield from do(f"{SCRIPTED} I read `{path}`.", ("read", {"path": path}))
    return f"`{path}`:\n{_excerpt(seen[0])}\n{SCRIPTED}"


def _tour() -> Plan:
    seen = yield from do(
        f"{SCRIPTED} I know a few words only; here is a small tour. Two reads at once:",
        ("list", {"path": "."}),
        ("grep", {"pattern": "TODO|FIXME"}),
    )
    return f"Here is:\n{_excerpt(seen[0], 8)}\nOpen ends:\n{_excerpt(seen[1], 5)}\n{HELP}\n\n{SCRIPTED}"


def _excerpt(text: str, lines: int = 12) -> str:
    """The first lines of an output as a fenced block, with the empty lines around it that Markdown wants."""
    found = text.strip().split("\n")
    shown = [line[:160].replace("```", "` ` `") for line in found[:lines]]
    more = [f"… {len(found) - lines} more lines"] if len(found) > lines else []
    return "\n".join(["", "```", *shown, *more, "```", ""])


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`":
        return text[1:-1]
    return text.rstrip(".,;:!?")


_QUOTED = r"\"[^\"]+\"|'[^']+'|`[^`]+`"
_WORD = rf"{_QUOTED}|\S+"
SCRIPTS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), make)
    for pattern, make in (
        (r"\b(?:create|make|build|start|write|generate|set up)\b.*\b(?:project|package|program|app)\b", _project),
        (
            rf"\b(?:replace|change)\s+(?P<old>{_WORD})\s+(?:with|to|by|into)\s+(?P<new>{_WORD})"
            rf"\s+in\s+(?P<path>{_WORD})",
            _replace,
        ),
        (r"\b(?:run|execute)\s+`(?P<command>[^`]+)`", _command),
        (r"\b(?:run|execute|do)\b.*\btests?\b|\b(?:failing|fix)\b.*\btests?\b|^\W*tests?\W*$", _tests),
        (
            rf"\b(?:(?:search|grep|find)(?:\s+for)?|look\s+for)\s+(?P<text>{_QUOTED}|(?!files?\b|all\b)[^\n]+)",
            _search,
        ),
        (r"^\W*(?:ls|list)\b|\b(?:list|show|find|what|which)\b.*\b(?:files|director(?:y|ies)|folder)\b", _list),
        (rf"\b(?:read|open|print|cat)\s+(?:me\s+)?(?:the\s+)?(?:file\s+)?(?P<path>{_WORD})", _read),
        (rf"\b(?:show)\s+(?:me\s+)?(?:the\s+)?(?:file\s+)?(?P<path>{_QUOTED}|\S*[./]\w\S*)", _read),
        (r"\b(?:edit|change|modify|update|append)\b", _notes),
    )
)
"""What is understood, in order: the first that fits."""

CODE = '''"""Counts words."""


def count(text: str) -> int:
    """Return the number of words in `text`."""
    return len(text.split(" "))
'''
TEST = """import unittest

from {name} import count


class TestCount(unittest.TestCase):
    def test_two_words(self) -> None:
        self.assertEqual(count("hello world"), 2)

    def test_more_white_space(self) -> None:
        self.assertEqual(count("  hello   world "), 2)


if __name__ == "__main__":
    unittest.main()
"""
README = """# {name}

Counts words. Written by agentsh's demo model, which is a script.

    python3 -m unittest -q
"""
