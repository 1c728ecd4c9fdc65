"""What people do without an operator: the same pods as plain Jobs, two per trial, the second when the first is complete.

`python -m bench.operator.jobs KUBECONFIG TEMPLATES TRIALS WINDOW`. TEMPLATES holds the Job of each role; the rest is 20 lines.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from bench.operator.http import Http
from bench.operator.servers import NAMESPACE

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


async def main(kubeconfig: str, templates: str, trials: str, parallelism: str) -> None:
    """Run all trials."""
    window, done = asyncio.Semaphore(int(parallelism)), dict[str, asyncio.Future[None]]()
    roles: dict[str, Any] = json.loads(Path(templates).read_text())  # noqa: ASYNC240

    async def trial(http: Http, number: int) -> None:
        async with window:
            for role, template in roles.items():
                name = f"trial-{number:05d}-{role}"
                done[name] = asyncio.get_running_loop().create_future()
                await http.send("POST", JOBS, template | {"metadata": {"name": name}})
                await done[name]
                await http.send("DELETE", f"{JOBS}/{name}?propagationPolicy=Background")

    async def watch(http: Http) -> None:
        async for _, job in http.events(JOBS):
            conditions: list[Any] = job.get("status", {}).get("conditions", [])
            if any(c["type"] == "Complete" for c in conditions) and job["metadata"]["name"] in done:
                future = done[job["metadata"]["name"]]
                if not future.done():
                    future.set_result(None)

    async with Http(Path(kubeconfig)) as http:
        watching = asyncio.create_task(watch(http))
        await asyncio.gather(*(trial(http, number) for number in range(int(trials))))
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
