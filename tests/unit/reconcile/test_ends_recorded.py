"""Real pods, as API servers and kubelets left them (tests/data/pods), through the informer's projection and the table of ends."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from realcli.api.outcomes import Cause, Effect, Phase, effect_of, is_valid
from realcli.api.trial import TrialStatus
from realcli_operator.execute import NOT_PERMITTED, TERMINATING
from realcli_operator.kube.errors import Forbidden, error_for
from realcli_operator.kube.names import Kind
from realcli_operator.kube.project import project
from realcli_operator.kube.views import PodView
from realcli_operator.reconcile.endfacts import facts_of
from realcli_operator.reconcile.endmodel import Overdue, Said, Stand, Work
from realcli_operator.reconcile.endrows import GAP
from realcli_operator.reconcile.ends import end_of, is_fault
from realcli_operator.reconcile.names import verify_pod, work_pod
from realcli_operator.reconcile.trial import decide_trial

DATA = Path(__file__).resolve().parents[3] / "tests" / "data" / "pods"
INDEX: dict[str, dict[str, str]] = yaml.safe_load((DATA / "index.yaml").read_text())["pods"]

V, P, I = Phase.VERIFYING, Phase.PENDING, Phase.INVALID  # noqa: E741

WORK: dict[str, tuple[Phase, str, Cause]] = {
    # the session tells
    "work-completed": (V, "Completed", Cause.AGENT),
    "work-agent-exit-1": (V, "AgentCrashed", Cause.AGENT),
    "work-agent-exit-137": (V, "RunnerLost", Cause.AGENT),
    "work-agent-exit-143": (V, "RunnerLost", Cause.AGENT),
    "work-provider-unavailable": (P, "ProviderUnavailable", Cause.PROVIDER),
    "work-storage-unavailable": (V, "StorageUnavailable", Cause.STORAGE),
    "work-configuration-error": (I, "ConfigurationError", Cause.CONFIGURATION),
    "session-sealed-exit-1": (V, "Completed", Cause.AGENT),
    "ephemeral-container": (V, "Completed", Cause.AGENT),
    # … or does not
    "session-exit-0-silent": (V, "SessionLost", Cause.OPERATOR),
    "session-exit-1": (V, "SessionLost", Cause.OPERATOR),
    "session-exit-137": (V, "SessionLost", Cause.OPERATOR),
    "session-exit-143": (V, "SessionLost", Cause.OPERATOR),
    "message-too-long": (V, "SessionLost", Cause.OPERATOR),
    "message-cut": (V, "SessionLost", Cause.OPERATOR),
    "message-half": (V, "SessionLost", Cause.OPERATOR),
    "message-binary": (V, "SessionLost", Cause.OPERATOR),
    "message-of-the-agent": (V, "SessionLost", Cause.OPERATOR),
    # memory
    "oom-agent-sealed": (V, "AgentOutOfMemory", Cause.AGENT),
    "oom-agent-silent": (V, "AgentOutOfMemory", Cause.AGENT),
    "oom-process": (V, "Completed", Cause.AGENT),
    "oom-process-crashed": (V, "AgentOutOfMemory", Cause.AGENT),
    "oom-process-group": (V, "AgentOutOfMemory", Cause.AGENT),
    "oom-session": (V, "SessionLost", Cause.OPERATOR),
    "oom-both": (V, "SessionLost", Cause.CLUSTER),
    "oom-init": (P, "SetupTimeout", Cause.OPERATOR),
    "init-exit-1": (P, "SetupTimeout", Cause.OPERATOR),
    # disk
    "disk-agent-container": (V, "AgentDiskLimit", Cause.AGENT),
    "disk-agent-container-silent": (V, "AgentDiskLimit", Cause.AGENT),
    "disk-agent-volume": (V, "AgentDiskLimit", Cause.AGENT),
    "disk-pod-sum": (V, "AgentDiskLimit", Cause.AGENT),
    "disk-session-container": (V, "SessionLost", Cause.OPERATOR),
    "disk-session-volume": (V, "SessionLost", Cause.OPERATOR),
    "node-pressure-memory": (P, "NodePressure", Cause.CLUSTER),
    "node-pressure-admission": (P, "NodePressure", Cause.CLUSTER),
    # time
    "deadline-told": (P, "SessionLost", Cause.OPERATOR),
    "deadline-silent": (V, "SessionLost", Cause.OPERATOR),
    "deadline-never-started": (P, "ImageUnavailable", Cause.CONFIGURATION),
    # images, configuration
    "start-error-init": (P, "SetupTimeout", Cause.CLUSTER),
    "sysctl-forbidden": (I, "ConfigurationError", Cause.CONFIGURATION),
    # scheduling
    "out-of-cpu": (P, "NodePressure", Cause.CLUSTER),
    "out-of-memory-admission": (P, "NodePressure", Cause.CLUSTER),
    "node-affinity": (P, "NodePressure", Cause.CLUSTER),
    "preempted-by-scheduler": (P, "Preempted", Cause.CLUSTER),
    "preempted-by-kubelet": (P, "Preempted", Cause.CLUSTER),
    # taken, deleted
    "drained": (P, "Drained", Cause.CLUSTER),
    "drained-silent": (V, "Drained", Cause.CLUSTER),
    "deleted": (P, "PodLost", Cause.PERSON),
    "stopped-by-queue": (P, "Preempted", Cause.CLUSTER),
    "node-shut-down": (P, "Drained", Cause.CLUSTER),
    "disrupted-by-something-new": (V, "PodLost", Cause.UNKNOWN),
    # nodes
    "sandbox-killed": (V, "SessionLost", Cause.OPERATOR),
    "containers-removed": (V, "SessionLost", Cause.OPERATOR),
    "node-gone": (V, "NodeLost", Cause.CLUSTER),
    "node-restarted": (V, "SessionLost", Cause.CLUSTER),
}
"""Terminal work pods: what follows, why, who caused it."""

VERIFY: dict[str, tuple[str, bool]] = {
    "oom-verifier": ("NoReward", True),
    "disk-verifier": ("AgentDiskLimit", True),
    "verify-no-reward": ("NoReward", True),
    "verify-verifier-exit-137": ("NoReward", True),
    "verify-session-exit-1": ("SessionLost", True),
    "drained-verify": ("Drained", False),
}
"""Terminal verify pods without a verdict: the reason, and whether it counts as a fault that a control has to judge."""

NOT_OVER: dict[str, tuple[Overdue, str]] = {
    "image-pull-error": (Overdue.NO, "ImageUnavailable"),
    "image-pull-backoff": (Overdue.NO, "ImageUnavailable"),
    "image-pull-backoff-init": (Overdue.NO, "ImageUnavailable"),
    "image-never-pull": (Overdue.NO, "ImageUnavailable"),
    "image-invalid-name": (Overdue.NO, "ImageUnavailable"),
    "secret-missing": (Overdue.NO, "ConfigurationError"),
    "config-map-key-missing": (Overdue.NO, "ConfigurationError"),
    "start-error": (Overdue.NO, "SetupTimeout"),
    "volume-missing": (Overdue.SETUP, "SetupTimeout"),
    "unschedulable": (Overdue.PENDING, "SetupTimeout"),
    "deleted-going": (Overdue.DELETION, "NodeLost"),
    "deleted-by-force": (Overdue.DELETION, "NodeLost"),
    "node-tainted": (Overdue.NO, "NodeLost"),
    "node-silent": (Overdue.DELETION, "NodeLost"),
    "session-ended-agent-runs": (Overdue.NO, "Completed"),
}
"""Pods that have not ended and do not go on: which patience ends, and what it is then."""

GOES_ON = {"gated": Phase.QUEUED, "kubelet-restarted": None, "verify-completed": Phase.SEALED}
"""Pods of which the table is not asked: the phase of the trial (None: as it was)."""

STATUSES = {name for name, row in INDEX.items() if row.get("object") == "Status"}


@cache
def raw(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return read


def recorded(name: str) -> PodView:
    pod = project(Kind.POD, raw(name))
    assert isinstance(pod, PodView)
    return pod


def long_after(pod: PodView) -> datetime:
    """When every patience with it is over."""
    times = [c.last_transition_time for c in pod.conditions if c.last_transition_time is not None]
    return max([*times, pod.creation_timestamp or times[0]]) + timedelta(hours=30)


def as_pod(pod: PodView, name: str) -> PodView:
    return replace(pod, name=name, uid=f"uid-{name}")


def test_every_recording_is_in_a_table_and_in_the_index() -> None:
    files = {path.stem for path in DATA.glob("*.json")}
    assert files == set(INDEX)
    assert files - STATUSES == {*WORK, *VERIFY, *NOT_OVER, *GOES_ON}
    real = [name for name, row in INDEX.items() if row["made"] == "recorded"]
    assert len(real) >= 40
    assert all(row["made"] in ("recorded", "constructed") and row["how"] for row in INDEX.values())


@pytest.mark.parametrize("name", WORK)
def test_a_work_pod_that_ended(a: Any, name: str) -> None:
    pod = recorded(name)
    phase, reason, cause = WORK[name]
    end = end_of(facts_of(pod, Work.WORK))
    assert (end.phase, end.reason, end.cause) == (phase, reason, cause)
    assert pod.finished
    assert pod.name in end.message or end.message == "" or phase is not V or end.row != GAP
    # … and the trial does what the table says.
    plan = decide_trial(a.facts(a.status(), as_pod(pod, "first-00000-a1")), long_after(pod))
    assert plan.status is not None
    assert (plan.status.phase, plan.status.work_end) == (phase, reason)
    assert (plan.create is not None) == (phase is V), "a seal is looked for"
    assert [removal.name for removal in plan.delete] == ["first-00000-a1"]
    assert (end.row == GAP) == any(note.reason == "UnexplainedEnd" for note in plan.events)


@pytest.mark.parametrize(
    ("name", "untrusted", "session"),
    [
        ("work-completed", Stand.ENDED, Stand.ENDED),
        ("kubelet-restarted", Stand.RUNNING, Stand.RUNNING),
        ("session-ended-agent-runs", Stand.RUNNING, Stand.ENDED),
        ("start-error", Stand.NOT_STARTED, Stand.RUNNING),
        ("image-pull-backoff", Stand.WAITING, Stand.RUNNING),
        ("init-exit-1", Stand.WAITING, Stand.WAITING),
        ("node-restarted", Stand.UNSEEN, Stand.UNSEEN),
        ("disk-agent-container-silent", Stand.ENDED, Stand.UNSEEN),
        ("out-of-cpu", Stand.ABSENT, Stand.ABSENT),
    ],
)
def test_how_its_containers_stood(name: str, untrusted: Stand, session: Stand) -> None:
    facts = facts_of(recorded(name), Work.WORK)
    assert (facts.untrusted.stand, facts.session.stand) == (untrusted, session)


@pytest.mark.parametrize("name", VERIFY)
def test_a_verify_pod_that_ended_without_a_verdict(a: Any, name: str) -> None:
    pod = recorded(name)
    reason, fault = VERIFY[name]
    end = end_of(facts_of(pod, Work.VERIFY))
    assert (end.phase, end.reason, end.retry) == (V, reason, False)
    plan = decide_trial(a.facts(a.status(V), as_pod(pod, "first-00000-a1-v1")), long_after(pod))
    assert plan.status is not None
    assert (plan.status.phase, plan.status.verify_faults, plan.status.attempt) == (V, int(fault), 1)


CLUSTER = sorted(name for name, (_, _, cause) in WORK.items() if cause in (Cause.CLUSTER, Cause.PERSON) and name != "oom-both")
"""oom-both: a verifier may take all memory there is, and what it prints its session's."""


@pytest.mark.parametrize("name", CLUSTER)
def test_what_the_cluster_does_to_a_verify_pod_is_nobodys_fault(name: str) -> None:
    """Three faults and a control that passes make a reward of 0."""
    assert not is_fault(end_of(facts_of(recorded(name), Work.VERIFY)).reason)


@pytest.mark.parametrize("name", NOT_OVER)
def test_a_pod_that_does_not_go_on(a: Any, name: str) -> None:
    pod = recorded(name)
    overdue, reason = NOT_OVER[name]
    assert not pod.finished
    assert end_of(facts_of(pod, Work.WORK, overdue=overdue)).reason == reason
    # The trial's patience ends by itself; a wait is written down first, its clock begins with that.
    status, now = a.status(), long_after(pod)
    for _ in range(3):
        plan = decide_trial(a.facts(status, as_pod(pod, "first-00000-a1")), now)
        status, now = plan.status or status, now + timedelta(hours=30)
        if plan.delete:
            break
    assert plan.delete
    assert reason in (status.work_end, status.reason)


@pytest.mark.parametrize("name", GOES_ON)
def test_a_pod_that_is_no_end(a: Any, name: str) -> None:
    pod = recorded(name)
    before = a.status(V, work_seal_digest=None) if name.startswith("verify") else a.status()
    alias = "first-00000-a1-v1" if name.startswith("verify") else "first-00000-a1"
    status = decide_trial(a.facts(before, as_pod(pod, alias)), long_after(pod)).status
    assert (status.phase if status is not None else None) == GOES_ON[name]


@pytest.mark.parametrize("name", sorted(STATUSES))
def test_a_refusal_of_the_api_server_is_the_configurations(name: str) -> None:
    answer = raw(name)
    error = error_for(answer["code"], answer["reason"], answer["message"])
    assert isinstance(error, Forbidden)
    assert TERMINATING not in error.message
    assert NOT_PERMITTED not in error.message, "it is meant for the pod, not for the operator"


def test_nothing_recorded_is_a_gap_but_what_was_made_to_be_one() -> None:
    gaps = {name for name in WORK if end_of(facts_of(recorded(name), Work.WORK)).row == GAP}
    gaps |= {name for name in VERIFY if end_of(facts_of(recorded(name), Work.VERIFY)).row == GAP}
    assert gaps == {"disrupted-by-something-new"}


AGENTS = sorted(name for name, (_, reason, _) in WORK.items() if is_valid(reason))
OTHERS = sorted(name for name, (_, reason, _) in WORK.items() if not is_valid(reason))


def lived(a: Any, kinds: list[str], *, limit: int = 3) -> tuple[TrialStatus, list[str]]:
    """The trial whose work pods end like these, one after the other; storage never holds a seal. (Its end, its work pods.)"""
    status, now = TrialStatus(), a.now + timedelta(days=400)
    pods: list[PodView] = []
    made: list[str] = []
    spec = a.spec(retry={"infrastructure": limit})
    for _ in range(12 * len(kinds)):
        plan = decide_trial(a.facts(status, *pods, sweep=spec), now)
        status, now = plan.status or status, now + timedelta(hours=30)
        gone = {removal.name for removal in plan.delete}
        pods = [pod for pod in pods if pod.name not in gone]
        if plan.create is not None and plan.create.verify:
            pods.append(a.ended(verify_pod("first-00000", plan.create.attempt, plan.create.verify), a.no_work_seal()))
        elif plan.create is not None:
            if len(made) == len(kinds):
                break
            name = work_pod("first-00000", plan.create.attempt)
            pods.append(as_pod(recorded(kinds[len(made)]), name))
            made.append(name)
        if status.phase.terminal:
            break
    return status, made


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(st.sampled_from(OTHERS), min_size=25, max_size=25), limit=st.integers(0, 4))
def test_attempts_are_bounded_whatever_happens(a: Any, kinds: list[str], limit: int) -> None:
    status, made = lived(a, kinds, limit=limit)
    counted = [effect_of(WORK[kind][1]) for kind in kinds[: len(made)]]
    assert sum(effect is Effect.RETRY for effect in counted) <= limit + 1
    assert status.invalid_attempts <= limit + 1
    if status.phase.terminal:
        assert status.phase is I
        assert status.reward is None


SILENT = [name for name in AGENTS if facts_of(recorded(name), Work.WORK).said is not Said.SEALED]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(st.sampled_from(OTHERS), max_size=3), end=st.sampled_from(SILENT))
def test_a_saboteur_gets_no_more_attempts_than_an_honest_loser(a: Any, before: list[str], end: str) -> None:
    """Its container is killed for what it took, nobody seals: the trial is over, whatever the cluster did before."""
    kinds = [kind for kind in before if effect_of(WORK[kind][1]) is not Effect.FINAL]
    status, made = lived(a, [*kinds, end, "work-completed"])
    assert (status.phase, status.reason, status.reward) == (Phase.SEALED, WORK[end][1], "0")
    assert len(made) == len(kinds) + 1
