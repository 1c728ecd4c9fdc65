"""Whose last word it was: an end of the agent right after the model refused is AgentRefused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from realcli_session.phases.signals import last_word
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
    attempt: Any = SimpleNamespace(gateway=SimpleNamespace(refused_by_model=refused))
    assert last_word(attempt, (cause, "why"))[0] is want
    assert last_word(attempt, (cause, "why"))[1].endswith("why")
    assert last_word(SimpleNamespace(gateway=None), (cause, "why")) == (cause, "why")  # type: ignore[arg-type]
