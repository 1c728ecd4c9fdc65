"""A kubelet of one page.

There is no scheduler and no kubelet: `StubKubelet` binds pods to a node that is only an object, moves them through their
phases with scripted ends and termination messages, and serves the plan Job's log on the port which that node names.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from realcli.api.plan import PLAN_BEGIN, PLAN_END, Plan, PlanConfiguration, PlanTask, Platform, encode_plan
from realcli.api.source import ModeEnds, PlanSource
from realcli.api.termination import Result, Termination, parse_termination
from realcli_operator.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from realcli_operator.kube.names import LABEL_ATTEMPT, LABEL_ROLE, LABEL_SWEEP, LABEL_TRIAL
from realcli_operator.kube.transport import ClientSettings, Transport

NODE = "stub"
GROUP = "/apis/realcli.dev/v1alpha1/namespaces"
Json = dict[str, Any]


def say(phase: str, result: Result, **values: Any) -> str:
    return Termination.model_validate({"phase": phase, "result": result} | values).encode(4096).decode()


class Client:
    """A client for the kubelet's own thread."""

    def __init__(self, plane: Any) -> None:
        settings = ClientSettings(writes_per_second=1e6, write_burst=1000, tries=30, retry_cap=2.0)
        self.transport = Transport(plane.configuration(), settings)

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        raw = await self.transport.request(method, path, resource="test", body=body, content_type=content_type)
        return json.loads(raw)

    async def merge(self, path: str, body: Any) -> Any:
        return await self.send("PATCH", path, body, "application/merge-patch+json")


@dataclass(frozen=True)
class Seen:
    """What a script decides on. ``sealed``: the seal that storage holds of this attempt."""

    role: str
    trial: str
    attempt: str
    name: str
    pod: Json
    sealed: str | None = None

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def own_seal(self) -> str:
        """A seal that no other pod writes."""
        return "sha256:" + hashlib.sha256(self.pod["metadata"]["uid"].encode()).hexdigest()


@dataclass(frozen=True)
class Act:
    """What happens to a pod now: it ends with a message, waits for a reason, gets no node, or (none of these) runs.

    ``plan``: the line that a plan Job prints; without one the plan is `plan_of` the pod.
    """

    message: str | None = None
    plan: str | None = None
    waiting: tuple[str, str] | None = None
    unscheduled: bool = False


@dataclass(frozen=True)
class Ended:
    """How a pod ended by itself. ``owner``: its trial, or its Job; ``message``: what it said, None: nothing that can be read."""

    namespace: str
    sweep: str
    role: str
    owner: str
    attempt: str
    pod: str
    message: Termination | None


Script = Callable[[Seen], Act | None]


def happy(seen: Seen) -> Act:
    """Everything goes well."""
    match seen.role:
        case "plan":
            return Act(say("Plan", Result.PLANNED, seal=plan_of(seen.pod).content_digest()))
        case "work" if seen.sealed not in (None, seen.own_seal):  # an earlier pod of this name; nothing is overwritten
            return Act(say("Work", Result.WORK_INVALID, reason="StorageUnavailable", message="another's objects are there"))
        case "work":
            counts = {"turns": 7, "tokens": {"input": 100, "output": 20}, "workingSeconds": "12.5", "node": NODE}
            return Act(say("Work", Result.WORK_SEALED, reason="Completed", seal=seen.own_seal, **counts))
        case "verify" if seen.sealed is None:
            return Act(say("Verify", Result.NO_WORK_SEAL, message="no work seal in storage"))
        case "verify":
            values = {"reason": "Completed", "workEnd": "Completed", "reward": "1", "checks": {"passed": 8, "total": 8}}
            return Act(say("Verify", Result.VERDICT, seal=seen.own_seal, workSeal=seen.sealed, **values))
        case "control":
            return Act(say("Control", Result.CONTROL_PASSED, reward="1", seal=seen.own_seal))
        case "judge":
            return Act(say("Judge", Result.JUDGED, seal="sha256:" + "7" * 64))
    row = {"configuration": "claude-code.sonnet", "rExec": "1.000", "rCollab": "1.000", "s": "0.500~", "j": "0.500"}
    return Act(say("Report", Result.REPORTED, scores=[row], uri="s3://evals/report/index.html", seal="sha256:" + "8" * 64))


def plan_of(pod: Json) -> Plan:
    """What a plan Job would plan: one task of the given sweep, once."""
    environment = {env["name"]: env.get("value") for env in pod["spec"]["containers"][-1]["env"]}
    asked = json.loads(environment["REALCLI_SWEEP"])
    return Plan(
        sweep_uid=asked["sweep"]["uid"], root=f"sweeps/{asked['sweep']['namespace']}/{asked['sweep']['name']}",
        lock_digest="sha256:" + "1" * 64, benchmark_digest="sha256:" + "2" * 64,
        platform=Platform.model_validate(asked["platform"]),
        tasks=[PlanTask(name="log-triage", image="example/task:1", verifier_seconds=60)],
        configurations=[
            PlanConfiguration(
                name="claude-code.sonnet", agent="claude-code", program="claude-code", agent_version="2.1.140", model="sonnet"
            )
        ],
        modes=sorted(asked["spec"]["modes"]), repeats=asked["spec"]["repeats"],
        source=source_of(asked),
    )  # fmt: skip


def source_of(asked: Json) -> PlanSource | None:
    """With `spec.from`: all trials of the source are valid."""
    given = asked["spec"].get("from")
    if given is None:
        return None
    ends = ModeEnds(sealed=asked["spec"]["repeats"])
    name = f"{asked['sweep']['namespace']}/{given.get('sweep', 'gone')}"
    return PlanSource(sweep=name, verify="Verify" in given["phases"], exec=ends, collab=ends)


@dataclass
class StubKubelet:
    """Runs in a thread with its own event loop. ``scripts`` by sweep name; without one all goes well.

    ``nodes``: pods go to them in turn; what happens to the pods of a node in ``dead`` nobody confirms.
    """

    plane: Any
    folder: Path
    namespaces: set[str] = field(default_factory=set)
    scripts: dict[str, Script] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    """Names of pods in the order in which they ran."""
    ran: list[tuple[str, str, str]] = field(default_factory=list)
    """Namespace, name and uid, likewise."""
    ended: list[Ended] = field(default_factory=list)
    """Pods in the order in which they ended by themselves."""
    bucket: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """Storage: (namespace, trial, attempt) -> the seal that was stored first."""
    nodes: list[str] = field(default_factory=lambda: [NODE])
    dead: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    _logs: dict[tuple[str, str], str] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _turn: Iterator[int] = field(default_factory=itertools.count)
    _stop: threading.Event = field(default_factory=threading.Event)
    _ready: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        certificate, key = self.folder / "kubelet.crt", self.folder / "kubelet.key"
        subject = ["-subj", "/CN=stub", "-addext", "subjectAltName=IP:127.0.0.1"]
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        subprocess.run([*new, "-keyout", key, "-out", certificate, *subject], check=True, capture_output=True)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="stub-kubelet")
        self._thread.start()
        assert self._ready.wait(60)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        runner, port = await self._serve_logs()
        self.admin = Client(self.plane)
        await self._register(port)
        self._ready.set()
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                await self._look()
            except Exception as error:
                self.errors.append(repr(error))
            await asyncio.sleep(max(0.05, time.monotonic() - began))  # at most half of one processor
        await self.admin.transport.close()
        await runner.cleanup()

    async def _serve_logs(self) -> tuple[web.AppRunner, int]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "kubelet.crt", self.folder / "kubelet.key")

        async def log(request: web.Request) -> web.Response:
            text = self._logs.get((request.match_info["namespace"], request.match_info["pod"]))
            answer = web.Response(text=text) if text is not None else web.Response(status=404, text="no such log")
            answer.force_close()  # the API server would keep a connection for each until the loop is gone
            return answer

        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", log)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        server = site._server
        assert isinstance(server, asyncio.Server)
        return runner, server.sockets[0].getsockname()[1]

    async def _register(self, port: int) -> None:
        self._port = port
        for node in self.nodes:
            await self.register(self.admin, node)

    async def register(self, admin: Any, node: str) -> None:
        """A node, as an object; the logs of its pods are asked for on the stub's port."""
        with contextlib.suppress(AlreadyExists):  # that of an earlier stub
            await admin.send("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
        }
        await admin.merge(f"/api/v1/nodes/{node}/status", {"status": status})

    async def _look(self) -> None:
        """Pods that have not ended: one that has goes at once when it is deleted."""
        selector = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Drealcli"
        living = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
        pods = (await self.admin.send("GET", f"/api/v1/pods?{selector}&{living}"))["items"]
        slots = asyncio.Semaphore(4)

        async def move(pod: Json) -> None:
            async with slots:
                with contextlib.suppress(NotFound, Conflict, Invalid):  # it changed or went under our hands: look again
                    await self._move(pod["metadata"]["namespace"], pod)

        await asyncio.gather(*(move(pod) for pod in pods if self._is_ours(pod)))

    def _is_ours(self, pod: Json) -> bool:
        """Pods named junk-… have been given their status by a test."""
        metadata = pod["metadata"]
        if metadata["name"].startswith("junk-"):
            return False
        made_by_us = {LABEL_ROLE, LABEL_SWEEP} <= metadata["labels"].keys() or "deletionTimestamp" in metadata
        return made_by_us and metadata["namespace"] in self.namespaces and pod["spec"].get("nodeName") not in self.dead

    async def _move(self, namespace: str, pod: Json) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{namespace}/pods/{metadata['name']}"
        phase = pod["status"].get("phase")
        if metadata.get("deletionTimestamp"):
            if phase not in {"Succeeded", "Failed"}:
                await self._write(path, pod, "Failed", lambda name: _terminated(137, ""))
            await self.admin.send("DELETE", path, {"gracePeriodSeconds": 0})
            return
        if phase in {"Succeeded", "Failed"} or metadata["uid"] in self._ended:
            return
        labels = metadata["labels"]
        trial, attempt = labels.get(LABEL_TRIAL, ""), labels.get(LABEL_ATTEMPT, "1")
        place = (namespace, trial, attempt)
        seen = Seen(labels[LABEL_ROLE], trial, attempt, metadata["name"], pod, self.bucket.get(place))
        act = self.scripts.get(labels[LABEL_SWEEP], happy)(seen)
        if act is not None and act.unscheduled:
            return
        if not pod["spec"].get("nodeName"):
            living = [node for node in self.nodes if node not in self.dead]
            node = living[next(self._turn) % len(living)]
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            await self.admin.send("POST", f"{path}/binding", {"metadata": {"name": metadata["name"]}, "target": target})
            pod["spec"]["nodeName"] = node
        if act is not None and act.waiting is not None:
            reason, message = act.waiting
            if not any(c.get("state", {}).get("waiting") for c in pod["status"].get("containerStatuses", ())):
                await self._write(path, pod, "Pending", lambda name: {"waiting": {"reason": reason, "message": message}})
            return
        if phase != "Running":
            await self._write(path, pod, "Running", lambda name: {"running": {"startedAt": _now()}})
            self.history.append(metadata["name"])  # after the write: who has seen it here finds its containers there
            self.ran.append((namespace, metadata["name"], metadata["uid"]))
        if act is None:
            return
        if seen.role == "plan":
            lines = ["reading the benchmark", PLAN_BEGIN, act.plan or encode_plan(plan_of(pod)), PLAN_END, "done"]
            self._logs[(namespace, metadata["name"])] = "\n".join(lines)
        main = pod["spec"]["containers"][-1]["name"]
        message = act.message or ""
        said = parse_termination(message)
        if said is not None and said.result is Result.WORK_SEALED and said.seal is not None:
            self.bucket.setdefault(place, said.seal)
        ended = await self._write(path, pod, "Succeeded", lambda name: _terminated(0, message if name == main else ""))
        self._ended.add(metadata["uid"])
        owner = trial or labels.get("batch.kubernetes.io/job-name", "")
        self.ended.append(Ended(namespace, labels[LABEL_SWEEP], seen.role, owner, attempt, metadata["name"], said))
        if ended["metadata"].get("deletionTimestamp"):  # it was deleted while it ended: nobody else would confirm that
            await self.admin.send("DELETE", path, {"gracePeriodSeconds": 0})

    async def _write(self, path: str, pod: Json, phase: str, state: Callable[[str], Json]) -> Json:
        statuses = [
            {
                "name": c["name"], "image": c["image"], "imageID": "", "ready": phase == "Running", "restartCount": 0,
                "state": state(c["name"]),
            }
            for c in pod["spec"]["containers"]
        ]  # fmt: skip
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _now()}
        disrupted = [c for c in pod["status"].get("conditions", ()) if c["type"] == "DisruptionTarget"]
        status = {
            "phase": phase, "startTime": scheduled["lastTransitionTime"], "conditions": [scheduled, *disrupted],
            "containerStatuses": statuses,
        }  # fmt: skip
        written: Json = await self.admin.merge(f"{path}/status", {"status": status})
        return written


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _terminated(code: int, message: str) -> Json:
    reason = "Completed" if code == 0 else "Error"
    ended = {"exitCode": code, "reason": reason, "startedAt": _now(), "finishedAt": _now()}
    return {"terminated": ended | ({"message": message} if message else {})}
