"""All that `doctor` looks at, one after the other: what `agentsh doctor` and `/doctor` have in common."""

from collections.abc import Iterator, Mapping

from agentsh.app.doctor import Line, environment, models, programs, sandboxes
from agentsh.app.doctor_home import look_at
from agentsh.app.doctor_upload import uploads
from agentsh.app.paths import Homes


def checkup(homes: Homes, env: Mapping[str, str]) -> Iterator[Line]:
    """Yield the findings; some take a moment."""
    yield from environment(env)
    yield from programs(env)
    yield from sandboxes(homes, env)
    yield from look_at(homes)
    yield from uploads(homes, env)
    yield from models(homes, env)
