"""The tool that asks the user something."""

from typing import Annotated

from agentsh.base.errors import ToolFailed
from agentsh.base.text import clean, one_line
from agentsh.ports.asker import UserQuestion
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool

MAX_CHOICES = 9
MAX_QUESTION_CHARS = 2_000
MAX_CHOICE_CHARS = 200
MAX_ANSWER_CHARS = 10_000
NOBODY = "Nobody is here to answer. Decide by yourself, and say in your answer what you assumed."
NO_ANSWER = "The user did not want to answer. Decide by yourself, or stop and say what you need to know."


@tool("ask_user", effects={"read"}, subject="question")
async def ask_user(
    ctx: ToolContext,
    question: Annotated[str, Field(description="what only the user can know or decide")],
    choices: Annotated[list[str] | None, Field(description="likely answers, the best first; at most 9")] = None,
) -> ToolOutcome:
    """Ask the user and wait for the answer: one of up to 9 choices, or free text. Only where you cannot decide it."""
    text = clean(question).strip()[:MAX_QUESTION_CHARS]
    offered = tuple(choice for each in choices or () if (choice := one_line(each, MAX_CHOICE_CHARS)))
    if not text:
        raise ToolFailed("ask_user: there is no question")
    if len(offered) > MAX_CHOICES:
        raise ToolFailed(f"ask_user: at most {MAX_CHOICES} choices, not {len(offered)}")
    if ctx.services.asker is None:
        return ToolOutcome(NOBODY, f"{one_line(text, 200)} · nobody is here")
    answer = await ctx.services.asker.ask_user(UserQuestion(text, offered))
    said = clean(answer or "").strip()[:MAX_ANSWER_CHARS]
    if not said:
        return ToolOutcome(NO_ANSWER, f"{one_line(text, 200)} · no answer")
    return ToolOutcome(f"The user answers: {said}", f"{one_line(text, 200)}\n{said}")


TOOL = ask_user
