"""Whose last word it was: an end of the agent right after the model refused is AgentRefused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from realcli_session.phases.setup import did_not_start
from realcli_session.phases.signals import detail_of, last_word
from realcli_session.phases.table import Cause

ENDS = [
    (Cause.COMPLETED, True, Cause.AGENT_REFUSED),
    (Cause.AGENT_FAILED, True, Cause.AGENT_REFUSED),
    (Cause.AGENT_EXIT, True, Cause.AGENT_REFUSED),
    (Cause.COMPLETED, False, Cause.COMPLETED),
    (Cause.PROVIDER_FAILED, True, Cause.PROVIDER_FAILED),
    (Cause.TURN_LIMIT, True, Cause.TURN_LIMIT),
    (Cause.INTERNAL, True, Cause.INTERNAL),
]


@pytest.mark.parametrize(("cause", "refused", "want"), ENDS)
def test_last_word(cause: Cause, refused: bool, want: Cause) -> None:
    attempt: Any = SimpleNamespace(gateway=SimpleNamespace(refused_by_model=refused, cut_by_provider=None))
    assert last_word(attempt, (cause, "why"))[0] is want
    assert last_word(attempt, (cause, "why"))[1].endswith("why")
    assert last_word(SimpleNamespace(gateway=None), (cause, "why")) == (cause, "why")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cause", "want"),
    [
        (Cause.AGENT_FAILED, Cause.PROVIDER_FAILED),  # its program gave up on what the provider did
        (Cause.AGENT_EXIT, Cause.AGENT_EXIT),  # which an agent could do on purpose
        (Cause.COMPLETED, Cause.COMPLETED),
        (Cause.TURN_LIMIT, Cause.TURN_LIMIT),
    ],
)
def test_a_cut_by_the_provider_excuses_a_program_that_gives_up(cause: Cause, want: Cause) -> None:
    gateway = SimpleNamespace(refused_by_model=False, cut_by_provider="the provider cut the answer to turn 3: reset")
    attempt: Any = SimpleNamespace(gateway=gateway)
    found, detail = last_word(attempt, (cause, "API Error"))
    assert found is want
    assert detail.endswith("API Error")
    assert ("cut the answer to turn 3" in detail) is (want is Cause.PROVIDER_FAILED)


@pytest.mark.parametrize(
    ("own", "turns", "want"),
    [(None, 0, Cause.SETUP_TIMEOUT), (None, 1, Cause.AGENT_EXIT), ("a set-up", 0, Cause.AGENT_EXIT)],
)
def test_a_program_that_never_took_a_message_had_no_chance(own: str | None, turns: int, want: Cause) -> None:
    attempt: Any = SimpleNamespace(own=own, gateway=SimpleNamespace(turns=turns))
    assert did_not_start(attempt, "ended with code 3") == (want, "ended with code 3")


def test_a_cost_that_is_not_known_is_no_number() -> None:
    gateway: Any = SimpleNamespace(cost_usd=None)
    assert detail_of(gateway, Cause.BUDGET).startswith("what the trial has cost is unknown")
