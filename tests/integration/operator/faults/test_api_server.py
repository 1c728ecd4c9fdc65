"""An API server that is slow, refuses, forgets or says nothing; the operator's own retries are the only help."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from realcli_operator.kube.informer import WatchSettings
from realcli_operator.kube.lister import ResyncSettings
from realcli_operator.kube.transport import ClientSettings
from tests.support.control_plane import wait_for
from tests.support.fault_proxy import Asked, Fault, Rule, misbehaving, only
from tests.support.stub_kubelet import Act, Seen, happy

pytestmark = pytest.mark.apiserver
PATIENT = ClientSettings(writes_per_second=1000, write_burst=100, tries=4, retry_base=0.05, retry_cap=0.2, request_timeout=5)


def every(n: int, fault: Fault, when: Callable[[Asked], Any] = lambda _: True) -> Rule:
    """``fault`` for the first of every ``n`` requests that match."""
    count = -1

    def rule(asked: Asked) -> Fault | None:
        nonlocal count
        if not when(asked):
            return None
        count += 1
        return fault if count % n == 0 else None

    return rule


def write(asked: Asked) -> bool:
    return asked.is_write


def status(asked: Asked) -> bool:
    return asked.method == "PATCH" and asked.path.endswith("/status")


def watch(asked: Asked) -> bool:
    return asked.is_watch


def relist(asked: Asked) -> bool:
    return asked.is_list and asked.number > 0


RULES: dict[str, tuple[list[Rule], str]] = {
    "slow": ([only(lambda asked: not asked.is_watch, Fault(delay=0.15))], "delay"),
    "throttled": ([every(2, Fault(status=429), lambda asked: not asked.is_watch)], "429"),
    "unavailable": ([every(3, Fault(status=503)), every(4, Fault(refused=True))], "503"),
    # the write was made, and its answer never came: the second try meets the first
    "unanswered": ([every(2, Fault(lost=True), write)], "lost"),
    "conflicting": ([every(2, Fault(status=409), status)], "409"),
    "forgetful": ([every(2, Fault(expired=True), watch), every(3, Fault(status=410), lambda asked: asked.is_list)], "expired"),
    "behind": ([only(relist, Fault(stale=True)), every(2, Fault(expired=True), watch)], "stale"),
}
"""What happens, and how often of what a test has to have seen."""


async def test_a_sweep_goes_through(place: Callable[[str], Any]) -> None:
    """Each kind of fault has a sweep of its own, all the way from its plan Job to its scores."""

    async def run(name: str, rules: list[Rule], fault: str) -> None:
        here = await place(name)
        await here.apply("goes", repeats=1)
        async with here.proxied(*rules) as proxy, here.living(url=proxy.url, client=PATIENT):
            await here.until_over("goes")
            assert proxy.seen[fault] >= 3, (name, proxy.seen)
        assert await here.findings() == []
        assert {trial["attempt"] for trial in await here.statuses()} == {1}, name

    await asyncio.gather(*(run(name, *given) for name, given in RULES.items()))


@pytest.mark.parametrize("seed", [1, 2])
async def test_everything_at_once(place: Callable[[str], Any], seed: int) -> None:
    here = await place(f"everything-{seed}")
    await here.apply("all", repeats=3)
    layers = {"resync": ResyncSettings(first=2, period=2), "watch": WatchSettings(pause=0.02, silence=2.0)}
    bad = misbehaving(seed, share=0.33)
    async with here.proxied(bad) as proxy, here.living(url=proxy.url, client=PATIENT, wait=False, **layers):
        await here.until_over("all")
        assert sum(proxy.seen[fault] for fault in ("status", "lost", "refused", "stale", "expired", "delay")) >= 15, proxy.seen
    assert await here.findings() == []
    assert {trial["attempt"] for trial in await here.statuses()} == {1}


async def test_an_operator_that_starts_on_a_stale_list_repeats_nothing(place: Callable[[str], Any]) -> None:
    """A new process may be given the lists of long ago: trials without status, no pod at all."""
    here = await place("starts-stale")
    held = asyncio.Event()

    def script(seen: Seen) -> Act | None:
        return None if seen.role == "work" and not held.is_set() else happy(seen)

    async with here.proxied() as proxy:
        await here.apply("again", script)
        async with here.living(url=proxy.url):
            await wait_for(lambda: here.ran("again-00000-a1") and here.ran("again-00001-a1"), "both work")
        before = {name: pod["metadata"]["uid"] for name, pod in (await here.pods()).items()}
        stale = [only(lambda asked: asked.is_list, Fault(stale=True))]
        # the lists of the first life's start: not even the trials are there
        proxy.rules[:] = stale
        async with here.living(url=proxy.url):
            held.set()
            await here.until_over("again")
        assert proxy.seen["stale"] >= 3
    assert await here.findings() == []
    assert len([name for name in before if "-a1" in name]) == 2
    assert {trial["attempt"] for trial in await here.statuses()} == {1}


async def test_two_operators_at_once_do_everything_once(place: Callable[[str], Any]) -> None:
    """A rollout that overlaps, a partition: both write, and who comes second sees it."""
    here = await place("two-at-once")
    await here.apply("shared", repeats=3, parallelism=6)
    async with AsyncExitStack() as stack:
        lives = [await stack.enter_async_context(here.living()) for _ in range(2)]
        await here.until_over("shared")
        for life in lives:  # who comes second is refused, and has tried
            assert any(request.startswith("POST") and request.endswith("/pods") for request in life.transport.requests)
    assert await here.findings() == []
    assert {trial["attempt"] for trial in await here.statuses()} == {1}
