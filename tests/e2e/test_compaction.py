"""Long sessions over a real socket: compacted by themselves, killed in between, resumed, undone; and by hand."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from agentsh.app.paths import Home
from agentsh.app.stores import blob_store, event_store
from agentsh.app.texts import BlobTexts
from agentsh.context.fold import fold
from agentsh.context.request import rebuild
from agentsh.context.state import SessionState
from agentsh.events.codec import decode
from agentsh.events.event import Event
from agentsh.events.turn import ContextBuilt
from agentsh.models.chat_body import encode
from agentsh.testing.server import Request, ScriptedServer, call, error, forever, hang, reply
from tests.e2e.harness import COMMAND, Shell, of_type, stop, wait_for
from tests.repl.pty import Terminal

Serve = Callable[..., ScriptedServer]
SUMMARY = """## Goal
Count to the end.
## Decisions
None yet.
## Files touched
none
## Open work
Go on counting.
## Exact facts
The secret number is 4711."""
CONFIG = "[context]\nbudget_tokens = 7000\n"
LONG = "word " * 300


def configure(shell: Shell, text: str = CONFIG) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "agentsh.toml").write_text(text)


def asks_for_summary(request: Request) -> bool:
    return "about to be replaced by a summary" in str(request.json["messages"][-1]["content"])


class Worker:
    """A model that works in long steps until it has been asked for `until` summaries, or `steps` are done.

    summaries: what it answers to requests for one, the last for ever.
    """

    def __init__(self, *summaries: Any, steps: int = 40, until: int = 99) -> None:
        self.steps = steps
        self.until = until
        self.summaries = list(summaries)
        self.asked = 0

    def __call__(self, request: Request) -> Any:
        if asks_for_summary(request):
            self.asked += 1
            return self.summaries.pop(0) if len(self.summaries) > 1 else self.summaries[0]
        self.steps -= 1
        if self.steps < 0 or self.asked >= self.until:
            return reply("All is done.")
        return reply(f"Step with {self.steps} to go. {LONG}", calls=[call("list", {"path": "."})])


def past(shell: Shell) -> tuple[list[Event], BlobTexts]:
    home = Home(shell.home, trusted=True)
    store = event_store(home)
    return [decode(record) for record in store.read(shell.ids[-1])], BlobTexts(blob_store(home))


def rebuilt(events: list[Event], texts: BlobTexts) -> Iterator[tuple[Event, bytes]]:
    """Every request of a log, built again from what stands before it."""
    for n, event in enumerate(events):
        if isinstance(event.fact, ContextBuilt):
            yield event, encode(rebuild(fold(events[:n]), event.fact, texts).prompt)


def assert_rebuilt(shell: Shell, server: ScriptedServer) -> None:
    bodies = [body for _, body in rebuilt(*past(shell))]
    facts = of_type(shell.events(), "context_built")
    assert [hashlib.sha256(body).hexdigest() for body in bodies] == [fact["request_sha256"] for fact in facts]
    assert set(bodies) >= {request.body for request in server.requests if request.method == "POST"}
    assert all(fact["tokens"] <= fact["budget"] for fact in facts)


def test_a_long_session_compacts_twice_is_killed_in_between_resumed_and_undone(shell: Shell, serve: Serve) -> None:
    worker = Worker(reply(SUMMARY), hang(), reply(SUMMARY), until=3)
    server = serve(forever(worker))
    configure(shell)
    process = shell.start("new", "count to the end", "-p", "--empty", "--mode", "yolo")
    wait_for(lambda: worker.asked == 2, 30)
    assert stop(process)[0] == -9
    events = shell.events()
    assert len(of_type(events, "compaction")) == 1, "no half of the second"
    assert "summary" in of_type(events, "context_built")[-1], "that it was asked is on record"

    done = shell.run("resume", "--last", "go on", "-p", "--mode", "yolo")
    assert (done.code, done.text) == (0, "All is done.\n"), done.err
    told = [line for line in done.err.splitlines() if "compacted" in line]
    compactions = of_type(shell.events(), "compaction")
    assert len(told) == len(compactions) - 1 == 1
    assert "(undo: /compact undo)" in told[0]
    assert [c["made"] for c in compactions] == ["model"] * len(compactions)
    assert all(c["tokens_after"] <= 0.6 * 7000 < 0.8 * 7000 < c["tokens_before"] for c in compactions)
    newest = server.requests[-1].json["messages"]
    assert newest[0]["role"] == "system"
    assert "4711" in newest[1]["content"]
    assert [m["content"] for m in newest[2:] if m["role"] == "user"][-1] == "go on", "the prompt is kept as it was"

    before = {event.seq: event for event in past(shell)[0]}
    newest_seq = max(seq for seq, event in before.items() if event.fact.type == "compaction")
    view = _messages_before(shell, newest_seq)
    env = shell.env(TERM="xterm-256color")
    with Terminal(100, 40, argv=[str(COMMAND), "resume", shell.ids[-1]], cwd=shell.cwd, **env) as terminal:
        terminal.wait(lambda: "· yolo ·" in terminal.page, 20)
        terminal.type("/compact undo\r")
        terminal.wait(lambda: "compaction undone" in terminal.page, 20)
        terminal.type("and now?\r")
        terminal.wait(lambda: terminal.count("All is done.") >= 2, 20)
        terminal.type("/exit\r")
        assert terminal.ended() == 0
        live = [line for line in terminal.lines if "compact" in line and "/" not in line[:1] and "›" not in line]
    sent = server.requests[-1].json["messages"]
    assert sent[: len(view)] == view
    assert sent[-1]["content"] == "and now?"
    shown = [line for line in shell.run("replay", "--last", COLUMNS="100").text.splitlines() if "compact" in line]
    assert [line.strip() for line in shown] == [line.strip() for line in live]
    assert server.problems == []
    assert_rebuilt(shell, server)


def _messages_before(shell: Shell, seq: int) -> list[dict[str, Any]]:
    """What a request would have said just before an event."""
    events, texts = past(shell)
    state: SessionState = fold([e for e in events if e.seq < seq])
    built = next(e.fact for e in reversed(events) if e.seq < seq and isinstance(e.fact, ContextBuilt))
    plain = built.model_copy(update={"summary": None, "cut": None})
    found: list[dict[str, Any]] = json.loads(encode(rebuild(state, plain, texts).prompt))["messages"]
    return found


def test_a_model_that_refuses_is_replaced_by_the_log_and_the_work_goes_on(shell: Shell, serve: Serve) -> None:
    worker = Worker(error(400, "no summaries here"), until=1)
    server = serve(forever(worker))
    configure(shell)
    done = shell.run("new", "count to the end", "-p", "--empty", "--mode", "yolo")
    assert (done.code, done.text) == (0, "All is done.\n"), done.err
    (line,) = [line for line in done.err.splitlines() if "compacted" in line]
    assert "from the log alone" in line
    assert "no summaries here" in line
    (fact,) = of_type(shell.events(), "compaction")
    assert (fact["made"], fact["tries"]) == ("mechanical", 1)
    assert "count to the end" in fact["summary"]
    assert "4711" not in json.dumps(server.requests[-1].json)
    assert_rebuilt(shell, server)


def test_by_hand_in_a_terminal_interrupted_and_then_done(shell: Shell, serve: Serve) -> None:
    worker = Worker(hang(), reply(SUMMARY, delay_s=1.0), steps=4)
    server = serve(forever(worker))
    configure(shell, "[context]\nbudget_tokens = 20000\n")
    assert shell.run("new", "count to the end", "-p", "--empty", "--mode", "yolo").code == 0
    env = shell.env(TERM="xterm-256color")
    with Terminal(100, 40, argv=[str(COMMAND), "resume", shell.ids[-1]], cwd=shell.cwd, **env) as terminal:
        terminal.wait(lambda: "· yolo ·" in terminal.page, 20)
        terminal.type("/compact mind the number\r")
        terminal.wait(lambda: "compacting the context" in terminal.page and worker.asked == 1, 20)
        terminal.type("\x03")
        terminal.wait(lambda: "nothing was changed" in terminal.page, 20)
        assert of_type(shell.events(), "compaction") == []
        terminal.type("/compact mind the number\r")
        terminal.wait(lambda: worker.asked == 2, 20)
        terminal.type("typed meanwhile\r")
        terminal.wait(lambda: "compacted " in terminal.page and terminal.count("All is done.") == 2, 20)
        assert "compacting the context" not in terminal.page
        terminal.type("/exit\r")
        assert terminal.ended() == 0
        assert terminal.restored
    (fact,) = of_type(shell.events(), "compaction")
    assert (fact["by"], fact["instructions"]) == ("user", "mind the number")
    assert "mind the number" in server.requests[-2].json["messages"][-1]["content"]
    last = server.requests[-1].json["messages"]
    assert "4711" in last[1]["content"]
    assert last[-1]["content"] == "typed meanwhile", "it waited, and was sent"
    assert server.problems == []
    assert_rebuilt(shell, server)
