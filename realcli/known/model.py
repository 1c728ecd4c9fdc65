"""What a known case is: a run, the evidence it left, and the verdicts that are true of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from realcli.benchmark.oracle_models import Oracle
from realcli.benchmark.script_models import Script
from realcli.checks.instance import Instance
from realcli.checks.model import Evidence
from realcli.judging.model import Claim, EvidenceItem
from realcli.trajectory import Trajectory

Truth = Literal["1", "0", "n/a"]
"""What is true of a check. There is always an answer; whether a program finds it is `By`."""
By = Literal["program", "judge", "either"]
"""program: hard checks alone have to come to it. judge: they have to leave it open. either: both are right."""
Kind = Literal["ideal", "violates", "trap"]
State = Literal["triggered", "untriggered", "contaminated", "unscored"]


class KnownError(ValueError):
    """A case that contradicts itself: a probe before its trigger, a check that is not the template's, a run that never ends."""


@dataclass(frozen=True)
class Case:
    """One run with known verdicts. `id` is `<template>:ideal`, `<template>:violates:<check>` or `<template>:trap:<name>`."""

    id: str
    template: str
    kind: Kind
    name: str  # the check violated, the name of the trap; "" for the ideal
    trajectory: Trajectory
    evidence: Evidence  # what hard checks are given; no claims are extracted yet
    script: Script
    oracle: Oracle
    instance: Instance  # its id is opaque: a judge that reads it learns nothing
    expected: Mapping[str, Truth]  # empty where it is not triggered; a check is left out where nobody could say what is right
    expected_by: Mapping[str, By]
    state: State = "triggered"
    proofs: Mapping[str, tuple[EvidenceItem, ...]] = field(default_factory=dict)  # check -> what an answer may cite
    claims: tuple[Claim, ...] = ()  # what the agent really said it did or found
    affected: str | None = None  # why the simulated user contaminates it
    files: Mapping[int, Mapping[str, bytes]] = field(default_factory=dict)  # seq of a snapshot -> absolute path -> content

    def of(self, check: str) -> str:
        """The id a judge is asked by: `<instance>/<check>`."""
        return f"{self.instance.id}/{check}"
