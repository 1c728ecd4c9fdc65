"""The chart: rights, pod security, values; rendered by helm and accepted by a real API server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.kind

CHART = Path(__file__).resolve().parents[2] / "charts/realcli"


@pytest.fixture(scope="session")
def helm(cache):
    def run(*values: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(cache / "bin/helm"), "template", "realcli", str(CHART), "--namespace", "realcli-system"]
        return subprocess.run([*command, *values], capture_output=True, text=True, check=check)

    return run


def objects(rendered: str, kind: str) -> list[dict[str, Any]]:
    return [o for o in yaml.safe_load_all(rendered) if o and o["kind"] == kind]


def rights(role: dict[str, Any]) -> dict[str, list[str]]:
    return {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}


def test_the_operator_may_do_what_it_needs_and_nothing_else(helm):
    role = next(r for r in objects(helm().stdout, "ClusterRole") if r["metadata"]["name"] == "realcli")
    assert rights(role) == {
        "benchmarksweeps": ["get", "list", "watch", "delete"],
        "trials": ["get", "list", "watch", "create"],
        "benchmarksweeps/status": ["patch"],
        "trials/status": ["patch"],
        "pods": ["get", "list", "watch", "create", "delete"],
        "pods/log": ["get"],
        "jobs": ["get", "list", "watch", "create", "delete"],
        "configmaps": ["get", "create"],
        "events": ["create"],
        "benchmarksweeps/finalizers": ["update"],
        "trials/finalizers": ["update"],
    }


def test_users_get_their_rights_through_the_clusters_own_roles(helm):
    roles = {r["metadata"]["name"]: r for r in objects(helm().stdout, "ClusterRole")}
    assert "create" in rights(roles["realcli-edit"])["benchmarksweeps"]
    assert rights(roles["realcli-view"])["trials"] == ["get", "list", "watch"]
    without = objects(helm("--set", "rbac.aggregateToUserRoles=false").stdout, "ClusterRole")
    assert [r["metadata"]["name"] for r in without] == ["realcli"]


def test_watched_namespaces_get_a_binding_each_and_no_cluster_wide_one(helm):
    rendered = helm("--set", "watchNamespaces={one,two}").stdout
    assert objects(rendered, "ClusterRoleBinding") == []
    bound = {(b["metadata"]["namespace"], b["roleRef"]["kind"]) for b in objects(rendered, "RoleBinding")}
    assert bound == {("one", "ClusterRole"), ("two", "ClusterRole")}


def test_the_crds_stay_when_the_release_goes(helm):
    crds = objects(helm().stdout, "CustomResourceDefinition")
    assert sorted(c["metadata"]["name"] for c in crds) == ["benchmarksweeps.realcli.dev", "trials.realcli.dev"]
    assert all(c["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for c in crds)
    assert objects(helm("--set", "crds.install=false").stdout, "CustomResourceDefinition") == []


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("imagez.operator=x", "imagez"),
        ("trials.imageVolumes=Sometimes", "/trials/imageVolumes"),
        ("writesPerSecond=0", "/writesPerSecond"),
        ("images.operator=", "/images/operator"),
    ],
)
def test_values_that_mean_nothing_are_refused(helm, wrong, named):
    done = helm("--set", wrong, check=False)
    assert done.returncode != 0
    assert named in done.stderr


def test_agent_images_are_told_by_program_and_version(helm):
    rendered = helm("--set-json", 'images.agents={"claude-code":{"2.1.140":"example/agent:1"}}').stdout
    container = objects(rendered, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    environment = {e["name"]: e.get("value") for e in container["env"]}
    told = json.loads(environment["REALCLI_AGENT_IMAGES"])
    assert told.pop("claude-code") == {"2.1.140": "example/agent:1"}
    assert told == {"codex": {}, "terminus-2": {}}  # no images of them: a sweep that asks for one is refused by name


def test_the_operators_pod_meets_pod_security_restricted(helm, kubectl):
    deployment = objects(helm().stdout, "Deployment")[0]
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    kubectl.run("label", "namespace", kubectl.namespace, "--overwrite", "pod-security.kubernetes.io/enforce=restricted")
    template = deployment["spec"]["template"]
    template["spec"].pop("serviceAccountName")
    metadata = {"name": "operator", "labels": template["metadata"]["labels"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    assert "created" in kubectl.run("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(pod))
    pod["spec"]["containers"][0]["securityContext"].pop("capabilities")
    with pytest.raises(AssertionError, match="unrestricted capabilities"):
        kubectl.run("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(pod))
