"""All that `doctor` looks at, one after the other: what `agentsh doctor` and `/doctor` have in common."""

from collections.abc import Callable, Iterator, Mapping

from agentsh.app.doctor import Line, environment, models, programs, sandboxes
from agentsh.app.doctor_home import look_at
from agentsh.app.doctor_upload import uploads
from agentsh.app.paths import Homes


def checkup(homes: Homes, env: Mapping[str, str], progress: Callable[[int], None] | None = None) -> Iterator[Line]:
    """Yield the findings; some take a moment. progress: is told how many bytes of logs were read."""
    yield from environment(env)
    yield from programs(env)
    yield from sandboxes(homes, env)
    yield from look_at(homes, progress)
    yield from uploads(homes, env)
    yield from models(homes, env)
