"""The API server away, and answering with everything it has."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable
from typing import Any

import pytest

from realcli_operator.kube.informer import WatchSettings
from realcli_operator.kube.lister import ResyncSettings
from realcli_operator.kube.transport import ClientSettings
from tests.chaos.troubles import Troubles
from tests.support.control_plane import wait_for
from tests.support.fault_proxy import misbehaving

pytestmark = pytest.mark.apiserver
AWAY = float(os.environ.get("REALCLI_CHAOS_AWAY", "120"))


async def test_api_server_away_for_two_minutes(
    place: Callable[[str], Any], new_operator: Any, kubelet: Any, control_plane: Any, rng: random.Random, tell: Any
) -> None:
    """kube-apiserver killed in the middle of a sweep and started again two minutes later, over the same etcd."""
    here = await place("api-away")
    operator = new_operator(here.namespace)
    operator.start()
    await here.apply("away", Troubles(rng.randrange(2**32)), repeats=10, retry={"infrastructure": 3, "backoff": "1s"})

    async def under_way() -> bool:
        return sum(status.get("phase") == "Sealed" for status in await here.statuses()) >= 2

    await wait_for(under_way, "some trials are sealed")
    control_plane.api.end(signal.SIGKILL)
    await asyncio.sleep(AWAY)  # the fault itself
    await asyncio.to_thread(control_plane.start_api)
    await wait_for(lambda: here.over("away"), "the sweep has ended", 300)
    assert not operator.ended, "the process lives through it"
    kubelet.errors.clear()  # its own requests met the outage
    assert (await here.sweep("away"))["status"]["state"] in {"Complete", "Incomplete"}
    assert await here.findings() == []
    tell(seconds_away=AWAY, trials=20)


@pytest.mark.parametrize("number", range(5))
async def test_everything_at_once(place: Callable[[str], Any], rng: random.Random, number: int, tell: Any) -> None:
    """A third of all requests is slow, refused, lost, stale, 409, 410, 429 or 503."""
    here = await place(f"everything-{number}")
    await here.apply("all", Troubles(rng.randrange(2**32)), repeats=5, retry={"infrastructure": 3, "backoff": "200ms"})
    client = ClientSettings(writes_per_second=1000, write_burst=100, tries=4, retry_base=0.05, retry_cap=0.2, request_timeout=5)
    layers = {"resync": ResyncSettings(first=2, period=2), "watch": WatchSettings(pause=0.02, silence=2.0)}
    rule = misbehaving(rng.randrange(2**32), share=0.33)
    async with here.proxied(rule) as proxy, here.living(url=proxy.url, client=client, wait=False, **layers):
        await wait_for(lambda: here.over("all"), "the sweep has ended", 300)
        tell(**{name: count for name, count in sorted(proxy.seen.items()) if count})
    assert await here.findings() == []
