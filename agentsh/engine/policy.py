"""May a call run? A pure function of its effects, the mode and what the user said before."""

from collections.abc import Set
from typing import Literal, NamedTuple

from agentsh.events.session import Mode
from agentsh.events.tool import Effect


class Decision(NamedTuple):
    """action: what to do. label: why, as tool_started records it; on a denial, what the model is told."""

    action: Literal["allow", "ask", "deny"]
    label: str


def decide(effects: Set[Effect], *, mode: Mode, sandboxed: bool, granted: bool, preapproved: bool) -> Decision:
    """Return the decision.

    granted: the user allowed this tool for the session. preapproved: the calls come from the scripted demo model.
    In mode `auto` commands run without asking only inside a sandbox; edits stay in the workspace by themselves.
    """
    if effects <= {"read"}:
        return Decision("allow", "read-only")
    if mode == "plan":
        return Decision("deny", "plan mode is read-only")
    if mode == "yolo":
        return Decision("allow", "yolo")
    if preapproved:
        return Decision("allow", "demo")
    if granted:
        return Decision("allow", "session")
    if mode == "auto" and (sandboxed or effects <= {"read", "write"}):
        return Decision("allow", "auto")
    return Decision("ask", "asked")
