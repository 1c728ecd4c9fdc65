"""An end that no rule explains is told: in the trial, by an event and in the metric."""

from __future__ import annotations

from typing import Any

from realcli.api.outcomes import Phase
from realcli_operator.execute import Executor
from realcli_operator.handlers import TrialReconciler
from realcli_operator.kube.clock import SystemClock
from realcli_operator.kube.fake import FakeCluster
from realcli_operator.kube.fake_api import FakeKubeApi
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.names import Kind, trial_key
from realcli_operator.kube.project import project
from realcli_operator.kube.store import Store
from realcli_operator.observe import Observer, TrialSeen
from realcli_operator.reconcile.policy import Policy
from realcli_operator.reconcile.trial import decide_trial
from realcli_operator.settings import Settings


async def test_a_gap_is_an_event_a_count_and_all_its_facts(a: Any) -> None:
    cluster, store, metrics = FakeCluster(), Store(), Metrics()
    api = FakeKubeApi(cluster)
    manifest = {"metadata": {"namespace": "one", "name": "first-00000"}, "spec": a.trial_spec().dump()}
    cluster.create(Kind.TRIAL, manifest)
    observer = Observer(api, store, Settings(images=a.platform().images), SystemClock(), Policy())
    reconciler = TrialReconciler(observer, Executor(api, store, lambda view, happened: None), metrics)

    def counted() -> float | None:
        return metrics.registry.get_sample_value("realcli_unexplained_ends_total")

    async def step(pod: Any) -> Any:
        facts = a.replace(a.facts(a.status(), pod), trial=project(Kind.TRIAL, cluster.get(Kind.TRIAL, "one", "first-00000")))
        plan = decide_trial(facts, a.now)
        plan = a.replace(plan, create=None)  # the pod that looks for a seal is another matter
        await reconciler.execute(trial_key("one", "first-00000"), TrialSeen(facts, a.sweep()), plan)
        return plan.status

    await step(a.ended(said=a.work_sealed()))
    assert counted() == 0
    status = await step(a.pod(phase="Failed", reason="SomethingNew", containers=()))
    assert (status.phase, status.reason) == (Phase.PENDING, "PodLost")
    assert "SomethingNew" in status.message
    assert counted() == 1
    reasons = [event["reason"] for event in cluster.objects("event")]
    assert reasons.count("UnexplainedEnd") == 1
