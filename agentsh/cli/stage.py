"""What a command sets up around a session before it is opened."""

from collections.abc import Callable
from dataclasses import dataclass

from agentsh.app.past import Past
from agentsh.app.plan import Screens
from agentsh.engine.turn import Limits


@dataclass(frozen=True, slots=True)
class Stage:
    """What surrounds a session. show_past: shows what earlier processes left; does nothing without a terminal."""

    screens: Screens
    limits: Limits
    show_past: Callable[[Past], None]
