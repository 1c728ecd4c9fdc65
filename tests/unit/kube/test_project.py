"""Projections of API objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from realcli_operator.kube.names import Kind
from realcli_operator.kube.project import ProjectionError, config_map_view, job_view, pod_view, project, trial_view
from realcli_operator.kube.views import ContainerState

METADATA: dict[str, Any] = {
    "name": "s-00000-a1",
    "namespace": "one",
    "uid": "u1",
    "resourceVersion": "77",
    "generation": 2,
    "creationTimestamp": "2026-11-30T07:00:00Z",
    "labels": {"realcli.dev/trial": "s-00000", "realcli.dev/sweep": "s", "app.kubernetes.io/managed-by": "realcli", "x": "y"},
    "annotations": {"realcli.dev/spec-digest": "sha256:1", "big": "dropped"},
    "ownerReferences": [{"uid": "other", "name": "n"}, {"uid": "t1", "name": "s-00000", "controller": True}],
}


def test_pod() -> None:
    pod = pod_view(
        {
            "metadata": METADATA | {"deletionTimestamp": "2026-11-30T08:00:00+01:00"},
            "spec": {"nodeName": "n1", "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
            "status": {
                "phase": "Failed",
                "reason": "Evicted",
                "message": "low on disk",
                "startTime": "2026-11-30T07:00:05Z",
                "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
                "containerStatuses": [
                    {"name": "agent", "ready": False, "restartCount": 0, "imageID": "sha256:a", "state": {"terminated": {
                        "exitCode": 137, "signal": 9, "reason": "OOMKilled", "message": "{}",
                        "startedAt": "2026-11-30T07:00:06Z", "finishedAt": "2026-11-30T07:10:00Z"}}},
                    {"name": "session", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}},
                    {"name": "new", "state": {}},
                ],
                "initContainerStatuses": [
                    {"name": "tool", "ready": True, "state": {"running": {"startedAt": "2026-11-30T07:00:06Z"}}},
                ],
            },
        }
    )  # fmt: skip
    assert (pod.uid, pod.resource_version, pod.generation, pod.owner_uid, pod.owner_name) == ("u1", 77, 2, "t1", "s-00000")
    assert pod.labels == {
        "realcli.dev/trial": "s-00000",
        "realcli.dev/sweep": "s",
        "app.kubernetes.io/managed-by": "realcli",
    }
    assert (pod.trial, pod.sweep, pod.spec_digest) == ("s-00000", "s", "sha256:1")
    assert pod.creation_timestamp == datetime(2026, 11, 30, 7, tzinfo=UTC)
    assert pod.deletion_timestamp == datetime(2026, 11, 30, 7, tzinfo=UTC)
    assert pod.deleting
    assert pod.finished
    assert (pod.node, pod.phase, pod.reason, pod.message) == ("n1", "Failed", "Evicted", "low on disk")
    assert pod.scheduling_gates == ("kueue.x-k8s.io/admission",)
    condition = pod.condition("DisruptionTarget")
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("True", "EvictionByEvictionAPI", "")
    agent, session, new = pod.containers
    assert (agent.state, agent.exit_code, agent.signal, agent.reason, agent.message) == (
        ContainerState.TERMINATED, 137, 9, "OOMKilled", "{}",
    )  # fmt: skip
    assert agent.finished_at == datetime(2026, 11, 30, 7, 10, tzinfo=UTC)
    assert (session.state, session.reason, session.exit_code) == (ContainerState.WAITING, "ImagePullBackOff", None)
    assert new.state is ContainerState.WAITING
    assert pod.container("session") is session
    assert pod.container("none") is None
    assert pod.init_containers[0].state is ContainerState.RUNNING


def test_a_pod_nobody_has_touched_yet() -> None:
    pod = pod_view({"metadata": {"name": "p", "namespace": "one", "uid": "u", "resourceVersion": "1"}})
    assert (pod.phase, pod.node, pod.containers, pod.owner_uid, pod.labels) == ("", None, (), None, {})
    assert not pod.finished
    assert not pod.deleting


@pytest.mark.parametrize(
    ("conditions", "complete", "failed"),
    [([], False, False), ([("Complete", "True")], True, False), ([("Failed", "True")], False, True),
     ([("Failed", "False"), ("Suspended", "True")], False, False)],
)  # fmt: skip
def test_job(conditions: list[tuple[str, str]], complete: bool, failed: bool) -> None:
    status = {"active": 1, "conditions": [{"type": t, "status": s} for t, s in conditions]}
    job = job_view({"metadata": METADATA, "status": status})
    assert (job.complete, job.is_failed, job.active, job.succeeded) == (complete, failed, 1, 0)


def test_trial_keeps_spec_and_status_verbatim() -> None:
    spec, status = {"sweep": "s", "anything": [1]}, {"phase": "Working", "unknown": {"deep": 1}}
    trial = trial_view({"metadata": METADATA, "spec": spec, "status": status})
    assert trial.spec == spec
    assert trial.status == status
    assert trial.phase == "Working"
    assert trial_view({"metadata": METADATA}).status == {}
    assert trial_view({"metadata": METADATA}).phase == ""


def test_config_map() -> None:
    found = config_map_view({"metadata": METADATA, "data": {"plan": "x"}, "immutable": True})
    assert (found.data, found.immutable, found.binary_data) == ({"plan": "x"}, True, {})


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"metadata": {"name": "p", "namespace": "one", "uid": "u"}},
        {"metadata": {"name": "p", "namespace": "one", "uid": "u", "resourceVersion": "not a number"}},
        {"metadata": {"name": "p", "namespace": "one", "uid": "u", "resourceVersion": "1"}, "status": {"conditions": [{}]}},
        {"metadata": {"name": "p", "namespace": "one", "uid": "u", "resourceVersion": "1"}, "status": {"startTime": "soon"}},
    ],
)
def test_unexpected_shapes_name_the_object(raw: dict[str, Any]) -> None:
    with pytest.raises(ProjectionError, match=r"pod .*unexpected shape"):
        project(Kind.POD, raw)


def _trial(number: int, conditions: Any = None) -> Any:
    at = "2026-12-01T12:00:00Z"
    running = {"type": "Running", "status": "False", "reason": "Completed", "message": "", "lastTransitionTime": at}
    labels = {f"realcli.dev/{name}": name for name in ("sweep", "configuration", "task", "mode", "repeat")}
    metadata = {"name": f"s-{number:05d}", "namespace": "one", "uid": f"u{number}", "resourceVersion": "1", "labels": labels}
    raw = {
        "metadata": metadata,
        "spec": {"ordinal": number, "configuration": "a." + "b" * 40},
        "status": {"phase": "Sealed", "endedAt": at, "conditions": [running] if conditions is None else conditions},
    }
    return project(Kind.TRIAL, orjson.loads(orjson.dumps(raw))), raw


def test_what_many_trials_say_is_kept_once() -> None:
    (one, raw), (two, _) = _trial(1), _trial(2)
    assert (one.spec, one.status) == (raw["spec"], raw["status"])
    assert one.spec["configuration"] is two.spec["configuration"]
    assert one.status["endedAt"] is two.status["endedAt"]
    assert one.status["conditions"][0] is two.status["conditions"][0]
    assert one.labels is two.labels
    assert dict(one.labels) == {"realcli.dev/sweep": "sweep"}, "the spec says the rest"


@pytest.mark.parametrize(
    "conditions", [[{"type": ["x"]}], ["x"], {"type": "x"}, [{"message": 7}], [None], [{"type": "A", "more": {"b": [1]}}]]
)
def test_a_status_of_unexpected_shape_is_kept_as_it_is(conditions: Any) -> None:
    view, raw = _trial(1, conditions)
    assert view.status == raw["status"]
