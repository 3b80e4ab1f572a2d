"""How much of a model's window a session may use: settings, data and what was learned before, refused where impossible."""

from agentsh.app.settings import Choice, Settings
from agentsh.base.errors import UsageProblem
from agentsh.context.room import Room
from agentsh.models.windows import shipped
from agentsh.ports.window import Window


def room_of(settings: Settings, choice: Choice, budget_tokens: int | None = None, said: Window | None = None) -> Room:
    """Return the room for a model. budget_tokens: of the command line. said: by the list of a server just asked.

    Raises:
        UsageProblem: the settings cannot be, told in one line.
    """
    context = settings.context
    room = Room(
        configured=choice.context_window,
        shipped=said or shipped(choice.model),
        budget_tokens=budget_tokens or context.budget_tokens,
        reserve_tokens=context.reserve_tokens if choice.reserve_tokens is None else choice.reserve_tokens,
        high=context.high_water,
        low=context.low_water,
    )
    wrong = room.impossible()
    if wrong:
        raise UsageProblem(wrong, hint="see [context] and context_window in agentsh.toml")
    return room


def check_start(room: Room, start_tokens: int) -> None:
    """Refuse a budget that what every request starts with (system prompt and tools) fills already.

    Raises:
        UsageProblem: it does.
    """
    marks = room.marks()
    if start_tokens >= marks.low_tokens:
        raise UsageProblem(
            f"a budget of {marks.budget_tokens:,} tokens is too small: system prompt and tools take about"
            f" {start_tokens:,}, and the low-water mark is at {marks.low_tokens:,}",
            hint="raise --budget, budget_tokens or context_window",
        )
