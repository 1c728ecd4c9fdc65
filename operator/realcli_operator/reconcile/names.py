"""Deterministic names of pods and Jobs, so that creating twice is noticed by the API server."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_POD: Final = re.compile(r"-a(?P<attempt>[0-9]+)(?:-v(?P<verify>[0-9]+))?$")


class PodNumbers(NamedTuple):
    """Attempt and verify number of a trial's pod; ``verify`` is 0 for a work pod."""

    attempt: int
    verify: int


def work_pod(trial: str, attempt: int) -> str:
    """`<trial>-a<k>`."""
    return f"{trial}-a{attempt}"


def verify_pod(trial: str, attempt: int, verify: int) -> str:
    """`<trial>-a<k>-v<j>`."""
    return f"{trial}-a{attempt}-v{verify}"


def pod_numbers(trial: str, pod: str) -> PodNumbers | None:
    """The numbers in a pod's name; None if the name is not one of this trial's."""
    match = _POD.fullmatch(pod.removeprefix(trial)) if pod.startswith(trial) else None
    return PodNumbers(int(match["attempt"]), int(match["verify"] or 0)) if match else None


def plan_job(sweep: str) -> str:
    """`<sweep>-plan`; also the name of the ConfigMap that keeps the plan."""
    return f"{sweep}-plan"


def judge_job(sweep: str, group: int) -> str:
    """`<sweep>-j<group>`."""
    return f"{sweep}-j{group:04d}"


def report_job(sweep: str) -> str:
    """`<sweep>-report`."""
    return f"{sweep}-report"
