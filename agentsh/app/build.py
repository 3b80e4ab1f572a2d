"""The composition root: settings and names in, a running session out."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentsh import __version__
from agentsh.app.choosing import another
from agentsh.app.grants import ProjectGrants, project_of
from agentsh.app.opening import open_folded
from agentsh.app.outbox import begin_uploads, with_uploads
from agentsh.app.parts import checkpoint_policy, hooks_of, limits_of, packing, project_name, rules_of, step_settings
from agentsh.app.past import Past
from agentsh.app.paths import Home, user_home
from agentsh.app.plan import Plan, Screens
from agentsh.app.rewinding import present, workspace_snapshots
from agentsh.app.secrets import clean_once, learn, secrets_of
from agentsh.app.services import services_of, wants_web
from agentsh.app.settings import Choice, Settings
from agentsh.app.stores import blob_store, event_store
from agentsh.app.surroundings import Looker
from agentsh.app.texts import BlobTexts
from agentsh.app.toolset import known, offered, tool_schemas
from agentsh.app.wiring import WIRES, load
from agentsh.base.clock import Clock
from agentsh.base.errors import AgentshError, BlobMissing, LogError, LogWriteFailed
from agentsh.base.waiting import to_the_end
from agentsh.context.rewinds import settle
from agentsh.context.state import SessionState
from agentsh.context.surroundings import Surroundings
from agentsh.context.system_prompt import system_prompt
from agentsh.engine.aside import Asides
from agentsh.engine.bus import Bus
from agentsh.engine.compactor import Compactor
from agentsh.engine.gate import Gate
from agentsh.engine.journal import Journal
from agentsh.engine.open import Writer, begin, renew_environment, reopen
from agentsh.engine.rewinding import Rewinder
from agentsh.engine.session import Chosen, Parts, Session
from agentsh.engine.step import ModelStep, StepSettings
from agentsh.engine.tool_runner import ToolRunner
from agentsh.engine.turn import Turn
from agentsh.engine.upkeep import Upkeep
from agentsh.engine.user_command import UserCommands
from agentsh.engine.whole import LoggedSession
from agentsh.events.event import NewFact
from agentsh.events.session import EnvironmentChanged, Mode, Note, SessionInit, WorkspaceMoved, WorkspaceOrigin
from agentsh.log.depths import discard_tree
from agentsh.log.lease import LOCK_NAME
from agentsh.log.segment import OPEN_NAME
from agentsh.log.store import BlobStore, OpenLog, Recovery
from agentsh.models.token_counter import ModelCounter
from agentsh.ports.model import Endpoint, Model
from agentsh.ports.workspace import Workspace

if TYPE_CHECKING:
    from agentsh.workspace.provision import Provisioned
    from agentsh.workspace.snapshot_place import Progress

BY = f"agentsh {__version__}"
Leave = Callable[[], Awaitable[None]]
"""Ends what the commands of a session have left, and removes its temporary directory."""


class Running(NamedTuple):
    """A session of this process, and what else a command needs of it. clean: replaces the secrets that it knows."""

    session: Session
    id: str
    home: Home
    workspace: Workspace
    clean: Callable[[str], str]


def make_model(choice: Choice, clock: Clock) -> Model:
    """Return the model of a choice, with retries around it."""
    from agentsh.models.retry import RetryingModel

    endpoint = Endpoint(choice.base_url, choice.api_key, choice.timeout_s)
    model: Model = load(WIRES[choice.wire])(endpoint)
    return RetryingModel(model, clock)


async def new_session(plan: Plan, session: str, provisioned: "Provisioned", *, cwd: Path, mode: Mode) -> Running:
    """Create a session whose workspace was just made for it, and record its birth.

    Where that fails before there is a first event, nothing of it stays: no log, and no workspace that was made.
    """
    journal: Journal | None = None
    leave = NOTHING_YET
    store = event_store(plan.home, plan.settings.log)
    creating = asyncio.create_task(store.create(session, by=BY))
    try:
        created = await to_the_end(creating)  # a cancellation waits: what is being made has to be known
        log = with_uploads(created, plan.home, plan.settings.checkpoint.upload)
        blobs, init = blob_store(plan.home), _birth(session, plan.choice, provisioned, cwd, mode)
        assembled = _Assembly(plan, log, SessionState(), blobs, provisioned.path, init.workspace, cwd=str(cwd))
        journal, leave = assembled.journal, assembled.leave
        with blobs.writing():  # `gc` waits until the event that names them is written
            environment = assembled.environment(init.workspace)
            assembled.check_budget(SessionState(environment=environment))
            await begin(journal, init, environment)
        await assembled.session.announce("session_opened", {"resumed": False})
        begin_uploads(log)
    except BaseException:
        made = None if creating.cancelled() or creating.exception() else creating.result()
        with suppress(OSError):  # the first failure is the one to tell
            await leave()
        with suppress(AgentshError):
            await _take_back(plan.home, session, provisioned, made, journal)
        raise
    return Running(assembled.session, session, plan.home, assembled.workspace, assembled.journal.secrets.clean)


async def _nothing() -> None:
    """Take back what was not made yet."""


NOTHING_YET: Leave = _nothing


async def _take_back(
    home: Home, session: str, provisioned: "Provisioned", log: OpenLog | None, journal: Journal | None
) -> None:
    """Close what a failed birth leaves open, and remove what it made, unless an event tells of it."""
    try:
        if journal is not None:
            with suppress(AgentshError):
                await journal.settled()  # a birth that was cancelled half-way may still be on its way into the log
        if log is None or log.last_seq == 0:
            _discard(home, session, provisioned, has_log=log is not None)
    finally:
        if log is not None:
            await log.close()


def _birth(session: str, choice: Choice, provisioned: "Provisioned", cwd: Path, mode: Mode) -> SessionInit:
    origin = WorkspaceOrigin(kind=provisioned.kind, origin=provisioned.origin, base=provisioned.base)
    more = {} if provisioned.start is None else {"start": provisioned.start}
    if provisioned.kind == "in-place":
        more["path"] = str(provisioned.path)
    return SessionInit(
        id=session,
        title=None,
        cwd=str(cwd),
        project=project_name(cwd),
        model=choice.model,
        mode=mode,
        workspace=origin.model_copy(update=more) if more else origin,
    )


def _prompt(origin: WorkspaceOrigin | None, now: Surroundings) -> str:
    """Return the system prompt, as of now. origin: None where the log has lost it."""
    import platform

    made_of = ""
    if origin is not None:
        made_of = {
            "copy": f" (a copy of {origin.origin})",
            "git": f" (a clone of {origin.origin}, on a branch of its own)",
        }.get(origin.kind, f" ({origin.kind})")
        if origin.start is not None:
            made_of += f"; commands start in {origin.start}, paths of files count from the top"
    return system_prompt(
        workspace=now.directory + made_of,
        system=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        date=now.date,
    )


def _discard(home: Home, session: str, provisioned: "Provisioned", *, has_log: bool) -> None:
    """Take back what a session that never began has made. Called while its lease is held, where it has one."""
    directory = home.sessions / session
    if has_log:
        with suppress(OSError):  # anything else in there is not ours, and keeps the directory
            for name in (OPEN_NAME, LOCK_NAME):
                (directory / name).unlink(missing_ok=True)
            directory.rmdir()
    if provisioned.kind != "in-place" and provisioned.path == home.workspaces / session:
        discard_tree(str(provisioned.path))


async def resume_session(
    home: Home,
    session: str,
    settings: Settings,
    *,
    plan_for: Callable[[SessionState], Awaitable[Plan]],
    show: Callable[[Past], None],
    directory: Path | None = None,
    progress: "Progress | None" = None,
) -> Running:
    """Open a session again.

    plan_for: chooses model and screens once the state is known. show: is given the past before anything new is
    recorded. directory: the workspace from here on, where the old one was moved. progress: is told how far the making
    of a workspace is that is gone.

    Raises:
        SessionHeld, SessionReadOnly, SessionMissing: as the store says.
        LogError: it has no event.
        WorkspaceError: the workspace is gone, and no other was given.
    """
    from agentsh.workspace.strays import kill_session

    store = event_store(home, settings.log)
    opened, folded = await open_folded(store, session)
    state, leave = folded.state, NOTHING_YET
    try:
        await asyncio.to_thread(kill_session, session)  # what a killed agentsh left running must not go on beside us
        if not state.last_seq:
            lost = opened.recovery or opened.log.last_seq
            what = "nothing of it reads" if lost else "it has no entry"
            hint = f"`agentsh repair {session}` begins it anew, with what else is known of it"
            raise LogError(f"session {session} is empty: {what}", hint=hint)
        if state.behind:
            settle(state, await asyncio.to_thread(LoggedSession(store, session).state))
        blobs = blob_store(home)
        made = None if directory else await asyncio.to_thread(present, home, session, state, blobs, progress)
        root, notes = (directory or Path(), []) if made is None else made
        plan = await plan_for(state)
        log = with_uploads(opened.log, home, settings.checkpoint.upload)
        assembled = _Assembly(plan, log, state, blobs, root, state.workspace, cwd=state.cwd)
        leave = assembled.leave
        lowered = plan.budget_tokens or plan.settings.context.budget_tokens
        if lowered is not None or plan.choice.model != state.model:
            assembled.check_budget(state)
        show(Past(store, session))
        moved = str(root) if directory is not None and str(root) != state.workspace_path else None
        with blobs.writing():  # `gc` waits until the event that names what is recorded anew is written
            await _record_opening(assembled, plan, opened.recovery, BlobTexts(blobs), moved_to=moved, notes=notes)
        await Rewinder(assembled.journal, assembled.snapshots, LoggedSession(store, session)).finish()
        await assembled.session.opened(folded)
        await assembled.session.announce("session_opened", {"resumed": True})
        begin_uploads(log, wake=True)
    except BaseException:
        with suppress(OSError):  # the first failure is the one to tell
            await leave()
        with suppress(AgentshError):
            await opened.log.close()
        raise
    return Running(assembled.session, session, home, assembled.workspace, assembled.journal.secrets.clean)


async def _record_opening(
    assembled: "_Assembly",
    plan: Plan,
    recovery: Recovery,
    texts: BlobTexts,
    *,
    moved_to: str | None,
    notes: Sequence[str],
) -> None:
    journal, writer = assembled.journal, Writer(__version__, socket.gethostname(), os.getpid())
    steps: list[Callable[[], Awaitable[object]]] = [
        partial(reopen, journal, recovery, writer),
        partial(renew_environment, journal, texts, partial(assembled.environment, journal.state.workspace)),
        partial(assembled.session.record_model, plan.choice.model, plan.choice.request()),
    ]
    if moved_to is not None:
        moved = WorkspaceMoved(path=moved_to, reason="--dir")
        steps.insert(2, partial(journal.record, moved, durable=True, happened=True))
    if notes:
        told = [NewFact(Note(text=note)) for note in notes]
        steps.insert(1, partial(journal.record_all, told, happened=True))
    for step in steps:
        with suppress(LogWriteFailed):  # a full disk: it is said, and held until there is room, as in a turn
            await step()


def _bus(screens: Screens) -> Bus:
    bus = Bus(screens.on_failure)
    for renderer in screens.renderers:
        bus.subscribe(renderer)
    return bus


def _scripted(state: SessionState) -> bool:
    """Tell whether calls are a script that we ship; in the user's own directory even they are asked about."""
    return (state.request or {}).get("wire") == "demo"


class _Assembly:
    """Puts the parts of one session together."""

    leave: Leave

    def __init__(
        self,
        plan: Plan,
        log: OpenLog,
        state: SessionState,
        blobs: BlobStore,
        root: Path,
        origin: WorkspaceOrigin | None,
        *,
        cwd: str,
    ) -> None:
        from agentsh.app.sandboxes import guarded_files, keys_of, make_workspace

        kind, start = (None, None) if origin is None else (origin.kind, origin.start)
        in_place = kind == "in-place"
        clock, texts, screens = plan.clock, BlobTexts(blobs), plan.screens
        self._choice, self._web, own = plan.choice, wants_web(plan.settings), user_home(os.environ)
        secrets = secrets_of(plan.settings, os.environ, own, plan.choice.api_key)
        clean = partial(clean_once, plan.settings, os.environ, own)
        self._looker = Looker(blobs, texts, root, own, self._schemas, clock, clean)
        workspace = make_workspace(
            root, session=log.session, in_place=in_place, start=start, home=plan.home, settings=plan.settings
        )
        self.workspace: Workspace = workspace
        self.journal = Journal(log, state, _bus(screens), clock, secrets)
        hooks = hooks_of(plan.settings, {"session": log.session, "workspace": str(root), "cwd": cwd})
        gate = Gate(
            self.journal, self.workspace, hooks, screens.approver,
            preapproved=lambda state: not in_place and _scripted(state),
            rules=rules_of(plan.settings), project=ProjectGrants(own, project_of(cwd)),
            guarded=guarded_files(root, plan.settings, in_place=in_place), keys=keys_of(root, plan.home),
        )  # fmt: skip
        around = workspace.taken_over
        self.snapshots = workspace_snapshots(plan.home, log.session, root, state, blobs, kind, around)
        services, jobs = services_of(plan, log.session, self.journal, workspace, texts)
        runner = ToolRunner(
            self.journal, known(web=self._web), workspace, gate, hooks, texts, clock, self.snapshots, services
        )
        model, counter = make_model(plan.choice, clock), ModelCounter()
        how = step_settings(plan.settings, plan.choice, plan.budget_tokens)
        step = self._step = ModelStep(self.journal, model, texts, counter, how, clock)
        compactor = Compactor(self.journal, step, texts, counter)
        turn = Turn(self.journal, step, compactor, runner, plan.limits or limits_of(plan.settings), clock, jobs.quiet)

        def choose(name: str) -> Chosen:
            choice = another(plan.choice, plan.settings, os.environ, name)
            how = step_settings(plan.settings, choice, plan.budget_tokens)
            self.check_budget(state, choice.model, how)
            self._choice = choice  # the next message tells of another way to edit
            learn(secrets, choice.api_key)
            return Chosen(choice.model, choice.request(), make_model(choice, clock), how)

        upkeep = Upkeep(self.journal, log, checkpoint_policy(plan.settings), clock)
        look, self.leave = self._looker.look, workspace.close
        whole = LoggedSession(event_store(plan.home), log.session)
        parts = Parts(
            log, self.journal, turn, step, compactor, gate, model, choose, upkeep, look, self.leave, hooks,
            self.snapshots, whole, packing(root, kind), *self._beside(step, texts, counter, clock), jobs,
        )  # fmt: skip
        self.session = Session(parts)

    def _beside(
        self, step: ModelStep, texts: BlobTexts, counter: ModelCounter, clock: Clock
    ) -> tuple[UserCommands, Asides]:
        return UserCommands(self.journal, self.workspace, clock), Asides(self.journal, step, texts, counter)

    def _schemas(self) -> str:
        """Return the tools that the model of now is offered."""
        return tool_schemas(offered(self._choice.editing, web=self._web))

    def check_budget(self, state: SessionState, model: str = "", how: StepSettings | None = None) -> None:
        """Refuse a budget, or a model, that has no room for what requests of the session start with.

        model, how: of another model than that of now.

        Raises:
            UsageProblem: it has none.
        """
        with suppress(BlobMissing):  # what is gone is recorded anew when the session is open
            self._step.check_budget(state, model, how)

    def environment(self, origin: WorkspaceOrigin | None) -> EnvironmentChanged:
        """Return what requests start with, as of now. origin: None where the log has lost it."""
        return self._looker.begin(lambda now: _prompt(origin, now), self._choice.request())
