"""Our pods and Jobs on a real API server: no unknown field, pod security `baseline`, and what the probe finds out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli_operator.kube.client import KubeClient
from realcli_operator.kube.errors import Forbidden, NotFound
from realcli_operator.pods.probe import image_volumes_survived, probe_pod, user_namespaces_survived

pytestmark = pytest.mark.apiserver
GOLDEN = Path(__file__).resolve().parents[2] / "unit" / "pods" / "golden"
DRY = "?dryRun=All&fieldValidation=Strict"


@pytest.fixture
async def baseline(admin: Any) -> AsyncIterator[str]:
    """A namespace as trials run in it."""
    name = "baseline"
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    await admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    priority, runtime = "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/node.k8s.io/v1/runtimeclasses"
    await admin.send("POST", priority, {"metadata": {"name": "batch-low"}, "value": 1})
    await admin.send("POST", runtime, {"metadata": {"name": "gvisor"}, "handler": "runsc"})
    yield name
    await admin.send("DELETE", f"{priority}/batch-low")
    await admin.send("DELETE", f"{runtime}/gvisor")
    await admin.send("DELETE", f"/api/v1/namespaces/{name}")


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    if document["kind"] == "Pod":
        return {"metadata": {"name": document["metadata"]["name"]}, "spec": document["spec"]}
    return {"metadata": {"name": document["metadata"]["name"]}, "spec": document["spec"]["template"]["spec"]}


async def test_every_pod_passes_baseline_and_strict_validation(admin: Any, baseline: str) -> None:
    documents = [yaml.safe_load(file.read_text()) for file in sorted(GOLDEN.glob("*.yaml"))]
    workloads = [document for document in documents if document["kind"] in {"Pod", "Job"}]
    assert len(workloads) == 14
    for document in workloads:
        made = await admin.send("POST", f"/api/v1/namespaces/{baseline}/pods{DRY}", pod_of(document))
        assert made["spec"]["containers"], document["metadata"]["name"]
    privileged = pod_of(workloads[0])
    privileged["spec"] |= {"hostNetwork": True, "hostUsers": True}
    with pytest.raises(Forbidden, match="baseline"):
        await admin.send("POST", f"/api/v1/namespaces/{baseline}/pods{DRY}", privileged)


async def test_jobs_and_trials_are_what_their_kinds_allow(admin: Any) -> None:
    paths = {
        "Job": "/apis/batch/v1/namespaces/one/jobs",
        "Trial": "/apis/realcli.dev/v1alpha1/namespaces/one/trials",
        "ConfigMap": "/api/v1/namespaces/one/configmaps",
    }
    seen = set()
    for file in sorted(GOLDEN.glob("*.yaml")):
        document = yaml.safe_load(file.read_text())
        if document["kind"] in paths:
            await admin.send("POST", paths[document["kind"]] + DRY, document)
            seen.add(document["kind"])
    assert seen == set(paths)


async def test_the_probe_finds_what_this_api_server_keeps(admin: Any) -> None:
    api = KubeClient(admin.transport)
    found = {}
    for asked in ("users", "images"):
        users = asked == "users"
        probe = probe_pod("one", "first", "example/session:1", user_namespaces=users, image_volumes=not users)
        kept = await api.dry_run_create_pod(probe)
        found[asked] = user_namespaces_survived(kept) if users else image_volumes_survived(kept)
    assert found == {"users": True, "images": False}, "1.34 with default gates: user namespaces on, image volumes off"
    with pytest.raises(NotFound):  # a dry run leaves nothing
        await admin.send("GET", "/api/v1/namespaces/one/pods/first-probe")
