"""The tool that keeps the todo list: whole each time, as a fact, so that it outlives compactions and restarts."""

from typing import Annotated, Literal, TypedDict

from agentsh.base.errors import ToolFailed
from agentsh.base.text import one_line, plural
from agentsh.events.turn import TodoChanged
from agentsh.ports.tool import ToolContext, ToolOutcome
from agentsh.tools.schema import Field, tool

MAX_ITEMS = 50
MAX_ITEM_CHARS = 200


class Item(TypedDict):
    """One thing to do."""

    text: str
    status: Literal["pending", "in_progress", "done"]


@tool("todo", effects={"read"})
def todo(
    ctx: ToolContext, items: Annotated[list[Item], Field(description="the whole list; replaces the one before")]
) -> ToolOutcome:
    """Keep a todo list for work of three or more steps; the user sees it. At most 50 items, one in progress."""
    if len(items) > MAX_ITEMS:
        raise ToolFailed(f"todo: at most {MAX_ITEMS} items, not {len(items)}")
    kept = [{"text": one_line(item["text"], MAX_ITEM_CHARS), "status": item["status"]} for item in items]
    if any(not item["text"] for item in kept):
        raise ToolFailed("todo: an item without text")
    done = sum(item["status"] == "done" for item in kept)
    said = f"{plural(len(kept), 'item')}, {done} done" if kept else "empty"
    return ToolOutcome(f"The todo list is kept: {said}.", f"todo · {said}", facts=(TodoChanged(items=tuple(kept)),))


TOOL = todo
