"""Recorded runs of the real agent programs: their simulated user kept to the script, and what is done to their ledgers is found.

How the runs were made: tests/support/record_ledgers.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from realcli.audit.model import SimCheck
from realcli.audit.program import audit
from realcli.benchmark.catalogue import load_catalogue
from realcli.checks.instance import instances_of
from realcli.ledger.events import Data, Plant, ProbeDelivered, SliceReleased, UserMessage
from realcli.trajectory import Trajectory
from tests.support.recorded import AGENTS, BEHAVIOURS, Blobs, oracle, recorded, script


def audited(agent: str, behaviour: str, trajectory: Trajectory) -> list[SimCheck]:
    catalogue = load_catalogue()
    blobs = Blobs(recorded(agent, behaviour))
    return audit(trajectory, script(), oracle(), catalogue, instances_of(script(), catalogue), blobs)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_recorded_run_is_clean(agent: str, behaviour: str) -> None:
    checks = audited(agent, behaviour, recorded(agent, behaviour).trajectory)
    assert [one.what for check in checks for one in check.deviations] == []
    assert [check.verdict for check in checks] == ["1"] * 7


@pytest.mark.parametrize("kind", [UserMessage, SliceReleased, ProbeDelivered, Plant])
@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_turned_in_its_ledger_is_found(agent: str, kind: type) -> None:
    """Every message with another word, every release, delivery and plant with another name, one at a time."""
    trajectory = recorded(agent, "careful").trajectory
    turned = 0
    for item in trajectory.items:
        data: Data
        match item.data:
            case UserMessage() if kind is UserMessage:
                data = item.data.model_copy(update={"text": str(item.data.text).replace(" the ", " that ", 1)})
            case SliceReleased() if kind is SliceReleased and item.data.how != "opener":
                data = item.data.model_copy(update={"slice": "another"})
            case ProbeDelivered() if kind is ProbeDelivered:
                data = item.data.model_copy(update={"message_id": "m0"})
            case Plant(how="dynamic") if kind is Plant:
                data = item.data.model_copy(update={"path": "/app/another"})
            case _:
                continue
        if data == item.data:
            continue
        turned += 1
        other = Trajectory(tuple(replace(one, data=data) if one is item else one for one in trajectory.items))
        assert "0" in [check.verdict for check in audited(agent, "careful", other)], f"event {item.seq}"
    assert turned or kind is Plant
