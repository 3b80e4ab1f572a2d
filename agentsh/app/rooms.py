"""How much of a model's window a session may use, by settings and data; refused where it cannot be."""

from agentsh.app.settings import Choice, Settings
from agentsh.base.errors import UsageProblem
from agentsh.context.room import Room
from agentsh.models.windows import shipped


def room_of(settings: Settings, choice: Choice, budget_tokens: int | None = None) -> Room:
    """Return the room for a model. budget_tokens: of the command line.

    Raises:
        UsageProblem: the settings cannot be, told in one line.
    """
    context = settings.context
    room = Room(
        configured=choice.context_window,
        shipped=choice.listed or shipped(choice.model),
        budget_tokens=budget_tokens or context.budget_tokens,
        reserve_tokens=context.reserve_tokens if choice.reserve_tokens is None else choice.reserve_tokens,
        high=context.high_water,
        low=context.low_water,
        item_tokens=context.item_tokens,
    )
    wrong = room.impossible()
    if wrong:
        raise UsageProblem(wrong, hint="see [context] and context_window in agentsh.toml")
    return room
