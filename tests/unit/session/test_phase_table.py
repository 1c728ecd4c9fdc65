"""The table of stages and causes: a row for every cell, and every path ends through the seal with one reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.api.outcomes import BY_REASON, Effect, is_valid
from realcli_session.phases.table import TABLE, Cause, Progress, Stage, advance, transition

# What a stage ends with if nothing else happens.
REGULAR = {Stage.SETUP: Cause.READY, Stage.WORK: Cause.COMPLETED, Stage.QUIESCE: Cause.QUIESCED, Stage.SEAL: Cause.SEALED}


def test_a_row_for_every_cell() -> None:
    assert set(TABLE) == set(Stage)
    for stage, rows in TABLE.items():
        assert set(rows) == set(Cause), stage


def test_reasons_are_those_of_the_outcome_table() -> None:
    for rows in TABLE.values():
        for cell in rows.values():
            assert cell.reason is None or BY_REASON[cell.reason].effect is not Effect.HELD


def test_only_the_seal_leads_to_the_end_and_a_lost_state_is_never_verified_as_complete() -> None:
    for stage, rows in TABLE.items():
        for cause, cell in rows.items():
            assert cell.to is not Stage.ENDED or stage is Stage.SEAL, (stage, cause)
            assert not (cell.state_lost and cell.reason and BY_REASON[cell.reason].effect is Effect.VERIFIED), (stage, cause)


PATHS = {
    "an unbroken run": ([Cause.READY, Cause.COMPLETED, Cause.QUIESCED, Cause.SEALED], "Completed", False),
    "turn limit": ([Cause.READY, Cause.TURN_LIMIT, Cause.AGENT_EXIT, Cause.QUIESCED, Cause.SEALED], "TurnLimit", False),
    "deadline, then a survivor": ([Cause.READY, Cause.DEADLINE, Cause.QUIESCE_REFUSED, Cause.SEALED], "QuiesceRefused", True),
    "wall": ([Cause.READY, Cause.WALL, Cause.QUIESCED, Cause.SEALED], "Deadline", False),
    "the agent kills the runner": ([Cause.READY, Cause.RUNNER_LOST, Cause.SEALED], "RunnerLost", True),
    "the container dies: exit seen first": ([Cause.READY, Cause.AGENT_EXIT, Cause.RUNNER_LOST, Cause.SEALED], "RunnerLost", True),
    "the runner is lost before the agent exists": ([Cause.RUNNER_LOST, Cause.SEALED], "SetupTimeout", True),
    "no runner": ([Cause.SETUP_TIMEOUT, Cause.SEALED], "SetupTimeout", True),
    "an image that cannot start the agent": ([Cause.SETUP_REFUSED, Cause.SEALED], "ConfigurationError", True),
    "provider down": ([Cause.READY, Cause.PROVIDER_FAILED, Cause.QUIESCED, Cause.SEALED], "ProviderUnavailable", False),
    "provider down, then a survivor: stays invalid": (
        [Cause.READY, Cause.PROVIDER_FAILED, Cause.QUIESCE_REFUSED, Cause.SEALED],
        "ProviderUnavailable",
        True,
    ),
    "only this agent's request fails": ([Cause.READY, Cause.AGENT_FAILED, Cause.QUIESCED, Cause.SEALED], "AgentCrashed", False),
    "state too large": ([Cause.READY, Cause.COMPLETED, Cause.STATE_TOO_LARGE, Cause.SEALED], "StateTooLarge", True),
    "a storage outage while working is sat out": (
        [Cause.READY, Cause.STORAGE_ERROR, Cause.COMPLETED, Cause.STORAGE_ERROR, Cause.QUIESCED, Cause.SEALED],
        "Completed",
        False,
    ),
    "storage down at the end": ([Cause.READY, Cause.COMPLETED, Cause.QUIESCED, Cause.STORAGE_ERROR], "StorageUnavailable", True),
    "SIGTERM while working": ([Cause.READY, Cause.SIGTERM, Cause.SEALED], "SessionLost", True),
    "SIGTERM while sealing is too late": (
        [Cause.READY, Cause.COMPLETED, Cause.SIGTERM, Cause.QUIESCED, Cause.SIGTERM, Cause.SEALED],
        "Completed",
        False,
    ),
    "a deadline after the yield": (
        [Cause.READY, Cause.COMPLETED, Cause.DEADLINE, Cause.QUIESCED],
        "Completed",
        False,
    ),
    "the budget": ([Cause.READY, Cause.BUDGET, Cause.AGENT_FAILED, Cause.QUIESCED, Cause.SEALED], "Budget", False),
    "a flood": ([Cause.READY, Cause.FLOODED, Cause.AGENT_EXIT, Cause.QUIESCED, Cause.SEALED], "AgentFloodedOutput", False),
    "no more processes": ([Cause.READY, Cause.PID_LIMIT, Cause.QUIESCED, Cause.SEALED], "AgentPidLimit", False),
    "the model refuses": ([Cause.READY, Cause.AGENT_REFUSED, Cause.QUIESCED, Cause.SEALED], "AgentRefused", False),
    "the user cannot speak": ([Cause.READY, Cause.SIMULATOR_FAILED, Cause.QUIESCED, Cause.SEALED], "SimulatorFailed", False),
    "another model": ([Cause.READY, Cause.MODEL_MISMATCH, Cause.QUIESCED, Cause.SEALED], "ModelMismatch", False),
    "another model in the last answer": (
        [Cause.READY, Cause.COMPLETED, Cause.MODEL_MISMATCH, Cause.QUIESCED, Cause.SEALED],
        "ModelMismatch",
        False,
    ),
    "provider down, then another model: the first invalid end stays": (
        [Cause.READY, Cause.PROVIDER_FAILED, Cause.MODEL_MISMATCH, Cause.QUIESCED, Cause.SEALED],
        "ProviderUnavailable",
        False,
    ),
    "tampered while working": ([Cause.READY, Cause.TAMPERED, Cause.QUIESCED, Cause.SEALED], "Tampered", True),
    "tampered, seen at the end": ([Cause.READY, Cause.COMPLETED, Cause.TAMPERED, Cause.SEALED], "Tampered", True),
    "tampered cannot spoil an invalid end": (
        [Cause.READY, Cause.PROVIDER_FAILED, Cause.TAMPERED, Cause.SEALED],
        "ProviderUnavailable",
        True,
    ),
    "the node's disk is full": ([Cause.READY, Cause.SPOOL_FULL, Cause.INTERNAL, Cause.SEALED], "SessionLost", True),
    "the state has no room": ([Cause.READY, Cause.COMPLETED, Cause.SPOOL_FULL, Cause.SEALED], "SessionLost", True),
    "the agent's flood has filled the disk": ([Cause.READY, Cause.SPOOL_FLOODED, Cause.SEALED], "AgentFloodedOutput", True),
    "the flood leaves no room for the state": (
        [Cause.READY, Cause.FLOODED, Cause.SPOOL_FLOODED, Cause.SEALED],
        "AgentFloodedOutput",
        True,
    ),
    "a flood does not excuse": (
        [Cause.READY, Cause.PROVIDER_FAILED, Cause.SPOOL_FLOODED, Cause.SEALED],
        "ProviderUnavailable",
        True,
    ),
    "not even the reserve is enough": ([Cause.READY, Cause.COMPLETED, Cause.QUIESCED, Cause.SPOOL_FULL], "SessionLost", True),
    "a bug of ours": ([Cause.READY, Cause.COMPLETED, Cause.INTERNAL, Cause.SEALED], "SessionLost", True),
}


@pytest.mark.parametrize("name", PATHS)
def test_path(name: str) -> None:
    causes, reason, lost = PATHS[name]
    progress = Progress()
    for cause in causes:
        progress = advance(progress, cause, cause.value)
    assert (progress.reason, progress.state_lost) == (reason, lost)
    assert causes[-1] is Cause.QUIESCED or progress.stage is Stage.ENDED


@pytest.mark.parametrize(
    ("cause", "limit"),
    [
        (Cause.TURN_LIMIT, "turns"),
        (Cause.DEADLINE, "deadline"),
        (Cause.WALL, "wall"),
        (Cause.BUDGET, "budget"),
        (Cause.FLOODED, "output"),
        (Cause.COMPLETED, None),
    ],
)
def test_the_limit_that_fired_is_named(cause: Cause, limit: str | None) -> None:
    assert advance(Progress(Stage.WORK), cause).limit == limit


def test_a_replaced_reason_takes_its_limit_along() -> None:
    limited = advance(Progress(Stage.WORK), Cause.DEADLINE)
    assert advance(limited, Cause.QUIESCE_REFUSED).limit is None


@given(st.lists(st.sampled_from(Cause), max_size=12))
def test_every_path_ends_in_a_seal_attempt_with_one_reason(causes: list[Cause]) -> None:
    progress = Progress()
    stages = [progress.stage]
    valid: list[bool] = []
    for cause in causes:
        progress = advance(progress, cause)
        stages.append(progress.stage)
        valid += [progress.valid] if progress.reason else []
    while progress.stage is not Stage.ENDED:
        progress = advance(progress, REGULAR[progress.stage])
        stages.append(progress.stage)
    assert Stage.SEAL in stages
    assert progress.reason in BY_REASON
    order = list(Stage)
    assert [order.index(s) for s in stages] == sorted(order.index(s) for s in stages)
    assert valid == sorted(valid, reverse=True), "an invalid end never becomes a valid one"
    if progress.valid and progress.state_lost:
        assert BY_REASON[str(progress.reason)].effect is Effect.AGENT


@given(st.sampled_from(Stage), st.sampled_from(Cause))
def test_staying_changes_nothing(stage: Stage, cause: Cause) -> None:
    before = Progress(stage, reason=None if stage in (Stage.SETUP, Stage.WORK) else "Deadline", limit=None)
    after = advance(before, cause)
    assert (after is before) == (transition(stage, cause).to is None)
    if after.reason is not None:
        assert isinstance(is_valid(after.reason), bool)
