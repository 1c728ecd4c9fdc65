"""An upgrade and a downgrade while a sweep runs; the other side is the newest earlier release, as its own code was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.control_plane import wait_for
from tests.support.earlier import Earlier, earlier_operator
from tests.support.operator_process import Operator
from tests.support.stub_kubelet import Act, Seen, happy

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="session")
def earlier() -> Earlier:
    return earlier_operator()


class Steps:
    """Lets a sweep go on up to a point: pods of the roles in ``held`` run until `release`."""

    def __init__(self, *held: str) -> None:
        self.held = set(held)

    def release(self, *roles: str) -> None:
        self.held -= set(roles)

    def __call__(self, seen: Seen) -> Act | None:
        return None if seen.role in self.held else happy(seen)


def both(kubeconfig: Path, log: Path, namespace: str, earlier: Earlier) -> dict[str, Operator]:
    old = Operator(kubeconfig, log / "old.log", (namespace,), python=earlier.python, folder=earlier.folder)
    return {"old": old, "new": Operator(kubeconfig, log / "new.log", (namespace,))}


@pytest.mark.parametrize("handover", ["plan", "work", "verify", "judge", "report"])
@pytest.mark.parametrize(("first", "second"), [("old", "new"), ("new", "old")], ids=["upgrade", "downgrade"])
async def test_other_release(
    place: Callable[[str], Any],
    kubeconfig: Path,
    tmp_path: Path,
    earlier: Earlier,
    first: str,
    second: str,
    handover: str,
    tell: Any,
) -> None:
    """One begins a sweep and is stopped in the named phase, the other finishes it: no pod is made twice, none is made anew."""
    here = await place(f"{first}-{second}-{handover}")
    operators = both(kubeconfig, tmp_path, here.namespace, earlier)
    steps = Steps(handover)
    reached: set[str] = set()

    def script(seen: Seen) -> Act | None:
        if seen.role == handover:
            reached.add(seen.name)
        return steps(seen)

    try:
        operators[first].start()
        await here.apply("over", script, repeats=2)
        await wait_for(lambda: reached, f"phase {handover}\n{operators[first]}", 300)
        operators[first].end()
        before = {name: pod["metadata"]["uid"] for name, pod in (await here.pods()).items()}
        operators[second].start()
        steps.release(handover)
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


@pytest.mark.parametrize("rounds", [6])
async def test_back_and_forth(
    place: Callable[[str], Any], kubeconfig: Path, tmp_path: Path, earlier: Earlier, rounds: int, tell: Any
) -> None:
    """Each kills the other every few pods, until a sweep of 24 trials is through."""
    here = await place("back-and-forth")
    operators = both(kubeconfig, tmp_path, here.namespace, earlier)
    await here.apply("swing", repeats=12, parallelism=3)
    try:
        for number in range(rounds):
            operator = operators["old" if number % 2 == 0 else "new"]
            ran = len(here.kubelet.ran)
            operator.start()
            await wait_for(lambda ran=ran: len(here.kubelet.ran) >= ran + 4, f"round {number}\n{operator}", 300)
            operator.kill()
        operators["new"].start()
        await here.until_over("swing")
    finally:
        for operator in operators.values():
            operator.end()
    assert {status["attempt"] for status in await here.statuses()} == {1}
    assert await here.findings() == []
    tell(release=f"v{earlier.version}", rounds=rounds)
