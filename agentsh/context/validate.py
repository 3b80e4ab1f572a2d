"""The check before every request: what a provider would refuse is found here first."""

from collections.abc import Sequence

from agentsh.context.images import images_of, is_sound, too_many
from agentsh.context.items import is_json_object, is_name
from agentsh.ports.model import Message


def problems(messages: Sequence[Message]) -> list[str]:
    """Return what is wrong with a conversation, one line each; empty where it is valid.

    Checked: there is a user message; the system message is first and alone; nothing is empty; call ids are
    unique; arguments are JSON objects; results follow their calls, one for each, and nothing comes between; images
    are of kinds that providers take, on user messages, and not too many.
    """
    found: list[str] = ["there are too many images"] if too_many(images_of(messages)) else []
    waiting: list[str] = []
    seen: set[str] = set()
    if not any(m.role == "user" for m in messages):
        found.append("there is no user message")
    for n, message in enumerate(messages):
        at = f"message {n} ({message.role})"
        if message.role == "tool":
            if message.call_id in waiting:
                waiting.remove(message.call_id)
            else:
                found.append(f"{at}: answers no open call")
        elif waiting:
            found.append(f"{at}: comes before the result of {', '.join(waiting)}")
            waiting = []
        if message.role == "system" and n:
            found.append(f"{at}: is not the first")
        if not message.text and not message.calls:
            found.append(f"{at}: is empty")
        if message.images and message.role != "user":
            found.append(f"{at}: has images")
        if not all(is_sound(image.media_type, image.data) for image in message.images):
            found.append(f"{at}: has an image of no kind that is known")
        for call in message.calls:
            if message.role != "assistant":
                found.append(f"{at}: has calls")
            if not call.id or call.id in seen:
                found.append(f"{at}: call id {call.id!r} is empty or used twice")
            if not is_name(call.name):
                found.append(f"{at}: {call.name!r} is no name of a function")
            if not is_json_object(call.arguments):
                found.append(f"{at}: arguments of {call.id} are no JSON object")
            seen.add(call.id)
            waiting.append(call.id)
    if waiting:
        found.append(f"no result for {', '.join(waiting)}")
    return found
