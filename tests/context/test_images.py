"""Images in requests: who is shown them, what they cost, and which ones stay."""

import json
from typing import Any

import pytest

from agentsh.context.budget import Scale, decide, fit, prepared
from agentsh.context.images import MAX_IMAGES, image_tokens
from agentsh.context.marks import Marks
from agentsh.context.messages import build, messages_of
from agentsh.context.size import size_of
from agentsh.context.validate import problems
from agentsh.context.view import RULES, View, view_of
from agentsh.events.session import ModelChanged
from agentsh.events.tool import ToolCall, ToolResult, ToolStarted
from agentsh.events.turn import AgentMessage, Attachment, ContextBuilt, ImageDropped, UserMessage
from agentsh.models.chat_body import encode
from agentsh.ports.model import Image, Message, Prompt
from agentsh.testing import server_rules as rules
from tests.context.driver import DOT, Driver

SEEING = {"wire": "chat", "options": {}, "images": True}


def image(name: str = "dot.png", *, width: int = 600, height: int = 400, content: str = DOT) -> Attachment:
    return Attachment(name=name, media_type="image/png", content=content, width=width, height=height)


def session(*, sees: bool = True) -> Driver:
    driver = Driver(3, budget=128_000)
    driver.add(ModelChanged(model="m", request=SEEING if sees else {"wire": "chat", "options": {}}))
    return driver


def said(driver: Driver, text: str, *images: Attachment) -> int:
    return driver.add(UserMessage(text=text, attachments=images)).seq


def read(driver: Driver, *images: Attachment, text: str = "[dot.png]") -> int:
    """A step that reads images; return the seq of its call."""
    message = AgentMessage(text="", reasoning=None, model="m", finish="tool_calls", usage=None, cost_usd=None)
    call = driver.add(
        ToolCall(call=f"c{driver.state.last_seq}", name="look", arguments="{}"), driver.add(message).seq
    )
    start = driver.add(ToolStarted(call="c", effects=("read",), sandbox="none", pid=None, decision="auto"), call.seq)
    result = ToolResult(call="c", status="ok", for_model=text, for_user="", duration_ms=0, images=images)
    driver.add(result, start.seq)
    return call.seq


def sent(driver: Driver, view: View | None = None) -> list[dict[str, Any]]:
    """The messages behind the system message, as a strict server takes them."""
    messages = messages_of(build(driver.state, driver.texts, view or view_of(driver.state)))
    assert problems(messages) == []
    body = json.loads(encode(Prompt("m", messages, ())))
    assert rules.problems(body) == []
    return list(body["messages"][1:])


def shown(driver: Driver) -> int:
    return json.dumps(sent(driver)).count("data:image/png;base64,")


def test_an_image_of_the_users_is_a_part_of_the_message() -> None:
    driver = session()
    said(driver, "look", image())
    text, picture = sent(driver)[0]["content"]
    assert text == {"type": "text", "text": "look\n\n[image: dot.png]"}
    assert picture == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}


def test_an_image_of_a_result_follows_the_results_of_its_step() -> None:
    driver = session()
    said(driver, "look")
    read(driver, image("a.png"))
    said(driver, "and?")
    roles = [m["role"] for m in sent(driver)]
    assert roles == ["user", "assistant", "tool", "user", "user"]
    assert sent(driver)[3]["content"][0]["text"] == "The images of the results above, in their order: [image: a.png]"


def test_a_model_that_takes_none_is_told_their_names() -> None:
    driver = session(sees=False)
    said(driver, "look", image())
    read(driver, image("a.png"))
    user, _, tool = sent(driver)
    assert (
        user["content"] == "look\n\n[image: dot.png, image/png, 600 × 400; not shown: this model is not shown images]"
    )
    assert tool["content"].endswith("[image: a.png, image/png, 600 × 400; not shown: this model is not shown images]")
    driver.add(ModelChanged(model="n", request=SEEING))
    assert shown(driver) == 2, "another model is shown them again"


def test_old_logs_are_as_they_were() -> None:
    driver = session()
    said(driver, "look", image())
    (user,) = sent(driver, View(rules=1))
    assert user["content"] == "look\n\n[dot.png: image/png, not shown to the model]"
    assert RULES >= 2


@pytest.mark.parametrize("content", ["<html>", "iVBORw0KGgo!", "R0lGODlh", ""])
def test_field_i148_what_is_no_image_is_never_sent_as_one(content: str) -> None:
    driver = session()
    said(driver, "look", image(content=content))
    assert shown(driver) == 0
    assert "not shown: it cannot be read" in sent(driver)[0]["content"]


@pytest.mark.parametrize(
    ("width", "height", "model", "tokens"),
    [
        (1024, 1024, "gpt-4o", 765),
        (2048, 4096, "gpt-4o", 1105),
        (1024, 1024, "openai/gpt-5.2", 70 + 4 * 140),
        (512, 512, "gpt-4o-mini-2024-07-18", 2833 + 5667),
        (1024, 1024, "gpt-4.1-mini", 1659),
        (1, 1, "gpt-4o", 255),
        (2048, 2048, "another", 5593),
    ],
)
def test_tokens_are_those_of_the_guide(width: int, height: int, model: str, tokens: int) -> None:
    """The first two and the fifth are worked examples of OpenAI's guide "Images and vision"."""
    assert image_tokens(width, height, model) == tokens


def test_an_image_weighs_its_tiles_and_not_its_base64() -> None:
    driver = session()
    said(driver, "look", image(content=DOT[:-4] + "A" * 40_000 + DOT[-4:]))
    fitted = fit(driver.state, driver.texts, driver.counter, marks=Marks(128_000))
    assert 425 < fitted.tokens < 700
    assert size_of(driver.state).tokens < 700


def test_older_images_go_before_any_text_does() -> None:
    driver = session()
    first = said(driver, "first", image(width=2_048, height=2_048))
    calls = [read(driver, image(width=2_048, height=2_048), text="output " * 200) for _ in range(5)]
    before = sent(driver)
    scale = Scale(driver.state, driver.texts, driver.counter)
    assert scale.total(view_of(driver.state)) > 32_000
    fitted = prepared(scale, decide(scale, Marks(40_000), can_compact=True))
    assert fitted.cut is not None
    assert (fitted.kind, fitted.cut.from_seq, fitted.cut.pruned_before) == ("prune", 0, None)
    assert fitted.cut.images_from == calls[3]
    driver.add(built(fitted.cut), first)
    after = sent(driver)
    assert shown(driver) == 2
    assert [m["role"] for m in after].count("tool") == [m["role"] for m in before].count("tool")
    assert "older images are left out" in after[0]["content"]
    assert after[2]["content"].startswith("output output"), "texts are whole"
    said(driver, "next", image())
    assert fit(driver.state, driver.texts, driver.counter, marks=Marks(40_000)).kind == "keep"


def built(cut: Any) -> ContextBuilt:
    return ContextBuilt(request_sha256="0", bytes=0, estimator="~", tokens=0, budget=0, cut=cut, rules=RULES)


def test_field_i146_twenty_screenshots_stay_within_the_limits_of_one_request() -> None:
    driver = session()
    large = image(content=DOT[:-4] + "A" * 1_999_904 + DOT[-4:], width=100, height=100)
    for n in range(20):
        said(driver, f"screenshot {n}", large)
        fitted = fit(driver.state, driver.texts, driver.counter, marks=Marks(128_000))
        assert problems(fitted.messages) == []
        assert len(driver.body(fitted)) < 13_000_000
        driver.add(built(fitted.cut))
    assert 1 <= len([m for m in fitted.messages if m.images]) <= 6
    assert fitted.messages[-1].images, "the newest is there"


def test_no_more_images_than_providers_take() -> None:
    driver = session()
    for n in range(MAX_IMAGES + 1):
        said(driver, f"{n}", image(width=10, height=10))
    fitted = fit(driver.state, driver.texts, driver.counter, marks=Marks(128_000))
    assert (fitted.kind, sum(len(m.images) for m in fitted.messages)) == ("prune", MAX_IMAGES // 2)
    tight = messages_of(build(driver.state, driver.texts, View()))
    assert problems(tight) == ["there are too many images"]


def test_what_a_provider_refused_is_not_sent_again() -> None:
    driver = session()
    said(driver, "first", image("a.png"))
    at = said(driver, "second", image("b.png"))
    driver.add(ImageDropped(image="b.png", reason="refused", from_seq=at))
    said(driver, "third", image("c.png"))
    assert shown(driver) == 2
    assert "not shown: the provider refused it" in sent(driver)[1]["content"]


def test_the_validator_knows_images() -> None:
    picture = Image("image/png", DOT)
    assert problems([Message("user", "x", images=(picture,))]) == []
    assert problems([Message("user", "x"), Message("assistant", "y", images=(picture,))]) == [
        "message 1 (assistant): has images"
    ]
    odd = Message("user", "x", images=(Image("image/tiff", DOT),))
    assert problems([odd]) == ["message 0 (user): has an image of no kind that is known"]
