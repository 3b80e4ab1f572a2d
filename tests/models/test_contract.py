"""Every adapter against the contract of its port."""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from agentsh.models.openai_chat import OpenAIChat
from agentsh.models.retry import RetryingModel
from agentsh.models.scripted import Say, ScriptedModel
from agentsh.ports.model import Endpoint, Model
from agentsh.testing.model_contract import ModelContract
from agentsh.testing.server import ScriptedServer, forever, hang, reply


class TestOpenAIChat(ModelContract):
    @pytest.fixture
    def model(self) -> Iterator[Model]:
        with ScriptedServer([forever(reply(["Hel", "lo"], reasoning="hm"))]) as server:
            yield OpenAIChat(Endpoint(server.base_url, None))

    @pytest.fixture
    def hanging(self) -> Iterator[Model]:
        with ScriptedServer([hang("begun")]) as server:
            yield OpenAIChat(Endpoint(server.base_url, None))


class TestRetrying(TestOpenAIChat):
    @pytest.fixture
    def model(self) -> Iterator[Model]:
        with ScriptedServer([forever(reply("Hello"))]) as server:
            yield RetryingModel(OpenAIChat(Endpoint(server.base_url, None)))

    @pytest.fixture
    def hanging(self) -> Iterator[Model]:
        with ScriptedServer([hang("begun")]) as server:
            yield RetryingModel(OpenAIChat(Endpoint(server.base_url, None)))


class TestScripted(ModelContract):
    closing_bytes: ClassVar[int] = 2

    @pytest.fixture
    def model(self) -> Model:
        return ScriptedModel([Say(("a", "b")), Say(("a",))])
