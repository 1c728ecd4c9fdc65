"""kopf as the shell on a real API server: it sees sweeps, enqueues them, writes nothing, and its probe can fail."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import aiohttp
import pytest
import yaml

from realcli_operator.kopf_shell import Shell, run
from realcli_operator.kube.names import Kind
from realcli_operator.kube.transport import load_configuration

pytestmark = pytest.mark.apiserver
SWEEPS = "/apis/realcli.dev/v1alpha1/namespaces/one/benchmarksweeps"
SPEC = """
benchmark: {source: s3://evals/benchmarks/starter/1.0.0}
agents: [{name: claude-code}]
models:
- name: sonnet
  model: claude-sonnet-4-5
  endpoints: {anthropic: {url: https://api.anthropic.com, apiKey: {secretRef: {name: anthropic, key: api-key}}}}
storage: {bucket: evals, credentials: {secretRef: {name: evals-s3}}}
"""


async def test_sweeps_are_seen_and_left_alone(control_plane: Any, running: Any, admin: Any, wait_for: Any, tmp_path: Any) -> None:
    def sweep(name: str) -> dict[str, Any]:
        return {
            "apiVersion": "realcli.dev/v1alpha1",
            "kind": "BenchmarkSweep",
            "metadata": {"name": name},
            "spec": yaml.safe_load(SPEC),
        }

    await admin.send("POST", SWEEPS, sweep("early"))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(control_plane.kubeconfig()))
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    async with running(control_plane, start=False) as operator:
        looked_at: list[str] = []

        class Look:
            async def observe(self, key: Any) -> None:
                looked_at.append(key.name)

            def decide(self, observed: Any, now: Any) -> None:
                raise AssertionError

            async def execute(self, key: Any, observed: Any, plan: Any) -> Any:
                raise AssertionError

        async def start() -> None:
            await operator.layer.start({Kind.TRIAL: operator.toy, Kind.SWEEP: Look()})

        shell = Shell(
            operator.layer,
            await load_configuration(kubeconfig),
            start,
            operator.layer.stop,
            liveness=f"http://127.0.0.1:{port}/healthz",
        )
        stop, ready = asyncio.Event(), asyncio.Event()
        kopf = asyncio.create_task(run(shell, stop_flag=stop, ready_flag=ready))
        store = operator.layer.store
        await wait_for(ready.is_set, "kopf is ready")
        assert store.sweep("one", "early") is not None

        await admin.send("POST", SWEEPS, sweep("late"))
        await wait_for(lambda: "late" in looked_at, "a new sweep is looked at")
        await admin.merge(f"{SWEEPS}/late", {"spec": {"suspend": True}})
        await wait_for(lambda: store.sweep("one", "late").spec.get("suspend"), "a change arrives")
        metadata = (await admin.send("GET", f"{SWEEPS}/late"))["metadata"]
        assert metadata.get("annotations") is None
        assert metadata.get("finalizers") is None
        await admin.send("DELETE", f"{SWEEPS}/late")
        await wait_for(lambda: store.sweep("one", "late") is None, "a deletion arrives")

        async with aiohttp.ClientSession() as session:

            async def probe() -> int:
                async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                    return answer.status

            healthy = operator.layer.problems
            operator.layer.problems = lambda: ["no key finished for 181 s"]  # type: ignore[method-assign]
            assert await probe() == 500
            operator.layer.problems = healthy  # type: ignore[method-assign]
            assert await probe() == 200

        stop.set()
        await asyncio.wait_for(kopf, 60)
        assert operator.layer.queue.stats().processing == 0
    await admin.send("DELETE", f"{SWEEPS}/early")
