"""Trials on the cluster that go wrong in one way each. Every sweep is applied first, then each test waits for its own."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.kind

# Sends 50 requests at once through the pod's gateway, as a hostile agent could, and reports how they were answered.
PARALLEL = """cat > /tmp/parallel.py <<'PY'
import collections, concurrent.futures, glob, json, os, urllib.error, urllib.request
body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": "MARK"}]}
def ask(number):
    headers = {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
    headers["anthropic-version"] = "2023-06-01"
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    try:
        return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).status
    except urllib.error.HTTPError as error:
        return error.code
with concurrent.futures.ThreadPoolExecutor(50) as pool:
    counts = collections.Counter(pool.map(ask, range(50)))
print("PARALLEL", json.dumps(counts, sort_keys=True))
PY
python3 /tmp/parallel.py | tee /app/out.txt"""

# Everything a root process of the agent container can read of its processes and mounted files.
LOOK_FOR_KEYS = (
    "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | sort -u; ls -laR /var/run /run 2>/dev/null | head -200"
)

BACKGROUND = "setsid sh -c 'while true; do date +%s%N >> /app/out.txt; sleep 0.05; done' >/dev/null 2>&1 & echo started"


@pytest.fixture(scope="module")
def started(s3, make_runs, forward, demo_images) -> Any:
    runs = make_runs()
    image = demo_images["provider"]
    runs.kube.apply(*proxy_objects("proxy", image, hold="/verify-1/seal\\.json$"), *proxy_objects("away", image, hold="^$"))
    proxy = f"http://proxy.{runs.kube.namespace}.svc.cluster.local:8333"
    runs.start("no-image", ["true"], image="realcli.local/tasks/not-there:0")
    runs.start("wrong-storage", ["true"], secret="wrong-s3")
    runs.start("turn-limit", ["echo one", LOOK_FOR_KEYS, PARALLEL.replace("MARK", runs.kube.namespace)], limits={"turns": 5})
    runs.start("deadline", [BACKGROUND, "sleep 600"], limits={"exec": {"deadline": "20s"}})
    runs.kube.run("rollout", "status", "deployment/proxy", "--timeout=120s")
    runs.kube.run("rollout", "status", "deployment/away", "--timeout=120s")
    away = f"http://away.{runs.kube.namespace}.svc.cluster.local:8333"
    until_told = "touch /tmp/waiting; until test -e /tmp/go; do sleep 0.2; done; echo done > /app/out.txt"
    runs.start("storage-away", [until_told], endpoint=away)
    runs.start("seal-kill", ["echo done > /app/out.txt"], endpoint=proxy)
    yield runs
    runs.kube.run("delete", "namespace", runs.kube.namespace, "--wait=false")


def test_a_finished_session_waits_for_storage_and_goes_on(started, tmp_path: Path) -> None:
    kube = started.kube
    name, pod = "storage-away-00000", "storage-away-00000-a1"

    def blocked() -> str | None:
        conditions = kube.get("trial", name)["status"].get("conditions", [])
        return next((item["status"] for item in conditions if item["type"] == "StorageBlocked"), None)

    kube.until("the agent to work", 300, lambda: kube.run("exec", pod, "-c", "agent", "--", "ls", "/tmp/waiting", check=False))
    kube.run("scale", "deployment/away", "--replicas=0")
    kube.run("wait", "pod", "-l", "app=away", "--for=delete", "--timeout=60s")
    kube.run("exec", pod, "-c", "agent", "--", "touch", "/tmp/go")
    kube.until("StorageBlocked", 120, lambda: blocked() == "True")
    assert kube.get("trial", name)["status"]["phase"] == "Working"
    copy = tmp_path / "spool"
    said = started.s3.realcli("ledger", "recover", name, "--namespace", kube.namespace, "--to", str(copy))
    assert "unsealed" in said.stdout + said.stderr
    assert any("done > /app/out.txt" in file.read_text(errors="replace") for file in copy.rglob("*") if file.is_file())
    kube.run("scale", "deployment/away", "--replicas=1")
    trial = started.trial("storage-away")
    assert (trial["status"]["phase"], trial["status"]["reason"], trial["status"]["reward"]) == ("Sealed", "Completed", "1")
    assert blocked() == "False"
    waits = [event["data"]["state"] for event in started.events(trial) if event["kind"] == "storage"]
    assert waits[-2:] == ["blocked", "back"]


def test_wrong_storage_credentials_are_said_and_nothing_starts(started) -> None:
    sweep = started.kube.sweep_ended("wrong-storage", 180)
    assert sweep["status"]["state"] == "Failed"
    ready = condition(sweep, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "StorageRefused")
    assert "credentials Secret" in ready["message"]
    assert started.kube.list("trials", "realcli.dev/sweep=wrong-storage") == []
    assert [
        pod["metadata"]["labels"]["realcli.dev/role"] for pod in started.kube.list("pods", "realcli.dev/sweep=wrong-storage")
    ] in (
        [],
        ["plan"],
    )


def test_the_turn_limit_holds_against_fifty_requests_at_once(started, demo_kube) -> None:
    trial = started.trial("turn-limit")
    assert (trial["status"]["phase"], trial["status"]["reason"]) == ("Sealed", "TurnLimit")
    assert trial["status"]["turns"] == 5
    events = started.events(trial)
    requests = [event for event in events if event["kind"] == "model_request"]
    assert sum(event["data"]["counted"] for event in requests) == 5
    probes = [event for event in requests if 0 < event["data"]["bodyBytes"] < 400]
    # the first refusal ends the work, so how many of the others still meet an open gateway is a matter of time
    assert 3 <= len(probes) <= 50
    passed = [event for event in probes if event["data"]["counted"]]
    assert [event["turn"] for event in passed] == [4, 5]
    refused = {event["data"]["refused"] for event in probes if not event["data"]["counted"]}
    assert {"turn_limit"} <= refused <= {"turn_limit", "work_over"}
    seen = provider_record(started, demo_kube)
    probe = [{"role": "user", "content": started.kube.namespace}]
    at_provider = [entry for entry in seen["last"] if (entry["body"] or {}).get("messages") == probe]
    real = demo_kube.secret("provider", "api-key")
    assert [entry["key"] for entry in at_provider] == [hashlib.sha256(real.encode()).hexdigest()] * 2
    assert seen["keys"].keys() == {hashlib.sha256(real.encode()).hexdigest()}


def test_the_agent_container_never_holds_the_real_key(started, demo_kube, s3) -> None:
    trial = started.trial("turn-limit")
    (looked,) = [
        event for event in started.events(trial) if event["kind"] == "tool_result" and "ANTHROPIC_API_KEY" in json.dumps(event)
    ]
    shown = started.text(trial, looked["data"]["text"])
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:8317" in shown
    # had the key stood in what the agent saw, the ledger would have redacted it by value
    assert demo_kube.secret("provider", "api-key") not in shown
    assert "[redacted]" not in shown
    assert "AWS_" not in shown


def test_a_deadline_is_valid_and_nothing_writes_after_quiesce(started) -> None:
    trial = started.trial("deadline")
    assert (trial["status"]["phase"], trial["status"]["reason"]) == ("Sealed", "Deadline")
    assert trial["status"]["limit"] == "deadline"
    assert trial["status"]["reward"] == "1"
    events = started.events(trial)
    (quiesce,) = [event for event in events if event["kind"] == "quiesce"]
    assert quiesce["data"]["survivors"] == []
    assert any("date +%s%N" in line for line in quiesce["data"]["stopped"]), quiesce
    lines = started.state_file(trial, "app/out.txt").decode().split()
    assert len(lines) > 20
    last_write = int(lines[-1]) / 1e9
    assert last_write <= epoch(quiesce["t"]) + 0.001  # the ledger's clock counts milliseconds
    (limit,) = [event for event in events if event["kind"] == "limit"]
    assert limit["data"]["limit"] == "deadline"


def test_an_image_that_does_not_exist_is_invalid_and_never_zero(started) -> None:
    sweep = started.kube.sweep_ended("no-image", 420)
    assert sweep["status"]["state"] == "Incomplete"
    (trial,) = started.kube.list("trials", "realcli.dev/sweep=no-image")
    assert (trial["status"]["phase"], trial["status"]["reason"]) == ("Invalid", "ImageUnavailable")
    assert "reward" not in trial["status"]
    assert "not-there" in trial["status"]["message"]
    assert "rExec" not in sweep["status"]


def test_a_session_killed_between_verdict_and_seal_gives_no_outcome(started, forward) -> None:
    kube = started.kube
    name = "seal-kill-00000"
    with forward(kube, "service/proxy", 8333) as proxy:

        def held() -> list[str]:
            return [path for path in ask(f"{proxy}/_held") if path.endswith("verify-1/seal.json")]

        kube.until("the seal of the first verify to be held back", 300, held)
        assert kube.get("trial", name)["status"]["phase"] == "Verifying"
        started.kill(f"{name}-a1-v1", "session")
        kube.until("the second verify pod", 120, lambda: kube.get("trial", name)["status"].get("verifyAttempt") == 2)
        assert kube.get("trial", name)["status"]["phase"] == "Verifying"
    trial = started.trial("seal-kill")
    assert (trial["status"]["phase"], trial["status"]["reason"], trial["status"]["reward"]) == ("Sealed", "Completed", "1")
    assert trial["status"]["verifyAttempt"] == 2
    assert trial["status"]["attempt"] == 1
    names = started.names(trial)
    assert "verify-1/verdict.json" in names
    assert "verify-1/seal.json" not in names
    assert "verify-2/seal.json" in names


# -- helpers -------------------------------------------------------------------------------------------------------------


def condition(sweep: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [item for item in sweep["status"]["conditions"] if item["type"] == kind]
    return found


def epoch(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())


def provider_record(started: Any, demo_kube: Any) -> dict[str, Any]:
    with started.forward(demo_kube, "service/provider", 8080) as address:
        found: dict[str, Any] = ask(f"{address}/requests")
        return found


def proxy_objects(name: str, image: str, hold: str) -> list[dict[str, Any]]:
    """A pass-through of that name in front of the storage; it keeps the uploads back whose path matches `hold`."""
    program = (Path(__file__).parent / "proxy.py").read_text()
    upstream = "http://seaweedfs.realcli-demo.svc.cluster.local:8333"
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "/proxy/proxy.py", upstream, "8333", hold],
        "readinessProbe": {"tcpSocket": {"port": 8333}, "periodSeconds": 1},
        "volumeMounts": [{"name": "proxy", "mountPath": "/proxy"}],
    }
    volume = {"name": "proxy", "configMap": {"name": "proxy"}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1, "volumes": [volume]}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "proxy"}, "data": {"proxy.py": program}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": {"app": name}, "ports": [{"port": 8333}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
            },
        },
    ]
