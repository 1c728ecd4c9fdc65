"""From an instance and a trajectory to its record: state, checks, verdicts. By program alone.

A verdict a program cannot settle is `unscored`, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from realcli.benchmark.catalogue_models import CheckTemplate, Scenario
from realcli.benchmark.models import Probe
from realcli.checks.clauses import not_applicable
from realcli.checks.errata import decides_of
from realcli.checks.instance import Instance, of_probe
from realcli.checks.model import CheckError, Context, Evidence, SnapshotReader
from realcli.checks.operators import run_hard
from realcli.checks.states import state_of
from realcli.scoring.records import CheckRecord, HardRecord, InstanceRecord, Verdict
from realcli.trajectory import Trajectory, Window
from realcli.trajectory.anchors import WINDOWS, Anchor, window
from realcli.trajectory.bindings import action_id


def judge_probe(probe: Probe, scenario: Scenario, trajectory: Trajectory, snapshots: SnapshotReader) -> InstanceRecord:
    """The instance of a probe in one run."""
    return judge_instance(of_probe(probe, scenario), trajectory, Evidence(snapshots))


def judge_instance(instance: Instance, trajectory: Trajectory, evidence: Evidence) -> InstanceRecord:
    """The record of an instance. `CheckError` names instance, scenario and check of what cannot be run as written."""
    state = state_of(instance, trajectory, evidence.blobs)
    anchor = None if state.anchor is None else state.anchor.seq

    def record(name: str, reason: str | None, checks: list[CheckRecord]) -> InstanceRecord:
        return InstanceRecord.model_validate(
            {
                "scenario": instance.scenario.id, "probe": instance.id, "dimension": instance.dimension,
                "sub_dimension": instance.sub_dimension, "state": name, "reason": reason, "anchor": anchor, "checks": checks,
            }
        )  # fmt: skip

    if state.name != "triggered" or state.anchor is None:
        return record(state.name, state.reason, [])
    checks = list(_checks(instance, state.anchor, trajectory, evidence))
    verdicts = {check.verdict for check in checks}
    undefined = "unscored" in verdicts and "0" not in verdicts
    unscored = ", ".join(check.check for check in checks if check.verdict == "unscored")
    return record("unscored" if undefined else "triggered", f"no program settles {unscored}" if undefined else None, checks)


def refused(instance: Instance, anchor: Anchor, trajectory: Trajectory, evidence: Evidence) -> None:
    """Run every check from that anchor, whatever the instance's state; `CheckError` for one that cannot be run as written."""
    for _ in _checks(instance, anchor, trajectory, evidence):
        pass


def _checks(instance: Instance, anchor: Anchor, trajectory: Trajectory, evidence: Evidence) -> Iterator[CheckRecord]:
    run = Context(
        trajectory, anchor.seq, trajectory.run(), evidence.snapshots, "hint", blobs=evidence.blobs, instance=instance.id,
        oracle=evidence.oracle, canaries=evidence.canaries, workdir=evidence.workdir, watch=evidence.watch,
        artifacts=evidence.artifacts, actions=evidence.actions, claims=evidence.claims,
    )  # fmt: skip
    for check in instance.scenario.checks:
        found = tuple(line for line in evidence.recorded if (line.instance, line.check) == (instance.id, check.id))
        yield _check(check, instance, anchor, replace(run, records=found))


def _check(check: CheckTemplate, instance: Instance, anchor: Anchor, run: Context) -> CheckRecord:
    """One check; `run` is its context but for what the check says: its window and what it decides."""
    decides = decides_of(instance.scenario, check)
    try:
        context = replace(run, window=window_of(check, instance, run.trajectory, anchor), decides=decides)
        clause = not_applicable(check, instance, context)
        if clause is not None:
            return CheckRecord(check=check.id, verdict="n/a", by="program", reason=clause)
        if check.hard is None:
            return CheckRecord(check=check.id, verdict="unscored", by="none", reason="only a judge model can decide this check")
        hard = run_hard(check.hard, instance.bindings, context)
    except CheckError as error:
        raise CheckError(f"probe {instance.id}, scenario {instance.scenario.id}, check {check.id}: {error}") from error
    verdict = verdict_of(hard, decides)
    if verdict is None:
        why = hard.why if hard.result == "undecided" else f"the program's {hard.result} does not settle it (decides: {decides})"
        return CheckRecord(check=check.id, verdict="unscored", by="none", hard=hard, reason=why)
    return CheckRecord(check=check.id, verdict=verdict, by="program", hard=hard, reason=hard.why)


def verdict_of(hard: HardRecord, decides: str) -> Verdict | None:
    """What a hard record settles by the check's `decides` rule; None: it is left to a judge."""
    if decides not in ("both", "fail", "pass", "hint"):
        raise CheckError(f"`decides` is {decides!r}; expected both, fail, pass or hint")
    if hard.result == "fail" and decides in ("both", "fail"):
        return "0"
    if hard.result == "pass" and decides in ("both", "pass"):
        return "1"
    return None


def window_of(check: CheckTemplate, instance: Instance, trajectory: Trajectory, anchor: Anchor) -> Window:
    """The window of a check. `CheckError` for one that is not defined, or that names no action where it needs one."""
    name = next((name for name in WINDOWS if name == check.window), None)
    if name is None:
        raise CheckError(f"window `{check.window}` is not defined; expected one of {', '.join(WINDOWS)}")
    action = None
    if check.approval_of is not None:
        action = action_id(instance.bindings.get(check.approval_of))
        if action is None:
            raise CheckError(f"binding {check.approval_of} names no action: write its id, or {{id, cmd, paths}}")
    try:
        return window(trajectory, anchor, name, action)
    except ValueError as error:
        raise CheckError(str(error)) from error
