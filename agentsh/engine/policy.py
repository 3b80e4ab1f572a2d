"""May a call run? A pure function of what it does, the mode, the rules and what the user said before."""

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING, Literal, NamedTuple

from agentsh.engine.rules import Rule, Rules
from agentsh.events.session import Mode
from agentsh.events.tool import Effect

if TYPE_CHECKING:
    from agentsh.engine.shell.judge import Part

HARMLESS = "harmless"
"""The label of a call that needs no question because of its words alone."""
GUARDED = frozenset({".git", ".agentsh"})
"""Directories whose files decide what programs outside of the sandbox run; a change of them is always asked about."""


_SEARCHING = frozenset({"grep", "egrep", "fgrep", "rg", "diff"})
"""Commands that may read everything below a directory."""


class Decision(NamedTuple):
    """action: what to do. label: why, as tool_started records it; on a denial, what the model is told.

    why: on a question, what of the call needs it, for the user. ruled: a rule of the user wants the question.
    """

    action: Literal["allow", "ask", "deny"]
    label: str
    why: str = ""
    ruled: bool = False


class Request(NamedTuple):
    """A call, and all that decides about it.

    parts: what it does; None where that cannot be told, then `unreadable` says why. sandboxed: commands are held.
    leaving: it asks to run outside of the sandbox. granted: the user said yes to this very call for the session.
    preapproved: the calls come from the scripted demo model. rules: with those that were granted among `allow`.
    guarded: files beside those of git that programs outside of the sandbox run. keys: places, relative to the root,
    that hold keys, where the workspace is a directory that has such.
    """

    effects: Set[Effect]
    mode: Mode
    sandboxed: bool
    rules: Rules
    parts: "Sequence[Part] | None" = None
    unreadable: str = ""
    leaving: bool = False
    granted: bool = False
    preapproved: bool = False
    guarded: Set[str] = frozenset()
    keys: Set[str] = frozenset()


def decide(request: Request) -> Decision:
    """Return the decision: deny, then mode plan, then what was granted, then ask, then allow, then the mode.

    In mode `auto` commands run without asking only inside a sandbox; edits stay in the workspace by themselves.
    """
    parts = request.parts
    denied = _first(request.rules.deny, parts)
    if denied is not None:
        return Decision("deny", f"the rule {denied} forbids it")
    unclear = _unclear(request)
    if unclear is not None and request.mode == "yolo" and unclear.tool == "shell":
        return Decision("deny", f"it cannot be told whether the rule {unclear} forbids it")
    harmless = parts is not None and all(part.problem is None for part in parts) and not request.leaving
    reads = request.effects <= {"read"}
    looks_outside = request.effects == {"net"}  # it changes nothing, and is asked about
    if request.mode == "plan" and not (reads or looks_outside or (harmless and "write" not in request.effects)):
        return Decision("deny", "plan mode is read-only")
    if request.mode == "yolo":
        return Decision("allow", "yolo")
    if request.preapproved:
        return Decision("allow", "demo")
    asked = _first(request.rules.ask, parts)
    guarded = not reads and any(
        _guarded(path, request.guarded) for part in parts or () if part.problem for path in part.paths
    )
    if request.granted and not guarded:
        return Decision("allow", "session")
    if asked is not None:
        return Decision("ask", "asked", f"the rule {asked} asks", ruled=True)
    if unclear is not None:
        return Decision("ask", "asked", f"it cannot be told whether the rule {unclear} forbids it", ruled=True)
    if _reads_keys(request):
        return Decision("ask", "asked", "it reads where keys are kept", ruled=True)
    if reads:
        return Decision("allow", "read-only")
    return _by_mode(request, harmless=harmless, guarded=guarded)


def withheld(rules: Rules, mode: Mode, keys: Set[str] = frozenset()) -> Callable[[str], bool] | None:
    """Return what tells of a file, relative to the root, whether it may not be read unasked; None: all may.

    That is where a rule forbids it or asks, and where it is in a place of `keys` that no rule allows.
    """
    held = [rule for rule in rules.deny + (() if mode == "yolo" else rules.ask) if rule.holds_files]
    places = frozenset() if mode == "yolo" else keys
    allowed = [rule for rule in rules.allow if rule.holds_files]
    if not held and not places:
        return None
    return lambda path: (
        any(rule.holds(path) for rule in held)
        or (_in(path, places) and not any(rule.holds(path) for rule in allowed))
    )


def _reads_keys(request: Request) -> bool:
    """Tell whether a call reads where keys are kept; a sandbox hides these from commands by itself."""
    if not request.keys or (request.sandboxed and "exec" in request.effects and not request.leaving):
        return False
    for part in request.parts or ():
        if _allowed(part, request.rules.allow):
            continue
        if any(_in(path, request.keys) for path in part.paths) or (part.words and part.words[0] in _SEARCHING):
            return True
    return False


def _in(path: str, places: Set[str]) -> bool:
    parts = path.split("/")
    return any("/".join(parts[:depth]) in places for depth in range(1, len(parts) + 1))


def _by_mode(request: Request, *, harmless: bool, guarded: bool) -> Decision:
    if request.leaving:
        return Decision("ask", "asked", "it asks to run outside of the sandbox")
    if harmless:
        return Decision("allow", HARMLESS)
    if guarded and not (request.sandboxed and "exec" in request.effects):
        return Decision("ask", "asked", "it changes files that decide what other programs run")
    left = [part for part in request.parts or () if part.problem and not _allowed(part, request.rules.allow)]
    if request.parts and not left:
        return Decision("allow", "rule")
    in_auto = request.mode == "auto"
    if in_auto and "net" not in request.effects and ("exec" not in request.effects or request.sandboxed):
        return Decision("allow", "auto")
    if request.parts is None:
        return Decision("ask", "asked", request.unreadable)
    if in_auto and all(part.tool == "write" for part in left):
        return Decision("allow", "auto")  # edits of the workspace that are spelled as a redirection
    return Decision("ask", "asked", "; ".join(dict.fromkeys(f"{p.shown}: {p.problem}" for p in left)))


def _allowed(part: "Part", rules: Sequence[Rule]) -> bool:
    return any(rule.matches(part) for rule in rules)


def _first(rules: Sequence[Rule], parts: "Sequence[Part] | None") -> Rule | None:
    return next((rule for rule in rules for part in parts or () if rule.touches(part)), None)


def _unclear(request: Request) -> Rule | None:
    """Return a rule that forbids something, where it cannot be told whether it forbids this."""
    parts = request.parts
    if parts is None:
        return next((rule for rule in request.rules.deny if rule.about is not None), None)
    return next((rule for rule in request.rules.deny for part in parts if rule.uncertain(part)), None)


def _guarded(path: str, files: Set[str]) -> bool:
    if path.startswith("/"):  # it stands beside the relative one; workspaces themselves are in ~/.agentsh
        return ".git" in path.split("/")
    return bool(GUARDED & set(path.split("/"))) or any(f"{file}/".startswith(f"{path}/") for file in files)
