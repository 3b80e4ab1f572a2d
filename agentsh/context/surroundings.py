"""What a session started with, and what is no longer so: date, directory, tools, project instructions. Pure.

Requests start with what was recorded at the birth, word for word, for as long as the session lives; what changed
since is told at the start of the next user message. So the start of every request, and a provider's cache of it,
holds.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from agentsh.base.light import dataclass
from agentsh.base.text import head_bytes
from agentsh.context.state import SessionState
from agentsh.events.base import BlobRef, Text
from agentsh.events.session import Change, EnvironmentChanged
from agentsh.ports.texts import Texts, with_gap

MAX_INSTRUCTIONS_BYTES = 32_768
"""Of all files together; the default of codex for its project documents too."""
MAX_NAMED = 50
"""Files that are named at all, where not all of them fit."""

INSTRUCTIONS = """\


Instructions for this work, from files that were read when the session began. What the user says goes before them; \
of two that differ, the one whose file is nearest to the work at hand holds.
{files}"""
ONE_FILE = '\n<instructions file="{name}">\n{text}\n</instructions>\n'


@dataclass(frozen=True, slots=True)
class Instruction:
    """A file such as AGENTS.md. name: relative to the workspace, or with `~`. text: as the model is shown it."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Return the hash of the text, by which a change is seen."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is so right now. date: YYYY-MM-DD. tools: the neutral JSON list. instructions: least specific first."""

    date: str
    directory: str
    tools: str
    instructions: tuple[Instruction, ...] = ()


def capped(files: Sequence[tuple[str, str]]) -> tuple[Instruction, ...]:
    """Return files (name, text) as instructions, cut where all together are above MAX_INSTRUCTIONS_BYTES.

    Then the longest are cut, to one length, so that no file crowds out the short ones of those nearest to the work.
    """
    texts = [(name, text.strip()) for name, text in files[:MAX_NAMED] if text.strip()]
    cap = _fair([_bytes(text) for _, text in texts])
    found = []
    for name, text in texts:
        if (size := _bytes(text)) > cap:
            head = head_bytes(text, cap)
            text = (
                f"{head}\n[… {size - _bytes(head):,} bytes left out: instructions are shown up to "
                f"{MAX_INSTRUCTIONS_BYTES:,} bytes in all; read {name} when you work on what it is about …]"
            )
        found.append(Instruction(name, text))
    return tuple(found)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _fair(sizes: Sequence[int]) -> int:
    """Return the most bytes that each of these may have for all to be within MAX_INSTRUCTIONS_BYTES."""
    room = MAX_INSTRUCTIONS_BYTES
    for n, size in enumerate(ordered := sorted(sizes)):
        if size * (len(ordered) - n) > room:
            return room // (len(ordered) - n)
        room -= size
    return MAX_INSTRUCTIONS_BYTES


def entries(instructions: Iterable[Instruction], *, texts: bool) -> tuple[dict[str, Any], ...]:
    """Return instructions as environment_changed records them. texts: False where only their hashes are wanted."""
    return tuple(
        {"name": i.name, "sha256": i.sha256} | ({"text": i.text} if texts else {}) for i in instructions
    )  # fmt: skip


def recorded(environment: EnvironmentChanged) -> dict[str, Text | None]:
    """Return the recorded instructions: by name their text, None where it is not there. Of any shape of entry."""
    found: dict[str, Text | None] = {}
    for entry in environment.instructions:
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            text = entry.get("text")
            if isinstance(text, Mapping):
                try:
                    text = BlobRef.model_validate(text)
                except ValueError:
                    text = None
            found[entry["name"]] = text if isinstance(text, str | BlobRef) else None
    return found


def system_text(environment: EnvironmentChanged, texts: Texts) -> str:
    """Return the system message: the recorded prompt, and the instructions that were recorded with it."""
    files = [
        ONE_FILE.format(name=name, text=texts.text(text))
        for name, text in recorded(environment).items()
        if text is not None
    ]
    prompt = texts.text(environment.system_prompt)
    return prompt + (INSTRUCTIONS.format(files="".join(files)) if files else "")


def readable(environment: EnvironmentChanged, texts: Texts) -> bool:
    """Tell whether all that requests start with can be read."""
    parts = [environment.system_prompt, environment.tools, *recorded(environment).values()]
    return all(p is not None and (isinstance(p, str) or texts.text(p) != with_gap(p)) for p in parts)


def changes(state: SessionState, texts: Texts, now: Surroundings) -> tuple[Change, ...]:
    """Return what is not as it was last recorded, in words for the model; empty where all is."""
    known, first = state.surroundings, state.environment
    if known is None or first is None:
        return ()
    found = []
    if now.date != (known.date or state.created[:10]):
        found.append(Change(what="date", text=f"The date is {now.date}."))
    if not _is_in(now.directory, known, first, texts):
        found.append(Change(what="directory", text=f"The workspace is at {now.directory} now."))
    if (words := _tools(texts.text(known.tools), now.tools)) is not None:
        found.append(Change(what="tools", text=words))
    return (*found, *_instructions(known, now))


def trim(state: SessionState) -> None:
    """Forget what was told in messages that no request can hold any more, where a later one there told it anew."""
    first = state.talk[0].seq if state.talk else 0
    newest = {c.what: c for c in state.changes if 0 < c.joins < first}
    state.changes = [c for c in state.changes if not 0 < c.joins < first or newest[c.what] is c]


def _is_in(directory: str, known: EnvironmentChanged, first: EnvironmentChanged, texts: Texts) -> bool:
    if known.directory is not None:
        return known.directory == directory
    return directory in texts.text(first.system_prompt)  # of a log that has it nowhere else


def _tools(before: str, now: str) -> str | None:
    old, new = _by_name(before), _by_name(now)
    if list(old.items()) == list(new.items()):
        return None
    told = (
        ("new", [name for name in new if name not in old]),
        ("gone", [name for name in old if name not in new]),
        ("changed", [name for name in new if name in old and new[name] != old[name]]),
    )
    words = "; ".join(f"{what}: {', '.join(names)}" for what, names in told if names)
    return f"The tools you are offered have changed ({words or 'their order'})."


def _by_name(tools: str) -> dict[str, Any]:
    try:
        return {str(tool["name"]): tool for tool in json.loads(tools)}
    except (ValueError, KeyError, TypeError):
        return {}


def _instructions(known: EnvironmentChanged, now: Surroundings) -> Iterable[Change]:
    hashes = {e["name"]: e.get("sha256") for e in known.instructions if isinstance(e, Mapping) and "name" in e}
    for instruction in now.instructions:
        if instruction.name not in hashes:
            words = f"There are instructions in {instruction.name}:"
        elif hashes[instruction.name] != instruction.sha256:
            words = f"The instructions in {instruction.name} have changed; they are now:"
        else:
            continue
        text = words + ONE_FILE.format(name=instruction.name, text=instruction.text).rstrip("\n")
        yield Change(what=f"instructions {instruction.name}", text=text)
    for name in [name for name in hashes if name not in {i.name for i in now.instructions}]:
        yield Change(what=f"instructions {name}", text=f"The instructions in {name} do not hold any more.")
