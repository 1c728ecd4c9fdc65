"""An upgrade and a downgrade while a sweep runs; the other side is the newest earlier release, as its own code was."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcli.api.termination import Result
from tests.support.control_plane import wait_for
from tests.support.earlier import ROOT, Earlier, earlier_operator
from tests.support.operator_process import Operator
from tests.support.stub_kubelet import Act, Seen, happy, say

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="session")
def earlier() -> Earlier:
    return earlier_operator()


PLANNER = """
import json, sys
from realcli.api.plan import Plan, PlanConfiguration, PlanTask, Platform, encode_plan
asked = json.load(sys.stdin)
configuration = PlanConfiguration(
    name="claude-code.sonnet", agent="claude-code", program="claude-code", agent_version="2.1.140", model="sonnet"
)
plan = Plan(
    sweep_uid=asked["sweep"]["uid"], root=f"sweeps/{asked['sweep']['namespace']}/{asked['sweep']['name']}",
    lock_digest="sha256:" + "1" * 64, benchmark_digest="sha256:" + "2" * 64, platform=Platform.model_validate(asked["platform"]),
    tasks=[PlanTask(name="log-triage", image="example/task:1", verifier_seconds=60)], configurations=[configuration],
    modes=sorted(asked["spec"]["modes"]), repeats=asked["spec"]["repeats"],
)
print(plan.content_digest(), encode_plan(plan))
"""
"""A plan Job in few lines, run with the code of either release, as its image would have it."""


class Steps:
    """The pods of a sweep: plan Jobs print what their release prints; those of the role ``held`` run until `release`."""

    def __init__(self, sides: dict[str, Operator], planned_by: str, held: str = "") -> None:
        self._planner = sides[planned_by]
        self._held = held
        self.reached: set[str] = set()

    def release(self) -> None:
        self._held = ""

    def __call__(self, seen: Seen) -> Act | None:
        if seen.role == self._held:
            self.reached.add(seen.name)
            return None
        if seen.role != "plan":
            return happy(seen)
        environment = {env["name"]: env.get("value") for env in seen.pod["spec"]["containers"][-1]["env"]}
        done = subprocess.run(
            [str(self._planner.python), "-c", PLANNER],
            input=environment["REALCLI_SWEEP"],
            cwd=self._planner.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        digest, line = done.stdout.split()
        return Act(say("Plan", Result.PLANNED, seal=digest), plan=line)


class Releases:
    """The CRDs that belong to an operator come and go with it, as a chart's do."""

    def __init__(self, admin: Any, earlier: Earlier) -> None:
        self.admin = admin
        self.folders = {"old": earlier.folder, "new": ROOT}
        files = {side: sorted((folder / "crds").glob("*.yaml")) for side, folder in self.folders.items()}
        self.crds = {side: [yaml.safe_load(file.read_text()) for file in files[side]] for side in files}

    def _fields(self, side: str) -> set[str]:
        found = set()
        for crd in self.crds[side]:
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
            kind = crd["spec"]["names"]["kind"]
            found |= {f"{kind}.{part}.{name}" for part in ("spec", "status") for name in schema[part]["properties"]}
        return found

    async def use(self, side: str) -> None:
        """Apply its CRDs and wait until the API server goes by them."""
        for crd in self.crds[side]:
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
            await self.admin.send("PATCH", f"{path}?fieldManager=chart&force=true", crd, "application/apply-patch+yaml")
        wanted = self._fields(side)

        async def served() -> bool:
            document = await self.admin.send("GET", "/openapi/v3/apis/realcli.dev/v1alpha1")
            kinds = {name.rpartition(".")[2]: schema for name, schema in document["components"]["schemas"].items()}
            return wanted == {
                f"{kind}.{part}.{name}"
                for kind in ("BenchmarkSweep", "Trial")
                for part in ("spec", "status")
                for name in kinds[kind]["properties"][part]["properties"]
            }

        await wait_for(served, f"the API server serves the CRDs of the {side} release")


@pytest.fixture
async def releases(admin: Any, earlier: Earlier) -> AsyncIterator[Releases]:
    made = Releases(admin, earlier)
    yield made
    await made.use("new")


def both(kubeconfig: Path, log: Path, namespace: str, earlier: Earlier) -> dict[str, Operator]:
    old = Operator(kubeconfig, log / "old.log", (namespace,), python=earlier.python, folder=earlier.folder)
    return {"old": old, "new": Operator(kubeconfig, log / "new.log", (namespace,))}


CASES = [("upgrade", phase) for phase in ("plan", "work", "verify", "judge", "report")]
CASES += [("downgrade", phase) for phase in ("work", "verify", "judge", "report")]


@pytest.mark.parametrize(("way", "handover"), CASES)
async def test_other_release(
    place: Callable[[str], Any],
    kubeconfig: Path,
    tmp_path: Path,
    earlier: Earlier,
    releases: Releases,
    way: str,
    handover: str,
    tell: Any,
) -> None:
    """The earlier release plans a sweep; one of the two is stopped in the named phase and the other finishes it."""
    here = await place(f"{way}-{handover}")
    operators = both(kubeconfig, tmp_path, here.namespace, earlier)
    steps = Steps(operators, planned_by="old", held=handover)

    async def planned() -> bool:
        return bool((await here.sweep("over")).get("status", {}).get("planDigest"))

    first, second = ("old", "new") if way == "upgrade" else ("new", "old")
    try:
        await releases.use("old")
        operators["old"].start()
        await here.apply("over", steps, repeats=2)
        if way == "downgrade":
            await wait_for(planned, f"the plan\n{operators['old']}", 300)
            operators["old"].end()
            await releases.use("new")
            operators["new"].start()
        await wait_for(lambda: steps.reached, f"phase {handover}\n{operators[first]}", 300)
        operators[first].end()
        before = {name: pod["metadata"]["uid"] for name, pod in (await here.pods()).items()}
        await releases.use(second)
        operators[second].start()
        steps.release()
        await here.until_over("over")
    finally:
        for operator in operators.values():
            operator.end()
    assert "Traceback" not in operators["new"].log.read_text(), str(operators["new"])
    assert {status["attempt"] for status in await here.statuses()} == {1}
    ran = {name: uid for place, name, uid in here.kubelet.ran if place == here.namespace}
    assert all(ran[name] == uid for name, uid in before.items()), "what ran at the handover was not replaced"
    assert await here.findings() == []
    tell(release=f"v{earlier.version}", pods=len(ran))


async def test_planned_by_the_newer(
    place: Callable[[str], Any], kubeconfig: Path, tmp_path: Path, earlier: Earlier, releases: Releases, tell: Any
) -> None:
    """A sweep that this release planned, under the earlier one: it goes on or is left alone, and this release finishes it."""
    here = await place("planned-by-the-newer")
    operators = both(kubeconfig, tmp_path, here.namespace, earlier)
    steps = Steps(operators, planned_by="new", held="work")
    try:
        operators["new"].start()
        await here.apply("newer", steps, repeats=2)
        await wait_for(lambda: len(steps.reached) == 4, f"all work\n{operators['new']}", 300)
        operators["new"].end()
        await releases.use("old")
        operators["old"].start()
        steps.release()

        async def told() -> bool:
            events = (await here.admin.send("GET", f"{here.core}/events"))["items"]
            return any(event["reason"] == "Unreadable" for event in events) or await here.over("newer")

        await wait_for(told, f"it goes on, or says why not\n{operators['old']}", 300)
        went_on = await here.over("newer")
        operators["old"].end()
        await releases.use("new")
        operators["new"].start()
        await here.until_over("newer")
    finally:
        for operator in operators.values():
            operator.end()
    assert {status["attempt"] for status in await here.statuses()} == {1}
    assert await here.findings() == []
    tell(release=f"v{earlier.version}", under_the_earlier="went on" if went_on else "left alone and said so")


async def test_back_and_forth(
    place: Callable[[str], Any], kubeconfig: Path, tmp_path: Path, earlier: Earlier, releases: Releases, tell: Any
) -> None:
    """Each is killed after a few pods and the other goes on, six times, until a sweep of 24 trials is through."""
    here = await place("back-and-forth")
    operators = both(kubeconfig, tmp_path, here.namespace, earlier)
    await releases.use("old")
    await here.apply("swing", Steps(operators, planned_by="old"), repeats=12, parallelism=3)
    try:
        for number in range(6):
            side = "old" if number % 2 == 0 else "new"
            await releases.use(side)
            ran = len(here.kubelet.ran)
            operators[side].start()
            await wait_for(lambda ran=ran: len(here.kubelet.ran) >= ran + 4, f"round {number}\n{operators[side]}", 300)
            operators[side].kill()
        await releases.use("new")
        operators["new"].start()
        await here.until_over("swing")
    finally:
        for operator in operators.values():
            operator.end()
    assert {status["attempt"] for status in await here.statuses()} == {1}
    assert await here.findings() == []
    tell(release=f"v{earlier.version}", rounds=6)
