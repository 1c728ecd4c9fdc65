"""Exchanges, windows and leniency of trajectories."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.ledger.events import ZERO_HASH, Event
from realcli.trajectory import Trajectory, TrajectoryError


def events(*rows: tuple[str, int, dict[str, Any]]) -> list[Event]:
    return [
        Event(seq=n, prev=ZERO_HASH, t="2026-01-01T00:00:00.000Z", mono=0.0,
              actor="agent" if kind in ("agent_message", "yield") else "session", kind=kind, turn=0, exchange=exchange, data=data)
        for n, (kind, exchange, data) in enumerate(rows, start=1)
    ]  # fmt: skip


USER = {"id": "m", "text": "hi", "sourceIds": ["opener"]}
DELIVERED = {"probe": "p", "scenario": "s", "messageId": "m"}
ROWS = [
    ("phase", 0, {"phase": "work"}),
    ("user_message", 1, USER),
    ("agent_message", 1, {"text": "yes"}),
    ("something_new", 1, {"of": "a later version"}),
    ("yield", 1, {"how": "yielded"}),
    ("user_message", 2, USER),
    ("probe_delivered", 2, DELIVERED),
    ("agent_message", 2, {"text": "done"}),
    ("yield", 2, {"how": "yielded"}),
    ("user_message", 3, USER),
    ("agent_message", 3, {"text": "more"}),
    ("episode_end", 3, {"reason": "Deadline"}),
]


def test_exchanges() -> None:
    got = Trajectory.from_events(events(*ROWS)).exchanges
    assert [(e.number, [i.seq for i in e.messages], [i.seq for i in e.items], e.closed_by and e.closed_by.seq) for e in got] == [
        (1, [2], [2, 3, 4, 5], 5), (2, [6], [6, 7, 8, 9], 9), (3, [10], [10, 11, 12], None),
    ]  # fmt: skip


def test_windows() -> None:
    got = Trajectory.from_events(events(*ROWS))
    anchor = got.deliveries("p")[0][0].seq
    response, post = got.response_after(anchor), got.post(anchor)
    assert (response.first, response.last, response.complete, [i.seq for i in response.items]) == (8, 9, True, [8, 9])
    assert (post.first, post.last, post.complete) == (8, 12, False)
    assert [i.seq for i in got.run().items] == list(range(2, 13))
    late = got.response_after(10)
    assert (late.first, late.last, late.complete, late.has_agent_event()) == (11, 12, False, True)
    assert not got.response_after(11).has_agent_event()
    assert got.response_after(12).items == ()


def test_unknown_kinds_are_kept() -> None:
    item = Trajectory.from_events(events(*ROWS)).items[3]
    assert (item.event.kind, item.data) == ("something_new", None)


def test_a_ledger_with_a_gap_is_refused() -> None:
    rows = events(*ROWS)
    with pytest.raises(TrajectoryError, match=r"event 3 is missing: found seq 4 \(something_new\)"):
        Trajectory.from_events(rows[:2] + rows[3:])


def test_data_that_does_not_fit_its_kind_is_refused() -> None:
    with pytest.raises(TrajectoryError, match=r"event 1 \(yield\) does not hold what its kind needs"):
        Trajectory.from_events(events(("yield", 1, {"how": "perhaps"})))


def test_how_it_ended() -> None:
    got = Trajectory.from_events(events(*ROWS))
    assert got.end is not None
    assert (got.end.reason, got.claimed, got.opened) == ("Deadline", False, None)
    assert Trajectory.from_events(events(*ROWS[:3])).end is None
