"""The floor: the same pods with nobody who looks after them, two per trial, the second when the first has succeeded.

`python -m bench.operator.bare KUBECONFIG TEMPLATES TRIALS WINDOW`, as `bench.operator.jobs`. No Job, no Trial, no retry, nothing
kept: what the API server, the scheduler, kwok and the stand-in need for a pod whoever makes it.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from bench.operator.http import Http
from bench.operator.servers import NAMESPACE

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


async def main(kubeconfig: str, templates: str, trials: str, parallelism: str) -> None:
    """Run all trials."""
    window, done = asyncio.Semaphore(int(parallelism)), dict[str, asyncio.Future[None]]()
    roles: dict[str, Any] = json.loads(Path(templates).read_text())  # noqa: ASYNC240

    async def trial(http: Http, number: int) -> None:
        async with window:
            for role, template in roles.items():
                name, pod = f"trial-{number:05d}-{role}", template["spec"]["template"]
                done[name] = asyncio.get_running_loop().create_future()
                await http.send("POST", PODS, {"metadata": pod["metadata"] | {"name": name}, "spec": pod["spec"]})
                await done[name]
                await http.send("DELETE", f"{PODS}/{name}")

    async def watch(http: Http) -> None:
        async for _, pod in http.events(PODS, "fieldSelector=status.phase%3DSucceeded"):
            future = done.get(pod["metadata"]["name"])
            if future is not None and not future.done():
                future.set_result(None)

    async with Http(Path(kubeconfig)) as http:
        watching = asyncio.create_task(watch(http))
        await asyncio.gather(*(trial(http, number) for number in range(int(trials))))
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
