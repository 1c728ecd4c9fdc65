"""A Secret that is missing, or revoked, in the middle of a sweep: what the pods show of it is all that the operator knows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from realcli.api.termination import Result
from realcli_operator.reconcile.policy import Policy
from tests.support.control_plane import wait_for
from tests.support.stub_kubelet import Act, Seen, happy, say

pytestmark = pytest.mark.apiserver
MISSING = ("CreateContainerConfigError", 'secret "anthropic" not found')


async def test_a_secret_that_is_missing_for_a_while_costs_nothing(place: Callable[[str], Any]) -> None:
    here = await place("secret-missing")
    there = asyncio.Event()

    def script(seen: Seen) -> Act:
        return Act(waiting=MISSING) if seen.role == "work" and not there.is_set() else happy(seen)

    async with here.living():
        await here.apply("waits", script)

        async def shown() -> bool:
            return [status.get("reason") for status in await here.statuses()] == ["ConfigurationError"] * 2

        await wait_for(shown, "both trials say what they wait for")
        assert all('secret "anthropic" not found' in status["message"] for status in await here.statuses())
        there.set()
        await here.until_over("waits")
    assert {(s["attempt"], s["reason"]) for s in await here.statuses()} == {(1, "Completed")}
    assert await here.findings() == []


async def test_a_secret_that_stays_away_stops_the_sweep_early(place: Callable[[str], Any]) -> None:
    here = await place("secret-gone")
    there = asyncio.Event()

    def script(seen: Seen) -> Act:
        return Act(waiting=MISSING) if seen.role == "work" and not there.is_set() else happy(seen)

    async with here.living(policy=Policy(config_grace=0.3, probe_interval=2.0)):
        await here.apply("gone", script, repeats=10, parallelism=20)

        async def degraded() -> Any:
            conditions = (await here.sweep("gone")).get("status", {}).get("conditions", [])
            return next((c for c in conditions if (c["type"], c["status"]) == ("Degraded", "True")), None)

        condition = await wait_for(degraded, "the breaker is open")
        assert 'secret "anthropic" not found' in condition["message"]
        there.set()
        status = await here.until_over("gone", "Incomplete")
    assert status["counts"]["sealed"] + status["counts"]["invalid"] == 20
    assert status["counts"]["invalid"] <= 10, "most of the sweep is there when the Secret is back"
    ended = {(s["phase"], s["reason"]) for s in await here.statuses()}
    assert ended == {("Sealed", "Completed"), ("Invalid", "ConfigurationError")}
    assert await here.findings() == []


async def test_a_key_revoked_and_replaced_in_the_middle(place: Callable[[str], Any]) -> None:
    """What ran with the old key is asked again; at most ten pods find out that it is revoked."""
    here = await place("secret-revoked")
    revoked, rotated = asyncio.Event(), asyncio.Event()
    refused: list[str] = []

    went_well = 0

    def script(seen: Seen) -> Act | None:
        nonlocal went_well
        if seen.role != "work" or not revoked.is_set() or rotated.is_set():
            if seen.role == "work":
                went_well = int(time.time())
                if seen.trial.endswith("3"):
                    revoked.set()
            return happy(seen)
        if int(time.time()) <= went_well:  # times have whole seconds: what failed in the same one may have been before it
            return None
        refused.append(seen.name)
        return Act(say("Work", Result.WORK_INVALID, reason="ProviderUnavailable", message="401 this key is revoked"))

    async with here.living(policy=Policy(probe_interval=5.0)):
        await here.apply("revoked", script, repeats=10, parallelism=4, retry={"infrastructure": 9, "backoff": "2s"})

        async def degraded() -> Any:
            conditions = (await here.sweep("revoked")).get("status", {}).get("conditions", [])
            return next((c for c in conditions if (c["type"], c["status"]) == ("Degraded", "True")), None)

        condition = await wait_for(degraded, "the breaker is open")
        assert "401 this key is revoked" in condition["message"]
        assert len(set(refused)) <= 10
        rotated.set()
        await here.until_over("revoked")
    assert {status["reason"] for status in await here.statuses()} == {"Completed"}
    assert await here.findings() == []
