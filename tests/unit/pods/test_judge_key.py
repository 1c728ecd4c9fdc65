"""Which sweeps give the judge's key away, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.api.judge import Judge
from realcli_operator.pods.parts import judge_key_env


@pytest.mark.parametrize("modes", [["EXEC"], ["COLLAB"], ["EXEC", "COLLAB"]])
def test_a_judge_s_model_has_its_key_in_every_mode(make: Any, modes: list[str]) -> None:
    spec = make.own().spec.model_copy(update={"modes": modes})
    reference = {"secretKeyRef": {"name": "judge", "key": "key"}}
    assert judge_key_env(spec) == [{"name": "REALCLI_KEY_JUDGE", "valueFrom": reference}]
    assert judge_key_env(spec.model_copy(update={"judge": Judge()})) == []
