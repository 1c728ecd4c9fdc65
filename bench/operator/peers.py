"""What the sweep is held against: the very pods of its trials and judges from a script, as plain Jobs or bare (the floor that
nothing is below). Same cluster, stand-in, window and limits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any, Literal

from bench.operator.ends import JOB_ROLE, plan_of, sweep_of
from bench.operator.measure import JUDGES, SWEEP, Meter, Options, bench, paths, per_pod, what_was
from bench.operator.servers import NAMESPACE, Server
from bench.operator.traces import log_of, script_found, steady
from bench.operator.usage import cpu

Json = dict[str, Any]
Peer = Literal["jobs", "bare"]


def of_script(options: Options, what: Peer, keep: Path | None = None) -> Json:
    """The same pods, two per trial and one per group, as plain Jobs or bare, from a script."""
    size = options.size
    pods = 2 * size.trials + size.groups
    with bench(options, keep) as here:
        templates = here.folder / "templates.json"
        templates.write_text(json.dumps(job_templates(options)))
        command = [sys.executable, "-m", f"bench.operator.{what}", str(here.servers.kubeconfig("jobs")), str(templates)]
        command += [str(size.trials), str(options.parallelism), str(size.trials // size.groups), str(JUDGES)]
        here.operator = Server("script", command, here.folder / "script.log", paths())
        meter = Meter(here)
        here.operator.start()
        begun = time.time()
        assert here.operator.popen is not None
        used = 0.0
        while not _has_ended(here.operator.popen):
            used = cpu(here.operator.pid)
            time.sleep(0.2)
            here.servers.check()
            here.stand_in.check()
            if time.time() - begun > options.patience:
                raise RuntimeError(f"not within {options.patience:.0f} s")
        script = time.time() - begun
        used = max(used, cpu(here.operator.pid))
        if here.operator.popen.wait():
            raise RuntimeError(here.operator.log.read_text()[-3000:])
        here.operator.popen = None
        meter.add("script", used)
        used_by = meter.end()
        here.quiet()
        journal = [json.loads(line) for line in (here.folder / "journal.jsonl").read_text().splitlines()]
        found = script_found(log_of(here.folder), journal, pods, jobs=what == "jobs")
    if found.findings:
        raise RuntimeError(f"the script's run is not whole: {'; '.join(found.findings[:5])}")
    seconds = found.last - found.first
    return {
        "what": what, **what_was(options), "trialsSeconds": round(seconds, 1), "completeSeconds": round(script, 1),
        "trialsPerMinute": round(60 * size.trials / seconds, 1),
        "podsPerMinute": round(60 * (2 * size.trials + found.judged_meanwhile) / seconds, 1),
        "steadyPodsPerMinute": round(steady(journal), 1), "podsEnded": len(journal),
        "use": used_by, "cpuPerPodMs": per_pod(used_by, pods), "audit": {"writes_of_all": found.writes_of_all},
        "writesPerPod": round(sum(found.writes_of_all.values()) / pods, 2),
    }  # fmt: skip


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child has; it is not reaped yet, so that what it used can still be read."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def job_templates(options: Options) -> Json:
    """Jobs of the very pods that the operator makes of the first trial and group: same containers, volumes, arguments."""
    from realcli.api.plan import Images, Platform
    from realcli.api.sweep import SweepSpec
    from realcli.api.trial import TrialSpec
    from realcli.scoring.records import GroupInput, GroupMember
    from realcli_operator.pods.jobs import sweep_job
    from realcli_operator.pods.parts import SweepContext
    from realcli_operator.pods.trial import trial_pod
    from realcli_operator.reconcile.plans import JobIntent, PodIntent, Task

    body = sweep_of(SWEEP, NAMESPACE, options.size, options.parallelism)
    spec = SweepSpec.model_validate(body["spec"])
    images = Images(session="example/session:1", judge="example/judge:1", toolkit="example/toolkit:1",
                    agents={"claude-code/2.1.140": "example/agent:1"})  # fmt: skip
    platform = Platform(operator_version="1", images=images, user_namespaces=True, image_volumes=True)
    uid = "00000000-0000-0000-0000-000000000000"
    identity = {"namespace": NAMESPACE, "name": SWEEP, "uid": uid}
    plan = plan_of({"sweep": identity, "spec": spec.dump(), "platform": platform.dump()}, options.size)
    context = SweepContext(NAMESPACE, SWEEP, uid, spec, platform, "IfNotPresent", plan)
    cell = plan.coordinates(0)
    trial = TrialSpec(sweep=SWEEP, plan_digest=plan.content_digest(), ordinal=0, configuration=cell.configuration,
                      task=cell.task, mode=cell.mode, repeat=cell.repeat)  # fmt: skip
    members = [
        GroupMember(mode=mode, repeat=repeat, ordinal=number, attempt=1, verify_attempt=1, phase="Sealed", reason="Completed",
                    seal="sha256:" + "5" * 64)
        for number, (mode, repeat) in enumerate(product(options.size.modes, range(1, options.size.repeats + 1)))
    ]  # fmt: skip
    group = GroupInput(configuration=cell.configuration, task=cell.task, members=members)
    pods = {"judge": sweep_job(context, JobIntent(Task.JUDGE, input=group))["spec"]["template"]}
    for role, intent in (("work", PodIntent(1)), ("verify", PodIntent(1, 1, "sha256:" + "5" * 64))):
        pods[role] = trial_pod(context, trial, f"{SWEEP}-00000", uid, intent)
    return {role: _job(role, pod) for role, pod in pods.items()}


def _job(role: str, pod: Json) -> Json:
    """A pod of the operator as a plain Job: without its labels, with those that the stand-in asks for."""
    labels = {name: value for name, value in pod["metadata"]["labels"].items() if not name.startswith("realcli.dev/")}
    metadata = {"labels": labels | {JOB_ROLE: role, "bench/trial": "trial"}}
    metadata |= {"annotations": pod["metadata"]["annotations"]} if "annotations" in pod["metadata"] else {}
    template = {"metadata": metadata, "spec": pod["spec"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {"backoffLimit": 3, "template": template}}
