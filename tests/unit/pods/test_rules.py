"""The rules that every pod of ours keeps, and the parts that are programs of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from realcli.api.plan import decode_plan
from realcli.api.sweep import Limits
from realcli.ledger.reserve import RESERVE_BYTES
from realcli_operator.kube.names import ANNOTATION_SPEC_DIGEST
from realcli_operator.pods.budget import verify_deadline, verify_seconds, work_deadline
from realcli_operator.pods.labels import label_value
from realcli_operator.pods.parts import BuildError
from realcli_operator.pods.placing import avoiding
from realcli_operator.pods.prepare import COPY_TREE, PREPARE
from realcli_operator.pods.probe import image_volumes_survived, probe_pod, user_namespaces_survived
from realcli_operator.reconcile.plans import PodIntent, Task
from realcli_session.phases import limits

UNTRUSTED = {"agent", "verifier"}


def specs(make: Any) -> dict[str, Any]:
    pods = {"work": make.work(), "verify": make.verify(), "plain": make.work(image_volumes=False, user_namespaces=False)}
    jobs = {task.value: make.job(task)["spec"]["template"] for task in Task}
    return {name: manifest["spec"] for name, manifest in (pods | jobs).items()}


def containers(spec: Any) -> list[Any]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def mounts(container: Any) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def test_a_session_cannot_be_made_to_keep_more_than_its_volume_takes(make: Any) -> None:
    """A pod whose spool is over its limit is evicted, and the attempt with it: no agent may bring that about."""
    task_files = 256 << 20
    most = (
        limits.STATE_BYTES + limits.LEDGER_WAITING + limits.SNAPSHOTS_BYTES + limits.SNAPSHOT_BYTES + RESERVE_BYTES + task_files
    )
    spec = make.work()["spec"]
    (spool,) = [volume["emptyDir"]["sizeLimit"] for volume in spec["volumes"] if volume["name"] == "spool"]
    session = next(one for one in spec["containers"] if one["name"] == "session")
    assert most < _bytes(spool) < _bytes(session["resources"]["limits"]["ephemeral-storage"])


def _bytes(quantity: str) -> int:
    return int(quantity.removesuffix("Gi")) << 30


def test_no_pod_can_talk_to_the_api_server_or_be_restarted(make: Any) -> None:
    for name, spec in specs(make).items():
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["restartPolicy"] == "Never", name
        assert not any(volume.keys() & {"hostPath", "csi"} for volume in spec["volumes"]), name
        projected = [source for volume in spec["volumes"] for source in volume.get("projected", {}).get("sources", ())]
        assert all(source.keys() == {"secret"} for source in projected), name


def test_keys_and_secrets_reach_the_session_alone(make: Any) -> None:
    spec = make.own_work()["spec"]
    agent, session = spec["containers"]
    assert {"/keys", "/setup-secrets"} <= mounts(session).keys()
    assert not {"keys", "setup-secrets"} & set(mounts(agent).values())
    sources = next(volume for volume in spec["volumes"] if volume["name"] == "keys")["projected"]["sources"]
    assert [s["secret"]["items"][0]["path"] for s in sources] == ["responses", "user"]
    in_exec = next(v for v in make.own_work(1)["spec"]["volumes"] if v["name"] == "keys")["projected"]["sources"]
    assert [s["secret"]["items"][0]["path"] for s in in_exec] == ["responses"]  # nobody words anything in EXEC


def test_tool_images_are_read_only_and_of_the_agent_alone(make: Any) -> None:
    for platform in ({}, {"image_volumes": False}):
        agent, session = make.own_work(**platform)["spec"]["containers"]
        assert {"name": "tool-0", "mountPath": "/opt/tools", "readOnly": True} in agent["volumeMounts"]
        assert "tool-0" not in mounts(session).values()


def test_only_a_task_with_setuid_programs_may_gain_privileges_and_then_commands_are_not_recorded(make: Any) -> None:
    with_setuid, without = make.own_work()["spec"]["containers"][0], make.work()["spec"]["containers"][0]
    assert with_setuid["securityContext"]["allowPrivilegeEscalation"] is True
    assert "--no-exec-record" in with_setuid["command"]
    assert without["securityContext"]["allowPrivilegeEscalation"] is False
    assert "--no-exec-record" not in without["command"]


def test_only_a_task_with_mock_hosts_opens_low_ports(make: Any) -> None:
    assert "sysctls" not in make.work()["spec"]["securityContext"]
    (sysctl,) = make.own_work()["spec"]["securityContext"]["sysctls"]
    assert sysctl == {"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}


def test_every_container_is_confined(make: Any) -> None:
    for name, spec in specs(make).items():
        for container in containers(spec):
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False, name
            assert security["privileged"] is False, name
            assert security["capabilities"]["drop"] == ["ALL"], name
            assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
            if container["name"] in UNTRUSTED:
                assert security["runAsUser"] == 0
                assert "NET_RAW" not in security["capabilities"]["add"]
                assert "SYS_PTRACE" not in security["capabilities"]["add"]
            else:
                assert (security["runAsUser"], security["runAsNonRoot"]) == (10001, True), name
                assert security["readOnlyRootFilesystem"] is True
                assert "add" not in security["capabilities"]


def test_the_untrusted_container_gets_no_secret_and_no_environment(make: Any) -> None:
    for name in ("work", "verify", "plain"):
        spec = specs(make)[name]
        untrusted = next(c for c in spec["containers"] if c["name"] in UNTRUSTED)
        assert "env" not in untrusted
        secret = {volume["name"] for volume in spec["volumes"] if "secret" in volume}
        private = {"spool", "tmp", "prepared", "files-session", "shm-session"}
        assert not set(mounts(untrusted).values()) & (secret | private), name


def test_each_container_has_its_own_hosts_resolver_and_shared_memory(make: Any) -> None:
    for name in ("work", "verify"):
        first, session = specs(make)[name]["containers"]
        for path in ("/etc/hosts", "/etc/resolv.conf", "/dev/shm"):
            assert mounts(first)[path] != mounts(session)[path], (name, path)
        assert all(m.get("readOnly") for m in session["volumeMounts"] if m["mountPath"].startswith("/etc/"))


def test_every_volume_is_used_and_bounded(make: Any) -> None:
    for name, spec in specs(make).items():
        used = {mount["name"] for container in containers(spec) for mount in container["volumeMounts"]}
        assert {volume["name"] for volume in spec["volumes"]} == used, name
        assert all(volume["emptyDir"]["sizeLimit"] for volume in spec["volumes"] if "emptyDir" in volume), name


def test_every_container_has_a_disk_limit_so_that_none_is_charged_to_the_agent(make: Any) -> None:
    for name in ("work", "verify"):
        for container in specs(make)[name]["containers"]:
            assert "ephemeral-storage" in container["resources"]["limits"], (name, container["name"])


def test_only_the_work_session_holds_the_provider_key(make: Any) -> None:
    all_specs = specs(make)
    work = {c["name"]: mounts(c) for c in containers(all_specs["work"])}
    assert [name for name, held in work.items() if "keys" in held.values()] == ["session"]
    assert not any("keys" in mounts(c).values() for c in containers(all_specs["verify"]))
    names = {name: {env["name"] for env in spec["containers"][0].get("env", ())} for name, spec in all_specs.items()}
    assert "REALCLI_KEY_0_ANTHROPIC" in names["plan"]
    assert not any("KEY_0" in env for env in names["judge"] | names["report"])


def test_user_namespaces_and_image_volumes_follow_the_plan(make: Any) -> None:
    modern, plain = make.work()["spec"], make.work(image_volumes=False, user_namespaces=False)["spec"]
    assert modern["hostUsers"] is False
    assert "hostUsers" not in plain
    image = next(volume for volume in modern["volumes"] if volume["name"] == "toolkit")
    assert image["image"]["reference"] == "agent:1"
    copy = next(c for c in plain["initContainers"] if c["name"] == "toolkit")
    assert copy["image"] == "agent:1"
    verify = next(volume for volume in make.verify()["spec"]["volumes"] if volume["name"] == "toolkit")
    assert verify["image"]["reference"] == "toolkit:1"


def test_the_digest_tells_specs_apart_but_not_runs_of_one_job(make: Any) -> None:
    def digest(manifest: Any) -> str:
        return str(manifest["metadata"]["annotations"][ANNOTATION_SPEC_DIGEST])

    assert digest(make.work()) == digest(make.work())
    assert digest(make.work()) != digest(make.work(user_namespaces=False))
    assert digest(make.verify()) != digest(make.pod(PodIntent(1, 1)))
    assert digest(make.job(Task.PLAN)) == digest(make.job(Task.PLAN, attempt=2))


def test_what_is_not_in_the_plan_cannot_be_built(make: Any) -> None:
    with pytest.raises(BuildError, match=r"no image for agent claude-code/2\.1\.140; the operator has: none"):
        make.work(images={"session": "s", "judge": "j", "toolkit": "t", "agents": {}})


def test_the_plan_survives_its_config_map(make: Any) -> None:
    manifest = make.config_map()
    assert manifest["immutable"] is True
    assert decode_plan(manifest["data"]["plan"]) == make.context().plan


def test_the_last_resort_comes_after_every_budget() -> None:
    limits = Limits()
    hours = 3600
    assert work_deadline(limits, "EXEC") == 900 + 6 * 1.5 * hours + 1800 + 24 * hours
    assert work_deadline(limits, "COLLAB") == 900 + 10 * 1.5 * hours + 1800 + 24 * hours
    assert verify_seconds(limits, 60) == 60
    assert verify_seconds(limits, 9999) == 1800
    assert verify_deadline(limits, 60) == 900 + 60 + 1800 + 1 * hours
    short = Limits(spool_hold="30m")
    assert work_deadline(short, "EXEC") == 900 + 6 * 1.5 * hours + 1800 + 1800


@pytest.mark.parametrize(
    ("text", "value"),
    [("claude-code.sonnet", "claude-code.sonnet"), ("x" * 63, "x" * 63)],
)
def test_label_safe_values_stay(text: str, value: str) -> None:
    assert label_value(text) == value


@pytest.mark.parametrize("text", ["x" * 64, "a/b", "", "-a", "a b"])
def test_other_values_are_hashed(text: str) -> None:
    assert label_value(text).startswith("h-")
    assert len(label_value(text)) == 18


class TestPrepare:
    def run(self, tmp_path: Path, *, ca: bool) -> str:
        etc, copies, secret = tmp_path / "etc", tmp_path / "copies", tmp_path / "secret"
        for folder in (etc, copies / "agent", copies / "session", secret):
            folder.mkdir(parents=True)
        (etc / "hosts").write_text("127.0.0.1 localhost\n")
        (etc / "resolv.conf").write_text("nameserver 10.96.0.10\n")
        if ca:
            (secret / "ca.crt").write_text("-----OUR CA-----\n")
        bundle = tmp_path / "ca.pem"
        arguments = [str(etc), str(copies), str(secret), str(bundle)]
        subprocess.run([sys.executable, "-c", PREPARE, *arguments], check=True, timeout=60)
        for name in ("agent", "session"):
            assert (copies / name / "hosts").read_text() == "127.0.0.1 localhost\n"
            assert (copies / name / "resolv.conf").stat().st_mode & 0o777 == 0o644
        return bundle.read_text()

    def test_the_usual_authorities_are_always_there(self, tmp_path: Path) -> None:
        text = self.run(tmp_path, ca=False)
        assert text.count("BEGIN CERTIFICATE") > 50
        assert "OUR CA" not in text

    def test_the_own_authority_is_added(self, tmp_path: Path) -> None:
        text = self.run(tmp_path, ca=True)
        assert text.count("BEGIN CERTIFICATE") > 50
        assert "-----OUR CA-----" in text

    def test_the_tree_is_copied_and_nothing_else(self, tmp_path: Path) -> None:
        source, target = tmp_path / "image", tmp_path / "target"
        for folder in ("bin", "lib", "runner", "proc", "etc"):
            (source / folder).mkdir(parents=True)
            (source / folder / "file").write_text(folder)
        (source / "lib" / "link").symlink_to("file")
        target.mkdir()
        subprocess.run([sys.executable, "-I", "-c", COPY_TREE, str(source), str(target)], check=True, timeout=60)
        assert sorted(path.name for path in target.iterdir()) == ["bin", "lib", "runner"]
        assert (target / "lib" / "link").is_symlink()


def test_a_probe_asks_for_one_thing_and_reads_the_answer() -> None:
    users = probe_pod("one", "first", "session:1", user_namespaces=True, image_volumes=False)
    assert user_namespaces_survived(users)
    assert not image_volumes_survived(users)
    images = probe_pod("one", "first", "session:1", user_namespaces=False, image_volumes=True)
    assert image_volumes_survived(images)
    assert not user_namespaces_survived(images)
    del users["spec"]["hostUsers"]  # what an API server with the gate off gives back
    assert not user_namespaces_survived(users)


def test_only_plan_and_judge_jobs_hold_the_judge_s_key(make: Any) -> None:
    manifests = {"plan": make.own_plan(), "judge": make.own_judge(), "work": make.own_work(), "other judge": make.job(Task.JUDGE)}
    assert [name for name, made in manifests.items() if "REALCLI_KEY_JUDGE" in json.dumps(made)] == ["plan", "judge"]
    assert [name for name, made in manifests.items() if '"name": "judge", "key": "key"' in json.dumps(made)] == ["plan", "judge"]


def test_what_a_sweep_says_of_its_pods_reaches_them_and_ours_wins(make: Any) -> None:
    pod = make.placed_work()
    spec, labels = pod["spec"], pod["metadata"]["labels"]
    assert spec["nodeSelector"] == {"pool": "evals", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    assert (spec["runtimeClassName"], spec["priorityClassName"], spec["schedulerName"]) == ("gvisor", "batch-low", "packing")
    assert spec["tolerations"] == [
        {"key": "spot", "operator": "Exists"},
        {"key": "dedicated", "operator": "Equal", "value": "evals", "effect": "NoSchedule"},
    ]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    (spread,) = spec["topologySpreadConstraints"]
    assert spread == {
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"realcli.dev/sweep": "first"}},
    }  # fmt: skip
    assert (labels["team"], labels["realcli.dev/sweep"], labels["kueue.x-k8s.io/queue-name"]) == ("agents", "first", "audits")
    session = next(container for container in spec["containers"] if container["name"] == "session")
    assert session["resources"]["requests"] == {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "256Mi"}


def test_no_autoscaler_takes_the_node_of_a_trial_away(make: Any) -> None:
    for pod in (make.work(), make.verify(), make.placed_work()):
        annotations = pod["metadata"]["annotations"]
        assert annotations["karpenter.sh/do-not-disrupt"] == "true"
        assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert make.placed_work()["metadata"]["annotations"]["cost-centre"] == "42"


def test_a_job_is_placed_too_but_neither_queued_nor_sandboxed(make: Any) -> None:
    job = make.placed_job()
    template = job["spec"]["template"]
    assert template["spec"]["nodeSelector"]["pool"] == "evals"
    assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert not {"runtimeClassName", "topologySpreadConstraints"} & template["spec"].keys()
    assert template["metadata"]["annotations"] == {"cost-centre": "42"}
    assert "kueue.x-k8s.io/queue-name" not in job["metadata"]["labels"] | template["metadata"]["labels"]


def test_a_pod_goes_elsewhere_than_where_attempts_break_and_stays_the_same_pod(make: Any) -> None:
    plain = make.work()
    kept = avoiding(plain, {"n2", "n1"})
    (preferred,) = kept["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [(field["operator"], field["values"]) for field in preferred["preference"]["matchFields"]] == [
        ("NotIn", ["n1"]),
        ("NotIn", ["n2"]),
    ]
    assert kept["metadata"] == plain["metadata"], "the digest too: a second creator finds its own pod"
    assert avoiding(plain, ()) == plain
