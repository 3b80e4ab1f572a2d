"""Requests of the past, built again from log and blobs, and held against the hashes that were recorded of them."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from agentsh.app.catalog import Place
from agentsh.app.stores import blob_store, event_store
from agentsh.app.texts import BlobTexts
from agentsh.app.wiring import WIRES, load
from agentsh.base.errors import AgentshError, UsageProblem
from agentsh.base.light import dataclass
from agentsh.base.text import plural
from agentsh.context.manifest import Manifest, manifest
from agentsh.context.rendered import RenderCache
from agentsh.context.request import Rebuilt, rebuild, tools_of
from agentsh.context.rewinds import REWINDS, Folder, targets
from agentsh.context.state import SessionState
from agentsh.events.codec import decode
from agentsh.events.event import Event
from agentsh.events.turn import ContextBuilt
from agentsh.log.record import Record
from agentsh.ports.model import Endpoint, Model, Prompt
from agentsh.ports.texts import Texts
from agentsh.ports.tokens import ByteEstimate, PieceEstimate, TokenCounter


class Check(NamedTuple):
    """One request, built again. problem: empty where its bytes have the recorded hash."""

    seq: int
    problem: str = ""


class Checks(NamedTuple):
    """Those of a session. problems: of the requests that could not be built again byte for byte."""

    requests: int
    problems: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent. event: its context_built. events: all before it. state: what they fold to.

    exact: whether `body` has the recorded hash; else problem says why not, as far as that can be told.
    """

    event: Event
    built: ContextBuilt
    events: Sequence[Event]
    state: SessionState
    rebuilt: Rebuilt
    body: bytes
    problem: str

    @property
    def exact(self) -> bool:
        """Tell whether these are the bytes that were sent."""
        return not self.problem


def encoded(wire: str, prompt: Prompt) -> bytes:
    """Return the body of a prompt by the wire that the log names. Nothing is sent.

    Raises:
        UsageProblem: this version has no such wire.
    """
    if wire not in WIRES:
        raise UsageProblem(f"the request went over {wire!r}, which this version does not know", hint="update agentsh")
    model: Model = load(WIRES[wire])(Endpoint("http://127.0.0.1", None))
    return model.encode(prompt)


class Contexts:
    """The requests of one session. Reads its log once, without a lease; blocks."""

    def __init__(self, place: Place) -> None:
        """Read the log.

        Raises:
            SessionMissing, SessionReadOnly: as the store says.
        """
        store = event_store(place.home)
        self._session = place.id
        self._records = list(store.read(place.id))
        self._targets = targets(decode(record) for record in self._records if record.type in REWINDS)
        self._damaged = any(not d.harmless and d.kind != "torn" for d in store.damages(place.id))
        self.texts: Texts = BlobTexts(blob_store(place.home))

    def check(self) -> Checks:
        """Build every request again, in one pass, and return which of them differ."""
        found = list(self._checked())
        return Checks(len(found), tuple(check for check in found if check.problem))

    def _checked(self) -> Iterator[Check]:
        folder, cache = Folder(self._targets), RenderCache()
        for record in self._records:
            event = decode(record)
            if isinstance(event.fact, ContextBuilt):
                try:
                    _, _, problem = self._built(folder.state, event.fact, cache)
                except AgentshError as error:
                    problem = error.message
                yield Check(event.seq, problem)
            folder.add(event)

    def at(self, seq: int | None) -> Sent:
        """Return the newest request at or before event `seq`; None: the newest of all.

        Raises:
            UsageProblem: there is none.
            BlobMissing: its list of tools is gone.
        """
        record = self._newest(seq)
        events = [decode(r) for r in self._records if r.seq < record.seq]
        folder = Folder(self._targets)
        for event in events:
            folder.add(event)
        state = folder.state
        event = decode(record)
        if not isinstance(event.fact, ContextBuilt):
            raise UsageProblem(f"event {event.seq} does not read: {getattr(event.fact, 'problem', '')}")
        rebuilt, body, problem = self._built(state, event.fact, None)
        return Sent(event, event.fact, events, state, rebuilt, body, problem)

    def _newest(self, seq: int | None) -> Record:
        found = [r for r in self._records if r.type == "context_built" and (seq is None or r.seq <= seq)]
        if not found:
            upto = "" if seq is None else f" up to event {seq}"
            first = next((r.seq for r in self._records if r.type == "context_built"), None)
            hint = f"the first went out with event {first}" if first else "there is none before the first message"
            raise UsageProblem(f"session {self._session} has sent no request{upto}", hint=hint)
        return found[-1]

    def _built(
        self, state: SessionState, built: ContextBuilt, cache: RenderCache | None
    ) -> tuple[Rebuilt, bytes, str]:
        rebuilt = rebuild(state, built, self.texts, cache)
        body = encoded(rebuilt.wire, rebuilt.prompt)
        return rebuilt, body, self._problem(built, rebuilt, body)

    def _problem(self, built: ContextBuilt, rebuilt: Rebuilt, body: bytes) -> str:
        if sha256(body).hexdigest() == built.request_sha256:
            return ""
        if rebuilt.missing:
            return f"{plural(len(rebuilt.missing), 'blob')} missing now: {rebuilt.missing[0]}"
        if self._damaged:
            return "the log is damaged before it"
        return f"the bytes differ: {len(body):,}, and {built.bytes:,} were sent"


def counter_of(estimator: str) -> TokenCounter:
    """Return a counter for a manifest: the one that was used, where this version has it, else the estimate."""
    return ByteEstimate() if estimator == ByteEstimate.name else PieceEstimate()


def manifest_of(sent: Sent, texts: Texts) -> Manifest:
    """Return what became of each event in a request."""
    environment = sent.state.environment
    return manifest(
        sent.events,
        sent.state,
        sent.rebuilt.view,
        sent.rebuilt.blocks,
        prompt=texts.text(environment.system_prompt) if environment else "",
        tools=tools_of(sent.state, texts),
        counter=counter_of(sent.built.estimator),
        tokens=sent.built.tokens,
    )
