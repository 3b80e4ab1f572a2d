"""The port to what users run before and after a tool."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol


class HookVerdict(NamedTuple):
    """`pass`: nothing to say. `deny`: do not run it, message goes to the model. `annotate`: message is added."""

    verdict: Literal["pass", "deny", "annotate"] = "pass"
    message: str | None = None


SessionMoment = Literal["session_opened", "turn_finished", "session_closed"]


class Hook(Protocol):
    """Judges or annotates calls; never rewrites them. Is told of what happens to the session."""

    @property
    def name(self) -> str:
        """The name under which its answers are logged."""
        ...

    async def before_tool(self, tool: str, arguments: Mapping[str, Any]) -> HookVerdict:
        """Called after the arguments were checked and before the policy. A failure counts as `deny`."""
        ...

    async def after_tool(self, tool: str, arguments: Mapping[str, Any], status: str, result: str) -> HookVerdict:
        """Called before the result is recorded; `deny` counts as `annotate`."""
        ...

    async def on_session(self, moment: SessionMoment, facts: Mapping[str, Any]) -> str | None:
        """Called after it happened, when nothing can be refused; return what is to be noted in the log, or None."""
        ...
