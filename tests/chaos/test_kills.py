"""The operator killed, at every single position and at random."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.troubles import Troubles
from tests.integration.operator.faults.test_killed import Troubled
from tests.support.control_plane import wait_for
from tests.support.end_audit import differences, end_state
from tests.support.life import Lives

pytestmark = pytest.mark.apiserver
TOGETHER = 8


async def test_killed_once_at_each_position(place: Callable[[str], Any], admin: Any, tell: Any) -> None:
    """A sweep of six trials for each of its writes: the operator dies after that one, once, and starts again."""
    troubled = Troubled()

    async def run(name: str, position: int) -> Lives:
        here = await place(name)
        lives = Lives(here.plane, name, lambda own, total: total == position)
        await here.apply("six", troubled, repeats=3)
        await lives.run(lambda: here.over("six"))
        assert await here.findings() == []
        return lives

    whole = await run("whole", 0)
    expected = await end_state(admin, "whole")
    positions = list(range(1, len(whole.writes) + 1))
    died: list[str] = []
    for batch in (positions[i : i + TOGETHER] for i in range(0, len(positions), TOGETHER)):
        results = await asyncio.gather(*(run(f"killed-{position}", position) for position in batch))
        for position, lives in zip(batch, results, strict=True):
            died += lives.positions
            other = differences(await end_state(admin, f"killed-{position}"), expected)
            assert other == [], f"killed after write {position}: {lives.positions}"
    tell(positions=len(positions), kills=len(died))


async def test_random_kills(
    place: Callable[[str], Any], new_operator: Any, kubelet: Any, rng: random.Random, minutes: float, tell: Any
) -> None:
    """kill -9 of the real process every few seconds, sweeps coming in all the while, pods in trouble; then all sweeps end."""
    here = await place("random-kills")
    operator = new_operator(here.namespace)
    operator.start()
    until = time.monotonic() + minutes * 60
    started: list[str] = []
    kills = 0
    while time.monotonic() < until:
        states = [item.get("status", {}).get("state") for item in (await here.admin.send("GET", here.sweeps))["items"]]
        if sum(state not in {"Complete", "Incomplete", "Failed"} for state in states) < 3:
            name = f"s{len(started)}"
            troubles = Troubles(rng.randrange(2**32))
            await here.apply(name, troubles, repeats=rng.randint(1, 4), retry={"infrastructure": 3, "backoff": "200ms"})
            started.append(name)
        await asyncio.sleep(rng.choice([rng.uniform(0.0, 3.0), rng.uniform(3.0, 15.0)]))  # the fault itself, not a wait for one
        operator.kill()
        kills += 1
        operator.start()
    for name in started:
        await wait_for(lambda name=name: here.over(name), f"sweep {name} has ended", 600)
    trials = await here.statuses()
    tell(kills=kills, sweeps=len(started), trials=len(trials), attempts=sum(trial["attempt"] for trial in trials))
    assert not operator.ended, str(operator)
    states = {name: (await here.sweep(name))["status"]["state"] for name in started}
    assert set(states.values()) <= {"Complete", "Incomplete"}, states
    assert await here.findings() == []
