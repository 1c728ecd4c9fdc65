from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from realcli.api.outcomes import Phase
from realcli.api.plan import Images, Plan, PlanConfiguration, PlanTask, Platform, Resources
from realcli.api.sweep import SweepSpec
from realcli.api.trial import TrialSpec
from realcli.scoring.records import GroupInput, GroupMember, WithdrawnTask
from realcli_operator.pods.jobs import plan_config_map, sweep_job, trial_manifest
from realcli_operator.pods.parts import SweepContext
from realcli_operator.pods.trial import trial_pod
from realcli_operator.reconcile.plans import JobIntent, PodIntent, Task

SPEC = """
benchmark: {source: s3://evals/benchmarks/starter/1.0.0}
agents: [{name: claude-code}]
models:
- name: sonnet
  model: claude-sonnet-4-5
  endpoints: {anthropic: {url: https://api.anthropic.com, apiKey: {secretRef: {name: anthropic, key: api-key}}}}
limits: {exec: {deadline: 2h}}
storage: {bucket: evals, endpoint: http://seaweedfs.storage:8333, credentials: {secretRef: {name: evals-s3}}}
"""
OWN = """
benchmark: {source: s3://evals/benchmarks/starter/1.0.0}
agents:
- name: guarded
  program: codex
  permissions: Ask
  files: {configMapRef: {name: guarded, items: [{key: rules, path: AGENTS.md}, {key: notes, path: docs/notes.md, root: Work}]}}
  toolImages: [{image: "tools:1", mountPath: /opt/tools}]
  mcpServers:
  - name: tickets
    command: [/opt/tools/tickets-mcp]
    env: [{name: TICKETS_URL, value: "http://127.0.0.1:9"}, {name: TOKEN, secretRef: {name: tickets, key: token}}]
models:
- name: gpt
  model: gpt-5.2
  endpoints:
    responses: {url: https://api.openai.com/v1, apiKey: {secretRef: {name: openai, key: api-key}}}
    chat: {url: https://api.openai.com/v1, apiKey: {secretRef: {name: openai, key: api-key}}}
simulatedUser:
  mode: Model
  model: {model: glm-5.3, endpoints: {chat: {url: https://api.z.ai/v1, apiKey: {secretRef: {name: zai, key: key}}}}}
judge: {model: {model: judge-9, endpoints: {anthropic: {url: https://api.j.ai, apiKey: {secretRef: {name: judge, key: key}}}}}}
storage: {bucket: evals, endpoint: http://seaweedfs.storage:8333, credentials: {secretRef: {name: evals-s3}}}
"""
PLACED = """
queueName: audits
pods:
  runtimeClassName: gvisor
  nodeSelector: {pool: evals, kubernetes.io/arch: arm64}
  tolerations: [{key: spot, operator: Exists}, {key: dedicated, value: evals, effect: NoSchedule}]
  topologySpread: [{topologyKey: topology.kubernetes.io/zone}]
  priorityClassName: batch-low
  schedulerName: packing
  imagePullSecrets: [{name: registry}]
  labels: {team: agents, realcli.dev/sweep: not-mine}
  annotations: {cost-centre: "42"}
  session: {resources: {requests: {memory: 512Mi}}}
"""
DIGEST = "sha256:" + "0" * 64
SEAL = "sha256:" + "5" * 64
UID = "11111111-2222-3333-4444-555555555555"


class Make:
    """Every manifest of a small sweep."""

    seal = SEAL

    def context(self, **platform: Any) -> SweepContext:
        images = Images(session="session:1", judge="judge:1", toolkit="toolkit:1", agents={"claude-code/2.1.140": "agent:1"})
        values: dict[str, Any] = {"operator_version": "0.2.0", "images": images, "user_namespaces": True, "image_volumes": True}
        where = Platform(**(values | platform))
        plan = Plan(
            sweep_uid=UID, root="sweeps/one/first-11111111", lock_digest=DIGEST, benchmark_digest=DIGEST, platform=where,
            tasks=[PlanTask(name="log-triage", image="task:1", verifier_seconds=900, resources=Resources(cpu="2", memory="4Gi"))],
            configurations=[
                PlanConfiguration(
                    name="claude-code.sonnet", agent="claude-code", program="claude-code", agent_version="2.1.140", model="sonnet"
                )
            ],
            modes=["COLLAB", "EXEC"], repeats=1,
        )  # fmt: skip
        spec = SweepSpec.model_validate(yaml.safe_load(SPEC))
        return SweepContext("one", "first", UID, spec, where, plan=plan)

    def own(self, **platform: Any) -> SweepContext:
        """A sweep with a team's own set-up and a user that a model words."""
        plain = self.context(**platform)
        assert plain.plan is not None
        images = plain.platform.images.model_copy(update={"agents": {"codex/0.142.0": "codex:1"}})
        where = plain.platform.model_copy(update={"images": images})
        configuration = PlanConfiguration(
            name="guarded.gpt", agent="guarded", program="codex", api="responses", agent_version="0.142.0", model="gpt"
        )
        task = plain.plan.tasks[0].model_copy(update={"needs_setuid": True, "mock_hosts": True})
        plan = plain.plan.model_copy(update={"platform": where, "configurations": [configuration], "tasks": [task]})
        return SweepContext("one", "first", UID, SweepSpec.model_validate(yaml.safe_load(OWN)), where, plan=plan)

    def placed(self) -> SweepContext:
        """A sweep that says everything it may of its pods."""
        plain = self.context()
        return replace(plain, spec=SweepSpec.model_validate(yaml.safe_load(SPEC) | yaml.safe_load(PLACED)))

    def placed_work(self) -> dict[str, Any]:
        return self._pod(self.placed(), PodIntent(1), 1)

    def placed_job(self) -> dict[str, Any]:
        return sweep_job(self.placed(), JobIntent(Task.REPORT))

    def own_work(self, ordinal: int = 0, **platform: Any) -> dict[str, Any]:
        """COLLAB is ordinal 0."""
        return self._pod(self.own(**platform), PodIntent(1), ordinal)

    def own_plan(self) -> dict[str, Any]:
        return sweep_job(self.own(), JobIntent(Task.PLAN, 1, 0, None))

    def trial(self, ordinal: int = 1, **platform: Any) -> dict[str, Any]:
        return trial_manifest(self.context(**platform), ordinal)

    def pod(self, intent: PodIntent, ordinal: int = 1, **platform: Any) -> dict[str, Any]:
        return self._pod(self.context(**platform), intent, ordinal)

    def _pod(self, context: SweepContext, intent: PodIntent, ordinal: int) -> dict[str, Any]:
        trial = trial_manifest(context, ordinal)
        spec = TrialSpec.model_validate(trial["spec"])
        return trial_pod(context, spec, trial["metadata"]["name"], "trial-uid", intent)

    def work(self, **platform: Any) -> dict[str, Any]:
        return self.pod(PodIntent(1), **platform)

    def withdrawing_report(self) -> dict[str, Any]:
        """Of the second round, without a task."""
        gone = WithdrawnTask(task="log-triage", reason="VerifierFault", configurations=["claude-code.sonnet"])
        return sweep_job(self.context(), JobIntent(Task.REPORT, n=2, withdrawn=(gone,)))

    def verify(self, **platform: Any) -> dict[str, Any]:
        return self.pod(PodIntent(1, 1, SEAL), **platform)

    def own_judge(self) -> dict[str, Any]:
        given = GroupInput(
            configuration="guarded.gpt", task="log-triage",
            members=[
                GroupMember(ordinal=0, mode="COLLAB", repeat=1, phase=Phase.SEALED, reason="Completed", attempt=1, reward="1")
            ],
        )  # fmt: skip
        return sweep_job(self.own(), JobIntent(Task.JUDGE, 1, 0, given))

    def job(self, task: Task, attempt: int = 1) -> dict[str, Any]:
        member = {"ordinal": 0, "mode": "COLLAB", "repeat": 1, "phase": "Sealed", "reason": "Completed", "attempt": 1}
        given = GroupInput(
            configuration="claude-code.sonnet", task="log-triage", members=[GroupMember.model_validate(member | {"reward": "1"})]
        )
        return sweep_job(self.context(), JobIntent(task, attempt, 0, given if task is Task.JUDGE else None))

    def config_map(self) -> dict[str, Any]:
        context = self.context()
        assert context.plan is not None
        return plan_config_map(context, context.plan)


@pytest.fixture(scope="session")
def make() -> Make:
    return Make()
