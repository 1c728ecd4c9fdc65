"""Trials on the cluster that go wrong in one way each. Every sweep is applied first, then each test waits for its own."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.kind_cluster import LIMIT, ask
from tests.support.kind_runs import PROVIDER, STORAGE, endpoint, proxied

pytestmark = pytest.mark.kind

# Sends 50 requests at once through the pod's gateway, as a hostile agent could, and reports how they were answered.
PARALLEL = """cat > /tmp/parallel.py <<'PY'
import collections, concurrent.futures, glob, json, os, urllib.error, urllib.request
body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": "hello"}]}
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

WRONG_KEY = endpoint(PROVIDER, secret="wrong-provider")

BACKGROUND = "setsid sh -c 'while true; do date +%s%N >> /app/out.txt; sleep 0.05; done' >/dev/null 2>&1 & echo started"


def start(cluster: Any) -> Any:
    runs = cluster.runs
    image = cluster.images["provider"]
    for name, arguments in {"away": ["PUT", "^$"], "proxy": ["PUT", r"/verify-1/seal\.json$"]}.items():
        runs.kube.apply(*proxied(name, image, STORAGE, 8333, arguments))
    runs.kube.apply(*proxied("model", image, PROVIDER, 8080, ["POST", "^/v1/messages$", "1000"]))
    runs.start("no-image", ["true"], image="realcli.local/tasks/not-there:0", cpus="0.05")
    runs.start("wrong-storage", ["true"], secret="wrong-s3")
    runs.start("wrong-judge", ["true"], judge={"model": {"model": "judge-1", "endpoints": {"anthropic": WRONG_KEY}}})
    runs.start("deadline", [BACKGROUND, "sleep 600"], limits={"exec": {"deadline": "20s"}}, cpus="0.5")
    for name in ("away", "proxy", "model"):
        runs.kube.run("rollout", "status", f"deployment/{name}", "--timeout=120s")
    until_told = "touch /tmp/waiting; until test -e /tmp/go; do sleep 0.2; done; echo done > /app/out.txt"
    runs.start("storage-away", [until_told], storage=runs.address("away", 8333), cpus="0.25")
    runs.start("seal-kill", ["echo done > /app/out.txt"], storage=runs.address("proxy", 8333))
    runs.start("turn-limit", ["echo one", LOOK_FOR_KEYS, PARALLEL], limits={"turns": 5}, provider=runs.address("model", 8080))
    return runs


def test_a_finished_session_waits_for_storage_and_goes_on(started, tmp_path: Path) -> None:
    kube = started.kube
    name, pod = "storage-away-00000", "storage-away-00000-a1"

    def blocked() -> str | None:
        conditions = kube.get("trial", name)["status"].get("conditions", [])
        return next((item["status"] for item in conditions if item["type"] == "StorageBlocked"), None)

    kube.until("the agent to work", LIMIT, lambda: kube.run("exec", pod, "-c", "agent", "--", "ls", "/tmp/waiting", check=False))
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


def test_a_session_killed_between_verdict_and_seal_gives_no_outcome(started, forward) -> None:
    kube = started.kube
    name = "seal-kill-00000"
    with forward(kube, "service/proxy", 8333) as proxy:

        def held() -> list[str]:
            return [path for path in ask(f"{proxy}/_seen")["held"] if path.endswith("verify-1/seal.json")]

        kube.until("the seal of the first verify to be held back", LIMIT, held)
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


def test_wrong_storage_credentials_are_said_and_nothing_starts(started) -> None:
    sweep = started.kube.sweep_ended("wrong-storage")
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


def test_a_wrong_key_of_the_judge_is_said_and_nothing_starts(started) -> None:
    sweep = started.kube.sweep_ended("wrong-judge")
    assert sweep["status"]["state"] == "Failed"
    planned = condition(sweep, "Planned")
    assert (planned["status"], planned["reason"]) == ("False", "ConfigurationError")
    for told in ("spec.judge.model", "Secret wrong-provider", "401"):
        assert told in planned["message"], planned
    assert started.kube.list("trials", "realcli.dev/sweep=wrong-judge") == []


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
    with started.forward(started.kube, "service/model", 8080) as proxy:
        seen = ask(f"{proxy}/_seen")
    assert sorted(Counter(seen["passed"]).values()) == [1, 1, 1, 1, 2]  # the plan Job's question, three turns, two of the fifty
    real = demo_kube.secret("provider", "api-key")
    assert seen["keys"] == {hashlib.sha256(real.encode()).hexdigest(): 6}


def test_the_agent_container_never_holds_the_real_key(started, demo_kube) -> None:
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
    sweep = started.kube.sweep_ended("no-image")
    assert sweep["status"]["state"] == "Incomplete"
    (trial,) = started.kube.list("trials", "realcli.dev/sweep=no-image")
    assert (trial["status"]["phase"], trial["status"]["reason"]) == ("Invalid", "ImageUnavailable")
    assert "reward" not in trial["status"]
    assert "not-there" in trial["status"]["message"]
    assert "rExec" not in sweep["status"]


# -- helpers -------------------------------------------------------------------------------------------------------------


def condition(sweep: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [item for item in sweep["status"]["conditions"] if item["type"] == kind]
    return found


def epoch(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
