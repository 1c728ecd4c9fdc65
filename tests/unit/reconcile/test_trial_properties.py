"""Any order of pod ends, deletions, disturbances and operator crashes leads to one explained end of a trial."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from realcli.api.outcomes import Effect, Phase, effect_of, is_valid
from realcli.api.sweepstatus import ControlRow
from realcli.api.termination import Result
from realcli.api.trial import TrialStatus
from realcli_operator.kube.views import PodView
from realcli_operator.pods.trial import name_of
from realcli_operator.reconcile.names import control_pod, pod_numbers, verify_pod, work_pod
from realcli_operator.reconcile.plans import TrialPlan
from realcli_operator.reconcile.trial import decide_trial

NAME = "first-00000"
LIMIT = 3
CALM = ("work: Completed", "verify: verdict", "control: passed")

WORK_ENDS = (
    "work: Completed", "work: RunnerLost", "work: SessionLost", "work: ProviderUnavailable", "work: ConfigurationError",
    "cut", "evicted: own", "evicted: node", "preempted", "oom", "rejected",
)  # fmt: skip
VERIFY_ENDS = ("verify: verdict", "verify: none", "verify: none", "verify: no seal", "cut", "preempted", "evicted: node")
CONTROL_ENDS = ("control: passed", "control: failed", "control: none", "control: no storage", "cut", "preempted")
DISTURBANCES = ("vanish", "delete", "pull fails", "run", "nothing")


@dataclass
class World:
    """The API server, the kubelet and time."""

    a: Any
    now: datetime
    status: TrialStatus = field(default_factory=TrialStatus)
    pods: dict[str, PodView] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    controlled: bool = False
    """Whether the sweep gives the control of the task to this trial; it does not take it back."""

    def observe(self) -> Any:
        facts = self.a.facts(self.status, *(self.pods[name] for name in sorted(self.pods)))
        status, absent = self.status, set()
        if status.phase in (Phase.WORKING, Phase.VERIFYING) and status.retry_after is None:
            name = work_pod(NAME, status.attempt)
            if status.awaiting is not None:
                name = control_pod(NAME, status.attempt, status.control_attempt)
            elif status.verify_attempt:
                name = verify_pod(NAME, status.attempt, status.verify_attempt)
            absent = {name} - set(self.pods)
        row = None
        if self.controlled and status.awaiting is not None:
            row = ControlRow(task="task-0", image="task:0", verifier="session:1", result="Running", trial=NAME)
        return replace(facts, absent=frozenset(absent), control=row)

    def operate(self, crash_after: int | None) -> TrialPlan:
        """One step of the operator, which may die after so many writes."""
        plan = decide_trial(self.observe(), self.now)
        writes: list[Any] = []
        if plan.create is not None:
            writes.append(lambda: self.create(plan))
        if plan.status is not None:
            writes.append(lambda: setattr(self, "status", plan.status))
        writes.extend((lambda name=r.name: self.delete(name)) for r in plan.delete)
        for write in writes[:crash_after]:
            write()
        return plan

    def create(self, plan: TrialPlan) -> None:
        assert plan.create is not None
        intent = plan.create
        name = name_of(NAME, intent)
        alive = [pod.name for pod in self.pods.values() if not pod.finished]
        assert not alive, f"{name} is made while {alive} may still run"
        assert name not in self.created, f"{name} twice"
        assert self.status.phase not in (Phase.SEALED, Phase.INVALID)
        self.created.append(name)
        self.pods[name] = self.a.pod(name, creation_timestamp=self.now)

    def delete(self, name: str) -> None:
        pod = self.pods.get(name)
        if pod is None:
            return
        if pod.finished:
            del self.pods[name]
        else:
            self.pods[name] = replace(pod, deletion_timestamp=self.now)

    def known(self, name: str) -> bool:
        """Whether the status says that this pod was created."""
        numbers = pod_numbers(NAME, name)
        assert numbers is not None
        latest = (self.status.attempt, self.status.control_attempt if numbers.control else self.status.verify_attempt)
        return (numbers.attempt, numbers.control or numbers.verify) <= latest

    def disturb(self, how: str, choice: int) -> None:
        alive = sorted(name for name, pod in self.pods.items() if not pod.finished)
        if not alive:
            return
        name = alive[choice % len(alive)]
        if how == "vanish":
            self.vanish(name)
        elif how == "delete":
            self.delete(name)
        elif how == "pull fails":
            self.pods[name] = replace(self.a.waiting(name), creation_timestamp=self.now)
        elif how == "run":
            self.pods[name] = replace(self.a.pod(name), deletion_timestamp=self.pods[name].deletion_timestamp)

    def vanish(self, name: str) -> None:
        del self.pods[name]
        if not self.known(name):
            # Created, not yet in the status, and gone before the operator came back: its name is used again, and
            # the session finds the other's objects in storage.
            self.created.remove(name)

    def end(self, how: str) -> None:
        """The kubelet ends the pod that runs; a verify pod takes only verify ends."""
        for name, pod in list(self.pods.items()):
            numbers = pod_numbers(NAME, name)
            assert numbers is not None
            kind = "control" if numbers.control else "verify" if numbers.verify else "work"
            if pod.finished or (how.startswith(("oom", "rejected", "evicted: own")) and kind != "work"):
                continue
            if how.startswith(("work", "verify", "control")) and not how.startswith(kind):
                continue
            self.pods[name] = self._ended(name, how)

    def _ended(self, name: str, how: str) -> PodView:
        a = self.a
        kind, _, what = how.partition(": ")
        if kind == "work":
            said = a.work_sealed(what) if is_valid(what) else a.work_invalid(what)
            return a.ended(name, said)  # type: ignore[no-any-return]
        if kind == "verify":
            said = {"verdict": a.verdict("Completed", "0.5"), "none": a.no_verdict(), "no seal": a.no_work_seal()}[what]
            return a.ended(name, said)  # type: ignore[no-any-return]
        if kind == "control":
            said = {
                "passed": a.message("Control", Result.CONTROL_PASSED, reward="1", seal=a.seal),
                "failed": a.message("Control", Result.CONTROL_FAILED, reason="NoReward", seal=a.seal),
                "none": a.message("Control", Result.NO_VERDICT, reason="VerifierFault", message="no runner came"),
                "no storage": a.message("Control", Result.NO_VERDICT, reason="StorageUnavailable", message="it is away"),
            }[what]
            return a.ended(name, said)  # type: ignore[no-any-return]
        if kind == "evicted":
            message = "Container agent exceeded its local ephemeral storage limit" if what == "own" else "The node was low"
            return a.ended(name, reason="Evicted", message=message)  # type: ignore[no-any-return]
        if kind == "preempted":
            taken = (a.condition("DisruptionTarget", reason="PreemptionByScheduler"),)
            return a.ended(name, conditions=taken)  # type: ignore[no-any-return]
        if kind == "oom":
            return a.ended(name, agent={"reason": "OOMKilled"})  # type: ignore[no-any-return]
        if kind == "rejected":
            return a.pod(name, phase="Failed", reason="OutOfcpu", containers=())  # type: ignore[no-any-return]
        return a.ended(name, "{cut")  # type: ignore[no-any-return]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_trial_ends_once_and_explained(a: Any, data: st.DataObject) -> None:
    world = World(a, a.now)
    for _ in range(data.draw(st.integers(5, 40), label="steps")):
        how = data.draw(st.sampled_from((*WORK_ENDS, *VERIFY_ENDS, *CONTROL_ENDS, *DISTURBANCES)))
        if how in DISTURBANCES:
            world.disturb(how, data.draw(st.integers(0, 3)))
        else:
            world.end(how)
        world.controlled = world.controlled or data.draw(st.booleans(), label="given")
        world.operate(data.draw(st.sampled_from((None, None, 0, 1, 2)), label="dies after"))
        world.now += timedelta(seconds=data.draw(st.sampled_from((1, 30, 130, 700))))
        check(world)
    world.controlled = True
    # From here nothing goes wrong: it must come to an end, and stay there.
    for _ in range(60):
        for how in ("run", "run"):
            world.disturb(how, 0)
        for name, pod in list(world.pods.items()):
            if pod.deleting and not pod.finished:
                world.vanish(name)
        for how in CALM:
            world.end(how)
        world.operate(None)
        world.now += timedelta(seconds=700)
        check(world)
    assert world.status.phase in (Phase.SEALED, Phase.INVALID)
    assert world.pods == {}
    assert decide_trial(world.observe(), world.now) == TrialPlan()


def check(world: World) -> None:
    status = world.status
    if status.phase is Phase.SEALED:
        assert status.reward is not None
        assert is_valid(status.reason or "")
    elif status.phase is Phase.INVALID:
        assert status.reward is None
        assert effect_of(status.reason or "") in (Effect.RETRY, Effect.FINAL)
        assert status.message
    else:
        assert status.reward is None
    assert status.invalid_attempts <= LIMIT + 1
    assert status.verify_faults <= 3
    assert status.control_faults <= 3
    assert (status.awaiting is None) or (status.phase is Phase.VERIFYING and status.verify_faults == 3)
    if status.reason in ("VerifierTimeout", "NoReward", "AgentBrokeEnvironment") and status.phase is Phase.SEALED:
        assert status.control is not None
        assert (status.control.result, status.reward) == ("Passed", "0")
    assert len([name for name in world.created if "-c" in name]) <= 150


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(how=st.sampled_from(("evicted: own", "oom", "work: RunnerLost")), seal=st.booleans())
def test_what_the_agent_can_cause_is_never_a_retry(a: Any, how: str, seal: bool) -> None:
    """A saboteur gets no more attempts than an honest loser."""
    world = World(a, a.now)
    for _ in range(30):
        world.operate(None)
        world.end(how)
        world.end("verify: verdict" if seal else "verify: no seal" if how != "work: RunnerLost" else "verify: verdict")
        world.now += timedelta(seconds=60)
    assert world.status.phase is Phase.SEALED
    assert [name for name in world.created if "-v" not in name] == [work_pod(NAME, 1)]
