"""/rewind: the turns with what each did to files, and back to before one of them."""

from collections.abc import Callable, Sequence

from agentsh.base.errors import UsageProblem
from agentsh.base.text import one_line, plural
from agentsh.engine.rewinding import Moment, Outcome, What
from agentsh.repl.commands import SlashContext, SlashOutcome, as_message
from agentsh.repl.picker import Item, Menu

MAX_ROWS = 15
PROMPT_CHARS = 60
MAX_NAMED = 10
WORDS: dict[str, What] = {"": "both", "both": "both", "files": "files", "talk": "conversation"}
WORDS["conversation"] = "conversation"
PARTS = (
    Item("both", "both", ("the talk and the files",)),
    Item("talk", "the talk alone", ("files stay as they are",)),
    Item("files", "the files alone", ("the talk goes on",)),
)


async def run(context: SlashContext, argument: str) -> SlashOutcome:
    """Without a number, choose a turn; go back to before it, and give its prompt to the input."""
    moments = await context.session.moments()
    if not moments:
        return SlashOutcome(["  there is no turn to go back to"])
    number, _, word = argument.partition(" ")
    if not number:
        if context.io.pick is None:
            return SlashOutcome(_list(context, moments))
        chosen = await _chosen(context, moments)
        return SlashOutcome() if chosen is None else await run(context, chosen)
    moment = next((m for m in moments if str(m.number) == number), None)
    what = WORDS.get(word.strip())
    if moment is None and number.isdecimal():
        first, last = moments[0].number, moments[-1].number
        there = f"there is only turn {last}" if first == last else f"the turns are {first} to {last}"
        raise UsageProblem(f"/rewind {one_line(argument, 60)}: there is no such turn; {there}")
    if moment is None or what is None:
        raise UsageProblem(f"/rewind {one_line(argument, 60)}: name a turn, then `files` or `talk` where not both")
    outcome = await context.session.rewind(moment.to_seq, what)
    draft = as_message(context.io.text(moment.prompt)) if what != "files" else ""
    return SlashOutcome(told(outcome), draft=draft)


async def _chosen(context: SlashContext, moments: list[Moment]) -> str | None:
    """Return what the user chose of the turns, and of what is to go back, as it could have been typed."""
    assert context.io.pick is not None
    items = [
        Item(
            str(m.number), one_line(context.io.text(m.prompt), 300) or "(empty)", (str(m.changed), f"turn {m.number}")
        )
        for m in moments
    ]
    ends = [m.to_seq for m in moments[1:]] + [context.session.state.last_seq]
    spans = {str(m.number): (m.to_seq, end) for m, end in zip(moments, ends, strict=True)}
    differ: list[Callable[[int, int], Sequence[str]]] = []

    def preview(key: str) -> Sequence[str]:
        if not differ:
            differ.append(context.backend.between())
        return differ[0](*spans[key])

    number = await context.io.pick(Menu("Back to before which turn?", items, items[-1].key, preview))
    if number is None:
        return None
    what = await context.io.pick(Menu(f"What goes back to before turn {number}?", PARTS))
    return None if what is None else f"{number} {what}"


def _list(context: SlashContext, moments: list[Moment]) -> list[str]:
    rows = []
    for moment in moments[-MAX_ROWS:]:
        prompt = one_line(context.io.text(moment.prompt), PROMPT_CHARS)
        rows.append(f"  {moment.number:>3}  {prompt} · {moment.changed}")
    if len(moments) > MAX_ROWS:
        rows.insert(0, f"  … {plural(len(moments) - MAX_ROWS, 'earlier turn')}")
    return [*rows, "  go back to before a turn: /rewind N · files only: /rewind N files · talk only: /rewind N talk"]


def told(outcome: Outcome) -> list[str]:
    """Return what a rewind did to files, and what it could not."""
    winding = outcome.winding
    rows = ["  /redo undoes this"]
    if winding is None:
        return rows
    for paths, why in (
        (winding.conflicts, "left alone, changed by somebody else too"),
        (winding.lost, "left alone, its old content was too large to keep"),
        (winding.left_out, "not looked into"),
    ):
        rows += [f"  {why}: {one_line(path, 200)}" for path in paths[:MAX_NAMED]]
        if len(paths) > MAX_NAMED:
            rows.append(f"  … and {len(paths) - MAX_NAMED:,} more")
    return rows
