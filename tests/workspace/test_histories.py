"""Rewinds over random histories: files come back byte for byte, and what the user did is never touched."""

from pathlib import Path

import pytest

from tests.workspace.histories import History, State, state_of

CI = 40
SOAK = 500


def alone(root: Path, seed: int) -> None:
    """The session alone: any moment comes back whole, and so does the last one."""
    root.mkdir()
    history = History(root, seed)
    for _ in range(history.dice.randint(3, 14)):
        for _ in range(history.dice.randint(1, 4)):
            history.act()
        history.snap("tool")
    for _ in range(4):
        last = state_of(root)
        at = history.dice.randrange(len(history.steps))
        before = history.steps[-1].seq
        _, conflicts = history.rewind(history.steps[at].seq + history.dice.randint(0, 9))
        assert conflicts == set()
        assert state_of(root) == history.states[at]
        if history.dice.random() < 0.6:  # undo
            history.rewind(before)
            assert state_of(root) == last


def touched(before: State, after: State) -> set[str]:
    """Paths whose kind, mode or content changed; a directory's time says nothing of who changed it."""

    def seen(state: State, path: str) -> object:
        kind, mode, _, data = state.get(path, ("", 0, 0, b""))
        return (kind, mode if kind == "f" else 0, data)

    return {path for path in before.keys() | after.keys() if seen(before, path) != seen(after, path)}


def near(path: str, others: set[str]) -> bool:
    return any(path == o or path.startswith(o + "/") or o.startswith(path + "/") for o in others)


def together(root: Path, seed: int) -> None:
    """A user works in the same directory: no path that they changed is changed by a rewind."""
    root.mkdir()
    history = History(root, seed)
    theirs: list[set[str]] = [set()]
    for _ in range(history.dice.randint(3, 12)):
        last = state_of(root)
        if history.dice.random() < 0.4:
            history.act()
            history.snap("outside")
            changed = touched(last, state_of(root))
        else:
            history.act()
            history.act()
            history.snap("tool")
            changed = set()
        theirs += [changed] * (len(history.steps) - len(theirs))
    at = history.dice.randrange(len(history.steps))
    user = set().union(*theirs[at + 1 :])
    before, last_seq = state_of(root), history.steps[-1].seq
    _, conflicts = history.rewind(history.steps[at].seq)
    after = state_of(root)
    assert not touched(before, after) & user
    assert {path for path in touched(history.states[at], after) if not near(path, user)} == set()
    for path in conflicts:
        assert near(path, user)
    history.rewind(last_seq)
    assert state_of(root) == before


@pytest.mark.parametrize("seed", range(CI))
def test_every_moment_comes_back_byte_for_byte(tmp_path: Path, seed: int) -> None:
    alone(tmp_path / "ws", seed)


@pytest.mark.parametrize("seed", range(CI))
def test_what_the_user_changed_is_never_touched(tmp_path: Path, seed: int) -> None:
    together(tmp_path / "ws", seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1000 + SOAK))
def test_soak(tmp_path: Path, seed: int) -> None:
    alone(tmp_path / "one", seed)
    together(tmp_path / "two", seed)
