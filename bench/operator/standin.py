"""The stand-in for what the pods do: `python -m bench.operator.standin OPTIONS`, a process of its own.

kwok lets pods run; here they end, each after its time with a message and (where it seals something) an object in the bucket. It
is also the kubelet whose logs the API server asks for: the plan. With ``--trials`` it watches the Trials too and writes down how
long after the end of a pod its Trial's status told of it, from the moment the end was sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import ssl
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from bench.operator.ends import JOB_ROLE, LABEL, Bucket, Json, Size, asked_of, plan_of
from bench.operator.http import MERGE, Answer, Http
from bench.operator.servers import NAMESPACE
from realcli.api.plan import PLAN_BEGIN, PLAN_END, encode_plan

SPREAD = 0.5
"""A pod's time is this share longer or shorter."""


class StandIn:
    """Ends pods. ``runs``: role → seconds."""

    def __init__(self, http: Http, bucket: Bucket, size: Size, runs: dict[str, float], latencies: Path) -> None:
        self._http = http
        self._bucket = bucket
        self._size = size
        self._runs = runs
        self._latencies = latencies
        self._known: set[str] = set()
        self._ends: set[asyncio.Task[None]] = set()
        self._sent: dict[str, float] = {}
        self._logs: dict[str, str] = {}

    async def pods(self) -> None:
        """Every pod that runs, once."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        async for type_, pod in self._http.events(path, "fieldSelector=status.phase%3DRunning"):
            uid = pod["metadata"]["uid"]
            if type_ == "DELETED" or uid in self._known:
                continue
            self._known.add(uid)
            end = asyncio.create_task(self._end(pod))
            self._ends.add(end)
            end.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ends.discard(task)
        if not task.cancelled() and task.exception() is not None:
            print(f"a pod was not ended: {task.exception()!r}", flush=True)

    async def _end(self, pod: Json) -> None:
        metadata = pod["metadata"]
        name, labels = metadata["name"], metadata["labels"]
        role = labels.get(f"{LABEL}/role") or labels[JOB_ROLE]
        middle = self._runs[role]
        await asyncio.sleep(random.Random(name).uniform((1 - SPREAD) * middle, (1 + SPREAD) * middle))
        if role == "plan":
            self._logs[name] = "\n".join((PLAN_BEGIN, encode_plan(plan_of(asked_of(pod), self._size)), PLAN_END))
        message = self._bucket.end(pod, self._size)
        main = pod["spec"]["containers"][-1]["name"]
        started = pod["status"]["startTime"]
        statuses = [
            {
                "name": c["name"], "image": c["image"], "imageID": c["image"],
                "ready": False, "started": False, "restartCount": 0,
                "state": {"terminated": _terminated(started, message if c["name"] == main else "")},
            }
            for c in pod["spec"]["containers"]
        ]  # fmt: skip
        self._sent[name] = time.time()
        try:
            status = {"phase": "Succeeded", "containerStatuses": statuses}
            await self._http.send("PATCH", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/status", {"status": status}, MERGE)
        except Answer as error:
            if error.status != 404:  # deleted meanwhile
                raise

    async def trials(self) -> None:
        """How long after the end of its pod a Trial says so."""
        told: set[str] = set()
        path = f"/apis/realcli.dev/v1alpha1/namespaces/{NAMESPACE}/trials"
        with self._latencies.open("a") as out:
            async for type_, trial in self._http.events(path):
                status, now = trial.get("status", {}), time.time()
                phase, name = status.get("phase"), trial["metadata"]["name"]
                if type_ != "MODIFIED" or phase not in {"Verifying", "Sealed"}:
                    continue
                pod = f"{name}-a{status['attempt']}" + (f"-v{status['verifyAttempt']}" if phase == "Sealed" else "")
                if pod in self._sent and pod not in told:
                    told.add(pod)
                    out.write(json.dumps({"pod": pod, "phase": phase, "seconds": now - self._sent[pod]}) + "\n")
                    out.flush()

    async def log(self, request: web.Request) -> web.Response:
        """What the API server asks a kubelet for."""
        text = self._logs.get(request.match_info["pod"])
        return web.Response(text=text) if text is not None else web.Response(status=404, text="no such log")


def _terminated(started: str, message: str) -> Json:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended: Json = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now}
    return ended | ({"message": message} if message else {})


def certificate(folder: Path) -> ssl.SSLContext:
    """A certificate for the kubelet's port; the API server does not ask who signed it."""
    crt, key = folder / "kubelet.crt", folder / "kubelet.key"
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kubelet"]
    subprocess.run([*new, "-keyout", str(key), "-out", str(crt)], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(crt, key)
    return context


async def run(options: Any) -> None:
    """Until a signal."""
    folder = Path(options.folder)
    bucket = Bucket(folder / "bucket", folder / "journal.jsonl")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Http(Path(options.kubeconfig)) as http:
        runs = json.loads(options.runs)
        stand_in = StandIn(http, bucket, Size(options.configurations, options.tasks), runs, folder / "latencies.jsonl")
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", stand_in.log)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", options.port, ssl_context=certificate(folder)).start()
        watches = [asyncio.create_task(stand_in.pods())]
        if options.trials:
            watches.append(asyncio.create_task(stand_in.trials()))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, *watches], return_when=asyncio.FIRST_COMPLETED)
        for watch in watches:
            if watch.done():
                watch.result()  # raises: a watch never ends by itself
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        await runner.cleanup()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--configurations", type=int, required=True)
    parser.add_argument("--tasks", type=int, required=True)
    parser.add_argument("--runs", required=True, help='JSON: {"work": seconds, …}')
    parser.add_argument("--trials", action="store_true", help="measure how soon Trials tell of their pods")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
