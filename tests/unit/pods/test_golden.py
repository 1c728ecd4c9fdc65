"""What the operator creates, to the letter. `REALCLI_UPDATE_GOLDEN=1 pytest tests/unit/pods` writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli_operator.reconcile.plans import PodIntent, Task

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "work-pod": lambda make: make.work(),
    "work-pod-plain-cluster": lambda make: make.work(image_volumes=False, user_namespaces=False),
    "work-pod-own-setup": lambda make: make.own_work(),
    "work-pod-own-setup-plain-cluster": lambda make: make.own_work(image_volumes=False, user_namespaces=False),
    "plan-job-own-setup": lambda make: make.own_plan(),
    "work-pod-placed": lambda make: make.placed_work(),
    "report-job-placed": lambda make: make.placed_job(),
    "verify-pod": lambda make: make.verify(),
    "control-pod": lambda make: make.pod(PodIntent(1, control=2, avoid=("n1",))),
    "report-job-renewed": lambda make: make.withdrawing_report(),
    "plan-job": lambda make: make.job(Task.PLAN),
    "judge-job": lambda make: make.job(Task.JUDGE),
    "judge-job-with-model": lambda make: make.own_judge(),
    "report-job": lambda make: make.job(Task.REPORT),
    "plan-config-map": lambda make: make.config_map(),
    "trial": lambda make: make.trial(),
}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


@pytest.mark.parametrize("name", CASES)
def test_manifest_is_the_golden_file(make: Any, name: str) -> None:
    path = GOLDEN / f"{name}.yaml"
    text = yaml.dump(CASES[name](make), Dumper=_Dumper, sort_keys=False, width=130)
    if os.environ.get("REALCLI_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert text == path.read_text()
