"""The floor: the same pods with nobody who looks after them, two per trial, the second when the first has succeeded, one per
group.

`python -m bench.operator.bare KUBECONFIG TEMPLATES TRIALS WINDOW GROUP JUDGES`, as `bench.operator.jobs`. No Job, no Trial, no
retry, nothing kept: what the API server, the scheduler, kwok and the stand-in need for a pod whoever makes it.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from bench.operator.http import Http
from bench.operator.servers import NAMESPACE

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


async def main(kubeconfig: str, templates: str, trials: str, parallelism: str, size: str, judges: str) -> None:
    """Run all trials."""
    window, judging, done = asyncio.Semaphore(int(parallelism)), asyncio.Semaphore(int(judges)), dict[str, asyncio.Future[None]]()
    roles: dict[str, Any] = json.loads(Path(templates).read_text())  # noqa: ASYNC240

    async def run(http: Http, name: str, role: str) -> None:
        pod = roles[role]["spec"]["template"]
        done[name] = asyncio.get_running_loop().create_future()
        await http.send("POST", PODS, {"metadata": pod["metadata"] | {"name": name}, "spec": pod["spec"]})
        await done[name]
        await http.send("DELETE", f"{PODS}/{name}")

    async def trial(http: Http, number: int) -> None:
        async with window:
            await run(http, f"trial-{number:05d}-work", "work")
            await run(http, f"trial-{number:05d}-verify", "verify")

    async def group(http: Http, first: int) -> None:
        await asyncio.gather(*(trial(http, number) for number in range(first, first + int(size))))
        async with judging:
            await run(http, f"group-{first:05d}-judge", "judge")

    async def watch(http: Http) -> None:
        async for _, pod in http.events(PODS, "fieldSelector=status.phase%3DSucceeded"):
            future = done.get(pod["metadata"]["name"])
            if future is not None and not future.done():
                future.set_result(None)

    async with Http(Path(kubeconfig)) as http:
        watching = asyncio.create_task(watch(http))
        await asyncio.gather(*(group(http, first) for first in range(0, int(trials), int(size))))
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
