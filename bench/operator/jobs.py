"""What people do without an operator: the same pods as plain Jobs, two per trial, the second when the first is complete, and one
that judges a group when its trials are over.

`python -m bench.operator.jobs KUBECONFIG TEMPLATES TRIALS WINDOW GROUP JUDGES`. TEMPLATES holds the Job of each role, GROUP is
how many trials are judged together, JUDGES how many groups at once; the rest is some 25 lines.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from bench.operator.http import Http
from bench.operator.servers import NAMESPACE

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


async def main(kubeconfig: str, templates: str, trials: str, parallelism: str, size: str, judges: str) -> None:
    """Run all trials."""
    window, judging, done = asyncio.Semaphore(int(parallelism)), asyncio.Semaphore(int(judges)), dict[str, asyncio.Future[None]]()
    roles: dict[str, Any] = json.loads(Path(templates).read_text())  # noqa: ASYNC240

    async def job(http: Http, name: str, role: str) -> None:
        done[name] = asyncio.get_running_loop().create_future()
        await http.send("POST", JOBS, roles[role] | {"metadata": {"name": name}})
        await done[name]
        await http.send("DELETE", f"{JOBS}/{name}?propagationPolicy=Background")

    async def trial(http: Http, number: int) -> None:
        async with window:
            await job(http, f"trial-{number:05d}-work", "work")
            await job(http, f"trial-{number:05d}-verify", "verify")

    async def group(http: Http, first: int) -> None:
        await asyncio.gather(*(trial(http, number) for number in range(first, first + int(size))))
        async with judging:
            await job(http, f"group-{first:05d}-judge", "judge")

    async def watch(http: Http) -> None:
        async for _, job in http.events(JOBS):
            conditions: list[Any] = job.get("status", {}).get("conditions", [])
            if any(c["type"] == "Complete" for c in conditions) and job["metadata"]["name"] in done:
                future = done[job["metadata"]["name"]]
                if not future.done():
                    future.set_result(None)

    async with Http(Path(kubeconfig)) as http:
        watching = asyncio.create_task(watch(http))
        await asyncio.gather(*(group(http, first) for first in range(0, int(trials), int(size))))
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
