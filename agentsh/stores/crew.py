"""Work for several processes, this one among them: whoever waits for a result works as well until it is there.

An executor's parent only waits, and hands on each job with two threads that want the interpreter; here it does its
share, and starts one process fewer. Jobs are functions of a module with plain arguments that change nothing, so that
one whose process died is simply done again.
"""

import signal
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_T = TypeVar("_T")

_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
IN_HAND = 2
"""Jobs that another process has: one in work, and one more so that it need not wait for us."""


class Promise(Generic[_T]):
    """What a job will return."""

    def __init__(self, hands: "Hands", job: Callable[..., _T], arguments: tuple[Any, ...]) -> None:
        self.job = job
        self.arguments = arguments
        self.done = False
        self.made: list[_T] = []
        self.error: Exception | None = None
        self._hands = hands

    def result(self) -> _T:
        """Work until it is done, and return what it made, or raise what it raised."""
        while not self.done:
            self._hands.step()
        if self.error is not None:
            raise self.error
        return self.made[0]

    def run(self) -> None:
        """Do it here."""
        self.keep(*_outcome(self.job, self.arguments))

    def keep(self, made: list[_T], error: Exception | None) -> None:
        """Take what came of it."""
        self.made, self.error, self.done = made, error, True


class Hands(Protocol):
    """Takes jobs. A context manager."""

    def submit(self, job: Callable[..., _T], *arguments: Any) -> Promise[_T]:
        """Have a job done some time, in the order of the calls as far as that goes."""
        ...

    def step(self) -> None:
        """Do something for those that were submitted."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Here:
    """Does at once, in this process, what is submitted."""

    def submit(self, job: Callable[..., _T], *arguments: Any) -> Promise[_T]:
        """Do it."""
        promise = Promise(self, job, arguments)
        promise.run()
        return promise

    def step(self) -> None:
        """Nothing is left to do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class _Other:
    """Another process. in_hand: what it was given, in the order in which it answers."""

    def __init__(self, line: "Connection[Any, Any]", process: "BaseProcess") -> None:
        self.line = line
        self.process = process
        self.in_hand: deque[Promise[Any]] = deque()


class Crew:
    """This process and `others` more. On leaving it, they are gone; what nobody asked for any more is given up."""

    def __init__(self, others: int) -> None:
        self._todo: deque[Promise[Any]] = deque()
        self._others: list[_Other] = []
        try:
            for _ in range(others):
                self._start()
        except OSError:  # no more processes, or open files: what there is does it, and leaves some for the work
            for other in self._others[len(self._others) // 2 :]:
                self._lose(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for other in self._others:
            other.line.close()
        for other in self._others:
            if other.in_hand:
                other.process.terminate()
            other.process.join()

    def submit(self, job: Callable[..., _T], *arguments: Any) -> Promise[_T]:
        """Have a job done some time; whoever asks for its result may have to do it."""
        promise = Promise(self, job, arguments)
        self._todo.append(promise)
        self._collect(0.0)
        return promise

    def step(self) -> None:
        """Take what others have done, give them more, and do a job; where none is left, wait for theirs."""
        self._collect(0.0)
        if self._todo:
            self._todo.popleft().run()
        else:
            self._collect(None)

    def _start(self) -> None:
        import multiprocessing
        import sys
        from multiprocessing.connection import Pipe

        # A fork has everything loaded; elsewhere it is not safe (macOS) or not there.
        forks = sys.platform == "linux"
        ours, theirs = Pipe()
        # What a fork inherits of ours would keep the others' ends open when we are gone.
        inherited = [ours, *(other.line for other in self._others)] if forks else []
        context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
        process = context.Process(target=_serve, args=(theirs, inherited), daemon=True)
        # Until it has handlers of its own it has ours, which would tell of a Ctrl-C in its name.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS) if forks else None
        try:
            process.start()
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            if before is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._others.append(_Other(ours, process))

    def _collect(self, timeout_s: float | None) -> None:
        """Take what is there, or (None) wait for something; and see that all have enough in hand."""
        busy = {other.line: other for other in self._others if other.in_hand}
        if busy:
            from multiprocessing.connection import wait

            for line in wait(list(busy), timeout_s):
                self._take(busy[line])  # type: ignore[index]  # of typeshed: `wait` returns what it was given
        for other in tuple(self._others):
            while self._todo and len(other.in_hand) < IN_HAND and other in self._others:
                self._give(other)

    def _take(self, other: _Other) -> None:
        try:
            made, error = other.line.recv()
        except (EOFError, OSError):
            self._lose(other)
        else:
            other.in_hand.popleft().keep(made, error)

    def _give(self, other: _Other) -> None:
        promise = self._todo.popleft()
        other.in_hand.append(promise)
        try:
            other.line.send((promise.job, promise.arguments))
        except OSError:
            self._lose(other)

    def _lose(self, other: _Other) -> None:
        """Take note that a process is gone: its jobs are to be done by somebody else."""
        self._others.remove(other)
        self._todo.extendleft(reversed(other.in_hand))
        other.line.close()
        other.process.join()


def crew(jobs: int) -> Hands:
    """Return what works with so many processes, this one among them."""
    return Here() if jobs <= 1 else Crew(jobs - 1)


def _serve(line: "Connection[Any, Any]", inherited: "list[Connection[Any, Any]]") -> None:
    """Do jobs until nobody asks any more; a Ctrl-C is for the process that asks, and ends this one by SIGTERM."""
    import gc

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _SIGNALS - {signal.SIGINT}:
        signal.signal(number, signal.SIG_DFL)
    if inherited:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    gc.freeze()  # to look at what was inherited would copy it
    for other in inherited:
        other.close()
    with suppress(EOFError, OSError):
        while True:
            line.send(_outcome(*line.recv()))


def _outcome(job: Callable[..., _T], arguments: tuple[Any, ...]) -> tuple[list[_T], Exception | None]:
    try:
        return [job(*arguments)], None
    except Exception as error:  # noqa: BLE001 - raised where the result is asked for
        return [], error
