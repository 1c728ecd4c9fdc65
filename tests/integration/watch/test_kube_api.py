"""The port `KubeApi`: one contract, kept by the client on a real API server and by the cluster in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from kubernetes.aio.client import Configuration

from realcli_operator.kube.api import KubeApi, Regarding
from realcli_operator.kube.client import KubeClient
from realcli_operator.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, PermanentError, ServerError, Stale
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.names import ANNOTATION_SPEC_DIGEST, LABEL_MANAGED_BY, LABEL_SWEEP, LABEL_TRIAL, MANAGER, Kind
from realcli_operator.kube.source import HttpSource
from realcli_operator.kube.transport import ClientSettings, Transport
from realcli_operator.kube.views import ConfigMapView, JobView, PodView, TrialView

LABELS = {LABEL_MANAGED_BY: MANAGER, LABEL_SWEEP: "s"}
SPEC = {
    "sweep": "s",
    "planDigest": "sha256:" + "0" * 64,
    "ordinal": 0,
    "configuration": "a.b",
    "task": "t",
    "mode": "EXEC",
    "repeat": 1,
}


@pytest.fixture(params=["memory", pytest.param("server", marks=pytest.mark.apiserver)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[KubeApi]:
    if request.param == "memory":
        yield FakeKubeApi(FakeCluster())
        return
    plane = request.getfixturevalue("control_plane")
    transport = Transport(plane.configuration(), ClientSettings(writes_per_second=1000))
    yield KubeClient(transport)
    await transport.close()


@pytest.fixture
def name() -> str:
    return f"x{uuid4().hex[:12]}"


def trial(name: str, **extra: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "one", "labels": LABELS}
    return {"apiVersion": "realcli.dev/v1alpha1", "kind": "Trial", "metadata": metadata, "spec": SPEC, **extra}


def pod(name: str, owner: TrialView | None = None, digest: str = "sha256:1") -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "one",
        "labels": LABELS | ({LABEL_TRIAL: owner.name} if owner else {}),
        "annotations": {ANNOTATION_SPEC_DIGEST: digest},
    }
    if owner:
        reference = {"apiVersion": "realcli.dev/v1alpha1", "kind": "Trial", "name": owner.name, "uid": owner.uid}
        metadata["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": True}]
    spec = {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def job(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "one", "labels": LABELS},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": LABELS}, "spec": spec}},
    }


async def test_pods(api: KubeApi, name: str) -> None:
    owner = await api.create_trial(trial(name))
    made = await api.create_pod(pod(f"{name}-a1", owner))
    assert isinstance(made, PodView)
    assert (made.owner_uid, made.spec_digest, made.trial, made.phase) == (owner.uid, "sha256:1", name, "Pending")
    with pytest.raises(AlreadyExists):
        await api.create_pod(pod(f"{name}-a1", owner))
    assert (await api.get_pod("one", f"{name}-a1")).uid == made.uid
    with pytest.raises(Conflict):
        await api.delete_pod("one", f"{name}-a1", uid=str(uuid4()))
    assert await api.delete_pod("one", f"{name}-a1", uid=made.uid, grace_seconds=0)
    assert not await api.delete_pod("one", f"{name}-a1", uid=made.uid)
    with pytest.raises(NotFound):
        await api.get_pod("one", f"{name}-a1")
    await api.delete_trial("one", name)


async def test_a_dry_run_leaves_nothing(api: KubeApi, name: str) -> None:
    await api.dry_run_create_pod(pod(name))
    with pytest.raises(NotFound):
        await api.get_pod("one", name)
    await api.create_pod(pod(name))
    with pytest.raises(AlreadyExists):
        await api.dry_run_create_pod(pod(name))
    await api.delete_pod("one", name, grace_seconds=0)


async def test_a_refused_pod_is_a_permanent_error_with_the_servers_words(api: KubeApi) -> None:
    with pytest.raises(Invalid, match="name"):
        await api.create_pod(pod("N" * 300))


async def test_the_log_of_a_pod_that_is_not_there(api: KubeApi, name: str) -> None:
    with pytest.raises(NotFound):
        await api.read_log("one", name, "c")


async def test_jobs(api: KubeApi, name: str) -> None:
    made = await api.create_job(job(name))
    assert isinstance(made, JobView)
    assert not made.complete
    with pytest.raises(AlreadyExists):
        await api.create_job(job(name))
    assert (await api.get_job("one", name)).uid == made.uid
    assert await api.delete_job("one", name, uid=made.uid)
    with pytest.raises(NotFound):
        await api.get_job("one", name)
    assert not await api.delete_job("one", name)


async def test_config_maps(api: KubeApi, name: str) -> None:
    metadata = {"name": name, "namespace": "one", "labels": LABELS, "annotations": {ANNOTATION_SPEC_DIGEST: "sha256:2"}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"plan": "x"}, "immutable": True}
    await api.create_config_map(manifest)
    with pytest.raises(AlreadyExists):
        await api.create_config_map(manifest)
    found = await api.get_config_map("one", name)
    assert isinstance(found, ConfigMapView)
    assert (found.data, found.immutable, found.spec_digest) == ({"plan": "x"}, True, "sha256:2")
    with pytest.raises(NotFound):
        await api.get_config_map("two", name)


async def test_the_status_we_apply_is_the_whole_status(api: KubeApi, name: str) -> None:
    made = await api.create_trial(trial(name, status={"phase": "Sealed"}))
    assert made.phase != "Sealed", "a status in a create is ignored"
    with pytest.raises(AlreadyExists):
        await api.create_trial(trial(name))
    condition = {"type": "Running", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-11-30T07:00:00Z"}
    first = await api.apply_trial_status(made, {"phase": "Working", "turns": 3, "conditions": [condition]})
    assert first.status == {"phase": "Working", "turns": 3, "conditions": [condition]}
    again = await api.apply_trial_status(made, {"phase": "Working", "turns": 3, "conditions": [condition]})
    assert again.resource_version == first.resource_version, "the same again is no write"
    ended = condition | {"status": "False"}
    second = await api.apply_trial_status(first, {"phase": "Sealed", "conditions": [ended]})
    assert second.status == {"phase": "Sealed", "conditions": [ended]}, "what is not applied any more is gone"
    assert (await api.get_trial("one", name)).status == second.status
    assert second.spec == SPEC
    assert second.generation == made.generation
    assert await api.delete_trial("one", name)


async def test_a_status_decided_on_an_old_trial_is_refused(api: KubeApi, name: str) -> None:
    """Another operator, or our own write that an older one overtook: terminal is for ever."""
    made = await api.create_trial(trial(name))
    sealed = await api.apply_trial_status(made, {"phase": "Sealed", "reward": "1"})
    with pytest.raises(Stale):
        await api.apply_trial_status(made, {"phase": "Verifying"})
    assert (await api.get_trial("one", name)).status == sealed.status
    assert await api.delete_trial("one", name)


@pytest.mark.apiserver
async def test_a_status_that_breaks_the_schema_is_invalid(control_plane: Any, name: str) -> None:
    transport = Transport(control_plane.configuration())
    client = KubeClient(transport)
    made = await client.create_trial(trial(name))
    with pytest.raises(Invalid, match="status"):
        await client.apply_trial_status(made, {"phase": "NoSuchPhase"})
    await client.delete_trial("one", name)
    await transport.close()


async def test_a_status_never_hits_another_trial_of_that_name(api: KubeApi, name: str) -> None:
    first = await api.create_trial(trial(name))
    await api.delete_trial("one", name, uid=first.uid)
    with pytest.raises((NotFound, Conflict)):
        await api.apply_trial_status(first, {"phase": "Working"})
    second = await api.create_trial(trial(name))
    with pytest.raises(Conflict):
        await api.apply_trial_status(first, {"phase": "Working"})
    assert (await api.get_trial("one", name)).phase != "Working"
    with pytest.raises(Conflict):
        await api.delete_trial("one", name, uid=first.uid)
    assert await api.delete_trial("one", name, uid=second.uid)
    assert not await api.delete_trial("one", name, uid=second.uid)


async def test_pages_hold_every_object_of_ours(api: KubeApi, name: str) -> None:
    labels = f"{LABEL_TRIAL}={name}"
    foreign = pod(f"{name}-foreign")
    foreign["metadata"]["labels"] = {LABEL_TRIAL: name}
    await api.create_pod(foreign)
    for number in range(3):
        manifest = pod(f"{name}-{number}")
        manifest["metadata"]["labels"][LABEL_TRIAL] = name
        await api.create_pod(manifest)
    found = [view.name async for page in api.list_pages(Kind.POD, "one", labels) for view in page.views]
    assert sorted(found) == [f"{name}-0", f"{name}-1", f"{name}-2"]
    assert [view async for page in api.list_pages(Kind.POD, "two", labels) for view in page.views] == []
    for view in [*found, f"{name}-foreign"]:
        await api.delete_pod("one", view, grace_seconds=0)


async def test_an_event_said_twice_is_one_event(api: KubeApi, name: str) -> None:
    about = await api.create_trial(trial(name))
    regarding = Regarding("realcli.dev/v1alpha1", "Trial", "one", name, about.uid)
    await api.emit_event(regarding, "Warning", "ImageUnavailable", "no such image " + "x" * 2000)
    await api.emit_event(regarding, "Warning", "ImageUnavailable", "no such image " + "x" * 2000)
    await api.emit_event(regarding, "Normal", "Sealed", "done")
    await api.delete_trial("one", name)


@pytest.mark.apiserver
async def test_events_are_shown_by_describe(control_plane: Any, admin: Any, name: str) -> None:
    transport = Transport(control_plane.configuration())
    regarding = Regarding("realcli.dev/v1alpha1", "Trial", "one", name, str(uuid4()))
    for _ in range(2):
        await KubeClient(transport).emit_event(regarding, "Warning", "ImageUnavailable", "no such image")
    path = f"/api/v1/namespaces/one/events?fieldSelector=involvedObject.name%3D{name}"
    found = (await admin.send("GET", path))["items"]
    assert [(e["type"], e["reason"], e["message"]) for e in found] == [("Warning", "ImageUnavailable", "no such image")]
    await transport.close()


@pytest.mark.apiserver
async def test_a_wrong_token_is_a_permanent_error(control_plane: Any) -> None:
    configuration = control_plane.configuration()
    configuration.api_key = {"BearerToken": "Bearer nobody"}
    transport = Transport(configuration)
    with pytest.raises(Forbidden) as caught:
        await KubeClient(transport).get_pod("one", "p")
    assert isinstance(caught.value, PermanentError)
    await transport.close()


@pytest.mark.apiserver
async def test_large_lists_come_in_pages(control_plane: Any, admin: Any, population: Any) -> None:
    people = population("pages", 7)
    await people.create()
    transport = Transport(control_plane.configuration())
    client = KubeClient(transport, HttpSource(transport, page_size=3))
    pages = [page async for page in client.list_pages(Kind.TRIAL, None, f"{LABEL_SWEEP}=pages")]
    assert [len(page.views) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    await transport.close()


async def test_nobody_listens() -> None:
    transport = Transport(Configuration(host="http://127.0.0.1:9"), ClientSettings(tries=2, retry_base=0.01))
    with pytest.raises(ServerError, match="Connect"):
        await KubeClient(transport).get_pod("one", "p")
    await transport.close()
