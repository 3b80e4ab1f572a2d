"""What decides how a session of this process runs; see `build`."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentsh.app.paths import Home
from agentsh.app.settings import Choice, Settings
from agentsh.base.clock import Clock, SystemClock
from agentsh.base.light import dataclass, field
from agentsh.engine.turn import Limits
from agentsh.ports.approver import Approver
from agentsh.ports.asker import Asker
from agentsh.ports.renderer import Renderer


class Screens(NamedTuple):
    """What watches and who answers. renderers: each sees every fact. approver, asker: None where nobody is there."""

    renderers: Sequence[Renderer]
    approver: Approver | None = None
    asker: Asker | None = None
    on_failure: Callable[[Renderer, Exception], None] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides how a session runs. limits: None takes those of the settings."""

    home: Home
    settings: Settings
    choice: Choice
    screens: Screens
    limits: Limits | None = None
    budget_tokens: int | None = None
    clock: Clock = field(default_factory=SystemClock)
