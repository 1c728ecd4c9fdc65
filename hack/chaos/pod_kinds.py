"""The ends of pods that are recorded: what each pod runs, what is done to it, and when it has ended.

Every pod has the shape of a real work or verify pod (the operator's own builder: containers, volumes, security, limits); only the
images and commands are stand-ins, and requests are small so that many fit one node.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from realcli.api.plan import Images, Plan, PlanConfiguration, PlanTask, Platform, Resources
from realcli.api.sweep import SweepSpec
from realcli.api.termination import Result, Termination
from realcli.api.trial import TrialSpec
from realcli_operator.pods.jobs import trial_manifest
from realcli_operator.pods.parts import SweepContext
from realcli_operator.pods.trial import trial_pod
from realcli_operator.reconcile.plans import PodIntent

Json = dict[str, Any]
NAMESPACE = "ends"
TRIAL = "ends-00000"
DIGEST = "sha256:" + "0" * 64
SEAL = "sha256:" + "5" * 64
VERIFY_SEAL = "sha256:" + "6" * 64
UID = "11111111-2222-3333-4444-555555555555"


class Cluster(Protocol):
    """What a kind may do to its pod."""

    def create(self, manifest: Json) -> None: ...
    def refuse(self, manifest: Json) -> Json: ...
    def delete(self, name: str, grace: int | None = None) -> None: ...
    def evict(self, name: str) -> None: ...
    def patch(self, name: str, patch: Json, subresource: str | None = None) -> None: ...
    def wait(self, name: str, until: Callable[[Json], bool], what: str, seconds: float = 240) -> Json: ...
    def node(self, *command: str) -> str: ...
    def containers(self, name: str) -> dict[str, str]: ...
    def manifest(self, name: str, kind: Kind) -> Json: ...
    def apply(self, manifest: Json) -> None: ...
    def ephemeral(self, name: str) -> None: ...
    def kubelet(self, changes: Json) -> None: ...
    def restart_node(self) -> None: ...
    def add_gone_node(self) -> None: ...


# -- stand-ins for the programs of a pod

SLEEP = "import time; time.sleep(3600)"
COPY = (
    "import pathlib\nfor target in pathlib.Path('/run/copies').iterdir():\n"
    "    for name in ('hosts', 'resolv.conf'): (target / name).write_bytes(pathlib.Path('/etc', name).read_bytes())"
)
"""What the real one does before anything else of a pod can start."""
EAT = "x = []\nwhile True: x.append(bytearray(4 << 20)); x[-1][::4096] = b'x' * len(x[-1][::4096])"
GO = "/run/realcli/go"
TOUCH = f"open('{GO}', 'w').close()\n"
AWAIT = f"import os, time\nwhile not os.path.exists('{GO}'): time.sleep(0.2)\ntime.sleep(3)\n"


def message(phase: str, result: Result, **values: Any) -> str:
    return Termination.model_validate({"phase": phase, "result": result} | values).encode(4096).decode()


def sealed(reason: str, **values: Any) -> str:
    given = {"seal": SEAL, "turns": 7, "cost_usd": "0.25"} | values
    return message("Work", Result.WORK_SEALED, reason=reason, **given)


def invalid(reason: str, text: str = "as told", **values: Any) -> str:
    return message("Work", Result.WORK_INVALID, reason=reason, message=text, **values)


def verdict(reward: str = "1") -> str:
    return message(
        "Verify", Result.VERDICT, reason="Completed", work_end="Completed", reward=reward, seal=VERIFY_SEAL, work_seal=SEAL
    )


def no_verdict(reason: str) -> str:
    return message("Verify", Result.NO_VERDICT, reason=reason, message="no reward file")


def says(text: str, code: int = 0) -> str:
    """A program that leaves this termination message."""
    return f"import os\nopen('/dev/termination-log', 'w').write({text!r})\nos._exit({code})"


def exits(code: int) -> str:
    return f"import os; os._exit({code})"


def told(text: str) -> str:
    """A program that leaves its message when it is told to end."""
    return (
        "import os, signal, time\n"
        f"def end(*_):\n    open('/dev/termination-log', 'w').write({text!r})\n    os._exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\ntime.sleep(3600)"
    )


OBEDIENT = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\ntime.sleep(3600)"


def writes(path: str, mebibytes: int) -> str:
    return (
        f"import time\nwith open('{path}', 'wb') as f:\n    for _ in range({mebibytes}): f.write(b'x' * (1 << 20))\n"
        "time.sleep(3600)"
    )


# -- the pod


def context(image: str) -> SweepContext:
    images = Images(session=image, judge=image, toolkit=image, agents={"claude-code/2.1.140": image})
    platform = Platform(operator_version="recorded", images=images, user_namespaces=False, image_volumes=False)
    plan = Plan(
        sweep_uid=UID, root="sweeps/ends/ends-11111111", lock_digest=DIGEST, benchmark_digest=DIGEST, platform=platform,
        tasks=[PlanTask(name="task", image=image, verifier_seconds=600, resources=Resources(cpu="1", memory="256Mi"))],
        configurations=[
            PlanConfiguration(
                name="claude-code.model", agent="claude-code", program="claude-code", agent_version="2.1.140", model="model"
            )
        ],
        modes=["EXEC"], repeats=1,
    )  # fmt: skip
    key = {"secretRef": {"name": "keys", "key": "api-key"}}
    spec = SweepSpec.model_validate(
        {
            "benchmark": {"source": "s3://evals/benchmarks/starter/1.0.0"},
            "agents": [{"name": "claude-code"}],
            "models": [
                {"name": "model", "model": "model", "endpoints": {"anthropic": {"url": "https://example.invalid", "apiKey": key}}}
            ],
            "storage": {"bucket": "evals", "credentials": {"secretRef": {"name": "storage"}}},
            "modes": ["EXEC"],
        }
    )
    return SweepContext(NAMESPACE, "ends", UID, spec, platform, "IfNotPresent", plan)


def trial(image: str) -> Json:
    made = trial_manifest(context(image), 0)
    del made["metadata"]["ownerReferences"]  # there is no sweep
    return made


def pod(image: str, trial_uid: str, kind: Kind, attempt: int) -> Json:
    """The manifest of a kind, under a name of its own."""
    where = context(image)
    spec = TrialSpec.model_validate(trial(image)["spec"])
    intent = PodIntent(attempt, 1, SEAL) if kind.verify else PodIntent(attempt)
    made = copy.deepcopy(trial_pod(where, spec, TRIAL, trial_uid, intent))
    body = made["spec"]
    programs = {"agent": kind.agent, "verifier": kind.agent, "session": kind.session, "prepare": kind.prepare, "toolkit": "pass"}
    for container in (*body["initContainers"], *body["containers"]):
        container["command"] = ["python3", "-c", programs[container["name"]]]
        container.pop("args", None)
        container.pop("readinessProbe", None)
        container["resources"]["requests"].update({"cpu": "5m", "memory": "16Mi", "ephemeral-storage": "1Mi"})
        if container["name"] in ("agent", "verifier"):
            container["resources"]["limits"]["cpu"] = "500m"
    body["terminationGracePeriodSeconds"] = 5
    if kind.change is not None:
        kind.change(made)
    return made


def container(made: Json, name: str) -> Json:
    body = made["spec"]
    return next(c for c in (*body["initContainers"], *body["containers"]) if c["name"] == name)


def limit(name: str, **limits: str) -> Callable[[Json], None]:
    def change(made: Json) -> None:
        container(made, name)["resources"]["limits"].update({k.replace("_", "-"): v for k, v in limits.items()})

    return change


def volume(made: Json, name: str) -> Json:
    return next(v for v in made["spec"]["volumes"] if v["name"] == name)


# -- when it has ended


def phase(*wanted: str) -> Callable[[Json], bool]:
    return lambda pod: pod["status"].get("phase") in wanted


ENDED = phase("Succeeded", "Failed")


def state(pod: Json, name: str) -> Json:
    status = pod["status"]
    for entry in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        if entry["name"] == name:
            return entry["state"]
    return {}


def waits(name: str, *reasons: str) -> Callable[[Json], bool]:
    return lambda pod: state(pod, name).get("waiting", {}).get("reason") in reasons


def terminated(name: str) -> Callable[[Json], bool]:
    return lambda pod: "terminated" in state(pod, name)


def runs(pod: Json) -> bool:
    return all("running" in state(pod, name) for name in [c["name"] for c in pod["spec"]["containers"]])


def scheduled(pod: Json) -> bool:
    return any(c["type"] == "PodScheduled" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


def unschedulable(pod: Json) -> bool:
    return any(c.get("reason") in ("Unschedulable", "SchedulingGated") for c in pod["status"].get("conditions", ()))


def both(*conditions: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda pod: all(condition(pod) for condition in conditions)


def deleting(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@dataclass(frozen=True)
class Kind:
    """One recorded pod. ``before`` runs before it exists, ``act`` once it does (None: nothing is done); ``until`` tells the state
    that is kept."""

    name: str
    how: str
    agent: str = SLEEP
    session: str = SLEEP
    prepare: str = COPY
    verify: bool = False
    change: Callable[[Json], None] | None = None
    before: Callable[[Cluster], None] | None = None
    act: Callable[[Cluster, str], None] | None = None
    until: Callable[[Json], bool] = ENDED
    constructed: bool = False
    alone: bool = False
    """It changes the node: recorded after all others, one at a time."""
    then: tuple[Callable[[Json], None], str] | None = None
    """A change by hand of what was recorded, and its words."""


def when_running(then: Callable[[Cluster, str], None]) -> Callable[[Cluster, str], None]:
    def act(cluster: Cluster, name: str) -> None:
        cluster.wait(name, runs, "its containers to run")
        then(cluster, name)

    return act


def dumped(pod: Json) -> str:
    """As it is written; of images only the names that the manifest gave."""
    status = pod.get("status")
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses") if isinstance(status, dict) else ():
        for entry in status.get(kind, ()):
            entry["imageID"] = ""
    return json.dumps(pod, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
