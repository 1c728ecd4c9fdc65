"""Builders that read like the specification: `a.trial().working()`, `a.pod("work", ...)`, `a.work_sealed("Completed")`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from realcli.api.outcomes import Phase
from realcli.api.plan import Images, Plan, PlanConfiguration, PlanTask, Platform
from realcli.api.sweep import SweepSpec
from realcli.api.sweepstatus import SweepStatus
from realcli.api.termination import Result, Termination
from realcli.api.trial import TrialSpec, TrialStatus
from realcli_operator.kube.names import LABEL_ATTEMPT, LABEL_ROLE, LABEL_SWEEP, LABEL_TRIAL
from realcli_operator.kube.views import Condition, ContainerState, ContainerView, JobView, PodView, SweepView, TrialView
from realcli_operator.reconcile.facts import JobFacts, SweepFacts, TrialFacts
from realcli_operator.reconcile.rows import Rows

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
SEAL = "sha256:" + "5" * 64
VERIFY_SEAL = "sha256:" + "6" * 64
DIGEST = "sha256:" + "0" * 64
UID = "11111111-2222-3333-4444-555555555555"
TRIAL_UID = "trial-uid"


class A:
    """The builders."""

    now = NOW
    seal = SEAL
    verify_seal = VERIFY_SEAL

    def ago(self, seconds: float) -> datetime:
        return NOW - timedelta(seconds=seconds)

    # -- sweep and plan

    def spec(self, **changes: Any) -> SweepSpec:
        body: dict[str, Any] = {
            "benchmark": {"source": "s3://evals/benchmarks/starter/1.0.0"},
            "agents": [{"name": "claude-code"}],
            "models": [
                {
                    "name": "sonnet",
                    "model": "claude-sonnet-4-5",
                    "endpoints": {
                        "anthropic": {
                            "url": "https://api.anthropic.com",
                            "apiKey": {"secretRef": {"name": "anthropic", "key": "api-key"}},
                        }
                    },
                }
            ],
            "storage": {"bucket": "evals", "credentials": {"secretRef": {"name": "evals-s3"}}},
        }
        return SweepSpec.model_validate(body | changes)

    def platform(self, **changes: Any) -> Platform:
        images = Images(session="session:1", judge="judge:1", toolkit="toolkit:1", agents={"claude-code/2.1.140": "agent:1"})
        values: dict[str, Any] = {
            "operator_version": "0.2.0", "images": images, "user_namespaces": True, "image_volumes": True, "control": True,
        }  # fmt: skip
        return Platform(**(values | changes))

    def plan(self, tasks: int = 1, repeats: int = 1, modes: tuple[Any, ...] = ("COLLAB", "EXEC"), **changes: Any) -> Plan:
        values: dict[str, Any] = {
            "sweep_uid": UID,
            "root": "sweeps/one/first-11111111",
            "lock_digest": DIGEST,
            "benchmark_digest": DIGEST,
            "platform": self.platform(),
            "tasks": [PlanTask(name=f"task-{i}", image=f"task:{i}", verifier_seconds=600) for i in range(tasks)],
            "configurations": [
                PlanConfiguration(
                    name="claude-code.sonnet", agent="claude-code", program="claude-code", agent_version="2.1.140", model="sonnet"
                )
            ],
            "modes": list(modes),
            "repeats": repeats,
        }
        return Plan(**(values | changes))

    def wide(self, *configurations: str, **values: Any) -> Plan:
        """A plan of these configurations, `<agent>.<model>`."""
        rows = [
            PlanConfiguration(
                name=name, agent=name.split(".")[0], program="claude-code", agent_version="2.1.140", model=name.split(".")[1]
            )
            for name in configurations
        ]
        return self.plan(**values, configurations=rows)

    def at(self, ago: float) -> str:
        """RFC 3339, that many seconds ago."""
        return self.ago(ago).strftime("%Y-%m-%dT%H:%M:%SZ")

    # -- messages

    def message(self, phase: str, result: Result, **values: Any) -> str:
        return Termination.model_validate({"phase": phase, "result": result} | values).encode(4096).decode()

    def work_sealed(self, reason: str = "Completed", **values: Any) -> str:
        return self.message("Work", Result.WORK_SEALED, reason=reason, seal=SEAL, turns=7, cost_usd="0.25", node="n1", **values)

    def work_invalid(self, reason: str, message: str = "it broke") -> str:
        return self.message("Work", Result.WORK_INVALID, reason=reason, message=message)

    def verdict(self, reason: str = "Completed", reward: str | None = "1", **values: Any) -> str:
        given = {"reason": reason, "reward": reward, "seal": VERIFY_SEAL, "work_seal": SEAL, "work_end": reason} | values
        return self.message("Verify", Result.VERDICT, **given)

    def no_verdict(self, reason: str = "NoReward") -> str:
        return self.message("Verify", Result.NO_VERDICT, reason=reason, message="no reward file")

    def no_work_seal(self) -> str:
        return self.message("Verify", Result.NO_WORK_SEAL, message="there is no work-seal.json")

    # -- pods

    def container(self, name: str, state: str = "running", **values: Any) -> ContainerView:
        started = None if state == "waiting" else self.ago(60)
        base: dict[str, Any] = {
            "name": name, "state": ContainerState(state), "reason": "", "message": "", "exit_code": None, "signal": None,
            "started_at": started, "finished_at": None, "ready": state == "running", "restart_count": 0, "image_id": "",
        }  # fmt: skip
        if state == "terminated":
            base |= {"exit_code": 0, "reason": "Completed", "finished_at": self.ago(1)}
        return ContainerView(**(base | values))

    def condition(self, type_: str, status: str = "True", reason: str = "", message: str = "", ago: float = 60) -> Condition:
        return Condition(type_, status, reason, message, self.ago(ago))

    def pod(self, name: str = "first-00000-a1", **values: Any) -> PodView:
        """A running pod of the trial; give phase, containers, conditions, reason, message to make it another."""
        role = "verify" if "-v" in name else "control" if "-c" in name else "work"
        untrusted = "agent" if role == "work" else "verifier"
        base: dict[str, Any] = {
            "namespace": "one", "name": name, "uid": f"uid-{name}", "resource_version": 1, "generation": 0,
            "labels": {LABEL_SWEEP: "first", LABEL_TRIAL: "first-00000", LABEL_ROLE: role},
            "owner_uid": TRIAL_UID, "owner_name": "first-00000", "spec_digest": None,
            "creation_timestamp": self.ago(120), "deletion_timestamp": None,
            "phase": "Running", "reason": "", "message": "", "node": "n1", "start_time": self.ago(90),
            "conditions": (self.condition("PodScheduled", ago=100),),
            "containers": (self.container(untrusted), self.container("session")),
            "init_containers": (), "scheduling_gates": (),
        }  # fmt: skip
        return PodView(**(base | values))

    def ended(
        self, name: str = "first-00000-a1", said: str = "", *, agent: dict[str, Any] | None = None, **values: Any
    ) -> PodView:
        """A finished pod whose session left that message."""
        untrusted = "verifier" if "-v" in name or "-c" in name else "agent"
        containers = (
            self.container(untrusted, "terminated", **(agent or {})),
            self.container("session", "terminated", message=said, exit_code=0 if said else 137),
        )
        return self.pod(name, **({"phase": "Succeeded" if said else "Failed", "containers": containers} | values))

    def waiting(self, name: str = "first-00000-a1", reason: str = "ImagePullBackOff", **values: Any) -> PodView:
        """A scheduled pod whose untrusted container waits for that reason."""
        untrusted = "verifier" if "-v" in name or "-c" in name else "agent"
        containers = (self.container(untrusted, "waiting", reason=reason, message="no such thing"), self.container("session"))
        return self.pod(name, **({"phase": "Pending", "containers": containers} | values))

    # -- trials

    def trial(
        self, status: TrialStatus | None = None, *, deleting: bool = False, ordinal: int = 0, plan: Plan | None = None
    ) -> TrialView:
        spec = self.trial_spec(ordinal, plan)
        return TrialView(
            namespace="one", name=f"first-{ordinal:05d}", uid=TRIAL_UID if ordinal == 0 else f"uid-{ordinal}",
            resource_version=1, generation=1,
            labels={LABEL_SWEEP: "first"}, owner_uid=UID, owner_name="first", spec_digest=None, creation_timestamp=self.ago(600),
            deletion_timestamp=NOW if deleting else None, spec=spec.dump(), status=(status or TrialStatus()).dump(),
        )  # fmt: skip

    def trial_spec(self, ordinal: int = 0, plan: Plan | None = None) -> TrialSpec:
        cell = (plan or self.plan(tasks=4, repeats=4)).coordinates(ordinal)
        return TrialSpec(
            sweep="first", plan_digest=DIGEST, ordinal=ordinal, configuration=cell.configuration, task=cell.task,
            mode=cell.mode, repeat=cell.repeat,
        )  # fmt: skip

    def status(self, phase: Phase = Phase.WORKING, **values: Any) -> TrialStatus:
        base: dict[str, Any] = {"phase": phase}
        if phase in (Phase.WORKING, Phase.VERIFYING):
            base |= {"attempt": 1}
        if phase is Phase.VERIFYING:
            base |= {"verify_attempt": 1, "work_end": "Completed", "work_seal_digest": SEAL}
        return TrialStatus(**(base | values))

    def facts(self, status: TrialStatus | None = None, *pods: PodView, **values: Any) -> TrialFacts:
        status = status or TrialStatus()
        base: dict[str, Any] = {
            "trial": self.trial(status), "spec": self.trial_spec(), "status": status, "pods": pods, "sweep": self.spec(),
            "plan": self.plan(), "granted": True,
        }  # fmt: skip
        return TrialFacts(**(base | values))

    # -- sweeps

    def sweep(self, spec: SweepSpec | None = None, status: SweepStatus | None = None) -> SweepView:
        return SweepView(
            namespace="one", name="first", uid=UID, resource_version=1, generation=1, labels={}, owner_uid=None, owner_name=None,
            spec_digest=None, creation_timestamp=self.ago(600), deletion_timestamp=None, spec=(spec or self.spec()).dump(),
            status=(status or SweepStatus()).dump(),
        )  # fmt: skip

    def sweep_facts(self, **values: Any) -> SweepFacts:
        spec = values.pop("spec", None) or self.spec()
        status = values.pop("status", None) or SweepStatus()
        values.setdefault("rows", Rows(values.pop("trials", ())))
        return SweepFacts(sweep=self.sweep(spec, status), spec=spec, status=status, **values)

    def job(
        self, name: str = "first-plan", *, attempt: int = 1, done: bool = False, failed: bool = False, **values: Any
    ) -> JobView:
        conditions: tuple[Condition, ...] = ()
        if done:
            conditions = (self.condition("Complete", ago=5),)
        if failed:
            conditions = (self.condition("Failed", reason="BackoffLimitExceeded", message="too often", ago=5),)
        base: dict[str, Any] = {
            "namespace": "one", "name": name, "uid": f"uid-{name}-{attempt}", "resource_version": 1, "generation": 1,
            "labels": {LABEL_SWEEP: "first", LABEL_ATTEMPT: str(attempt)}, "owner_uid": UID, "owner_name": "first",
            "spec_digest": None, "creation_timestamp": self.ago(60), "deletion_timestamp": None, "active": 0,
            "succeeded": int(done),
            "failed": int(failed), "start_time": self.ago(60), "completion_time": self.ago(5) if done else None,
            "conditions": conditions,
        }  # fmt: skip
        return JobView(**(base | values))

    def job_pod(self, task: str, message: str = "", **values: Any) -> PodView:
        container = self.container(task, "terminated", message=message) if message else self.container(task)
        labels = {LABEL_SWEEP: "first", LABEL_ROLE: task}
        phase = "Succeeded" if message else "Running"
        return self.pod(f"{task}-pod", **({"labels": labels, "phase": phase, "containers": (container,)} | values))

    def done_job(self, task: str, message: str, name: str, **values: Any) -> JobFacts:
        return JobFacts(self.job(name, done=True, **values), (self.job_pod(task, message),))

    def settled(self, ordinal: int, phase: Phase = Phase.SEALED, reason: str = "Completed") -> TrialView:
        reward = "1" if phase is Phase.SEALED else None
        status = TrialStatus(phase=phase, reason=reason, attempt=1, verify_attempt=1, reward=reward, work_seal_digest=SEAL)
        return self.trial(status, ordinal=ordinal)

    replace = staticmethod(replace)


@pytest.fixture(scope="session")
def a() -> A:
    return A()
