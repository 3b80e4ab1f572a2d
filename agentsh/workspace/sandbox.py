"""What holds commands: which kinds of sandboxes work here, and the choice.

Kinds, best first: `bwrap` (bubblewrap: namespaces), `landlock` (Landlock and seccomp through a helper process),
`seatbelt` (sandbox-exec of macOS). docs/sandbox.md says what each of them stops.
"""

from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import Literal

from agentsh.workspace.sandbox_port import Bounds, Found, Sandbox

Kind = Literal["auto", "bwrap", "landlock", "seatbelt", "none"]
KINDS: tuple[Kind, ...] = ("bwrap", "landlock", "seatbelt")


_probing = Lock()


def probe(kind: Kind) -> Found:
    """Try a kind with a real run; remembered for the life of the process. At most 5 s, usually 5 ms.

    Who asks while another thread tries waits for what that finds.
    """
    with _probing:
        return _probed(kind)


@cache
def _probed(kind: Kind) -> Found:
    if kind == "bwrap":
        from agentsh.workspace import sandbox_bwrap

        return sandbox_bwrap.probe()
    if kind == "landlock":
        from agentsh.workspace import sandbox_landlock

        return sandbox_landlock.probe()
    if kind == "seatbelt":
        from agentsh.workspace import sandbox_seatbelt

        return sandbox_seatbelt.probe()
    return Found(False, "no sandbox")


def choose(kind: Kind) -> tuple[Kind, str | None]:
    """Return the kind to use, `none` where none works, and what should be said about it."""
    if kind == "none":
        return "none", None
    wanted = KINDS if kind == "auto" else (kind,)
    reasons = []
    for each in wanted:
        found = probe(each)
        if found.works:
            return each, None
        reasons.append(f"{each}: {found.why}")
    return "none", "no sandbox works here (" + "; ".join(reasons) + ")"


def make(kind: Kind, bounds: Bounds) -> Sandbox | None:
    """Return the sandbox of a kind that `choose` returned; None for `none`."""
    makers: Mapping[Kind, Callable[[Bounds], Sandbox]] = {
        "bwrap": _bwrap,
        "landlock": _landlock,
        "seatbelt": _seatbelt,
    }
    maker = makers.get(kind)
    return maker(bounds) if maker is not None else None


def _bwrap(bounds: Bounds) -> Sandbox:
    from agentsh.workspace.sandbox_bwrap import Bubblewrap

    return Bubblewrap(bounds)


def _landlock(bounds: Bounds) -> Sandbox:
    from agentsh.workspace.sandbox_landlock import Landlock

    return Landlock(bounds)


def _seatbelt(bounds: Bounds) -> Sandbox:
    from agentsh.workspace.sandbox_seatbelt import Seatbelt

    return Seatbelt(bounds)
