"""The table of a manifest stays short, whatever the length of the session, and loses nothing."""

from agentsh.context.manifest import Manifest, Row, groups


def turns(count: int, *, fate: str = "kept", why: str = "", first: int = 10) -> list[Row]:
    rows = []
    for n in range(count):
        turn = first + n * 10
        rows += [Row(turn + k, "agent_message", fate, 5, why, turn) for k in range(4)]  # type: ignore[arg-type]
        rows.append(Row(turn + 4, "turn_finished", "not for the model", turn=turn))
    return rows


def manifest(rows: list[Row]) -> Manifest:
    return Manifest(tuple(rows), {row.turn: f"turn {row.turn}" for row in rows}, {})


def test_a_turn_is_a_line() -> None:
    (one, two) = groups(manifest(turns(2)))
    assert (one.first, one.last, one.turns, one.tokens, one.says, one.title) == (10, 14, 1, 20, "kept", "turn 10")
    assert two.first == 20


def test_ten_thousand_events_are_fifty_lines() -> None:
    found = manifest(turns(2_000))
    lines = groups(found)
    assert len(lines) <= 50
    assert sum(line.tokens for line in lines) == found.tokens
    assert sum(line.turns for line in lines) == 2_000
    assert (lines[0].first, lines[-1].last) == (10, 20_004)


def test_what_was_cut_and_what_was_summarised_are_a_line_each() -> None:
    rows = turns(300, fate="left out", why="cut by event 9000")
    rows += turns(300, fate="summarised", why="by event 9001", first=4_000)
    rows += turns(3, first=8_000)
    lines = groups(manifest(rows))
    assert [line.says for line in lines] == [
        "left out: cut by event 9000", "summarised by event 9001", "kept", "kept", "kept",
    ]  # fmt: skip
    assert [line.turns for line in lines] == [300, 300, 1, 1, 1]


def test_a_turn_of_many_fates_says_how_many() -> None:
    rows = turns(1)
    rows[1] = Row(11, "tool_result", "pruned", 2, "the whole is in event 11", 10)
    rows[2] = Row(12, "tool_result", "pruned", 2, "the whole is in event 12", 10)
    (line,) = groups(manifest(rows))
    assert line.says == "kept; 2 pruned"
