"""Deterministic names of pods and Jobs, so that creating twice is noticed by the API server."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_POD: Final = re.compile(r"-a(?P<attempt>[0-9]+)(?:-v(?P<verify>[0-9]+)|-c(?P<control>[0-9]+))?$")


class PodNumbers(NamedTuple):
    """Attempt and verify or control number of a trial's pod; both are 0 for a work pod."""

    attempt: int
    verify: int
    control: int = 0


def work_pod(trial: str, attempt: int) -> str:
    """`<trial>-a<k>`."""
    return f"{trial}-a{attempt}"


def verify_pod(trial: str, attempt: int, verify: int) -> str:
    """`<trial>-a<k>-v<j>`."""
    return f"{trial}-a{attempt}-v{verify}"


def control_pod(trial: str, attempt: int, control: int) -> str:
    """`<trial>-a<k>-c<c>`."""
    return f"{trial}-a{attempt}-c{control}"


def pod_numbers(trial: str, pod: str) -> PodNumbers | None:
    """The numbers in a pod's name; None if the name is not one of this trial's."""
    match = _POD.fullmatch(pod.removeprefix(trial)) if pod.startswith(trial) else None
    return PodNumbers(int(match["attempt"]), int(match["verify"] or 0), int(match["control"] or 0)) if match else None


def plan_job(sweep: str) -> str:
    """`<sweep>-plan`; also the name of the ConfigMap that keeps the plan."""
    return f"{sweep}-plan"


def judge_job(sweep: str, group: int, n: int = 1) -> str:
    """`<sweep>-j<group>`, for the n-th renewal of the group `-r<n>` more."""
    return f"{sweep}-j{group:04d}{_renewed(n)}"


def report_job(sweep: str, n: int = 1) -> str:
    """`<sweep>-report`, for the n-th `-r<n>` more."""
    return f"{sweep}-report{_renewed(n)}"


def _renewed(n: int) -> str:
    return f"-r{n}" if n > 1 else ""
