"""The real Claude Code, started by a real runner, talking through a real gateway to a provider that answers by script."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from realcli.api.sweep import Mode
from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli_session.agents.claude_code import ClaudeCode
from realcli_session.agents.port import AgentEvent, AgentSpec
from realcli_session.evidence.watch import ChangeWatch
from realcli_session.gateway.config import GatewayConfig, RetryPolicy
from realcli_session.gateway.server import Gateway
from realcli_session.runner import RunnerClient
from tests.integration.conformance.bench import start_runner
from tests.support.claude_code import claude_code_dir

ROOT = Path(__file__).resolve().parents[3]
PINNED = ROOT / "runner_image" / "agents" / "claude-code"
KEY = "sk-real-key-0123456789abcdef"
MODEL = "claude-sonnet-4-5"
E = TypeVar("E", bound=AgentEvent)
Step = dict[str, Any]


@pytest.fixture(scope="session")
def claude_dir() -> Path:
    """The directory of the pinned program."""
    return claude_code_dir()


class Provider:
    """Answers generation requests by script: {"text"}, {"tool", "input", "say"?}, {"status"}; "cut": how it ends in the middle;
    "hold": an event waited for before the last part of the answer; "holding": set when it waits.
    """

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.arrived: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        step = self.steps[min(len(self.bodies), len(self.steps) - 1)]
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        self.arrived.put_nowait(body)
        if "status" in step:
            return web.json_response(
                {"type": "error", "error": {"type": "api_error", "message": "scripted"}}, status=step["status"]
            )
        usage = {"input_tokens": 100, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20}
        head = {"id": f"msg_{len(self.bodies)}", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": None}
        blocks = [{"type": "text", "text": step[key]} for key in ("say", "text") if key in step]
        if "tool" in step:
            blocks.append({"type": "tool_use", "id": f"toolu_{len(self.bodies)}", "name": step["tool"], "input": step["input"]})
        stop = "tool_use" if "tool" in step else "end_turn"
        if not body.get("stream"):
            whole = {**head, "content": blocks, "stop_reason": stop, "usage": usage | {"output_tokens": 7}}
            return web.json_response(whole)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)

        async def emit(**event: Any) -> None:
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        await emit(type="message_start", message={**head, "content": [], "usage": usage | {"output_tokens": 1}})
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                delta: Step = {"type": "text_delta", "text": block["text"]}
                await emit(type="content_block_start", index=index, content_block={"type": "text", "text": ""})
            else:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                await emit(type="content_block_start", index=index, content_block={**block, "input": {}})
            await emit(type="content_block_delta", index=index, delta=delta)
            if step.get("cut") == "after a block":
                await emit(type="content_block_stop", index=index)
            if "cut" in step:
                if step["cut"] == "error":
                    await emit(type="error", error={"type": "overloaded_error", "message": "Overloaded"})
                if step["cut"] in ("connection", "after a block"):
                    assert request.transport is not None
                    request.transport.close()
                return response
            if "hold" in step:
                step["holding"].set()
                await step["hold"].wait()
            await emit(type="content_block_stop", index=index)
        await emit(type="message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage | {"output_tokens": 7})
        await emit(type="message_stop")
        return response


@dataclass
class Stand:
    """All parts of one run. `work` is the agent's working directory."""

    provider: Provider
    gateway: Gateway
    runner: RunnerClient
    adapter: ClaudeCode
    ledger: LedgerWriter
    events: list[Event]
    work: Path
    spec: AgentSpec
    _typed: AsyncIterator[AgentEvent] = field(init=False)
    passed: list[AgentEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._typed = self.adapter.events()

    async def next(self, kind: type[E]) -> E:
        """The next typed event of a kind; others go to `passed`."""
        async with asyncio.timeout(30):
            async for event in self._typed:
                self.passed.append(event)
                if isinstance(event, kind):
                    return event
        raise AssertionError(f"no {kind.__name__}; the program ended: {self.passed}")

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events if event.kind == kind]

    async def commands(self) -> list[str]:
        """Command lines of what runs below the runner."""
        return [" ".join(proc.argv) for proc in await self.runner.procs()]


StartStand = Callable[..., Awaitable[Stand]]


@pytest.fixture
async def stand(claude_dir: Path, tmp_path: Path) -> AsyncIterator[StartStand]:
    """stand(*steps, mode="EXEC", turn_limit=20, watch=[], markers={}) -> Stand, with the agent waiting for its first message"""
    cleanup = contextlib.AsyncExitStack()

    async def begin(
        *steps: Step, mode: Mode = "EXEC", turn_limit: int = 20, watch: bool = False, markers: dict[str, list[str]] | None = None
    ) -> Stand:
        folder = Path(tempfile.mkdtemp(prefix=f"{mode.lower()}-", dir=tmp_path))
        work, home = folder / "work", folder / "home"
        work.mkdir()
        home.mkdir()
        provider = Provider(*steps)
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("POST", "/v1/{path:.*}", provider.handle)
        server = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await server.setup()
        cleanup.push_async_callback(server.cleanup)
        await web.TCPSite(server, "127.0.0.1", 0).start()
        events: list[Event] = []
        ledger = LedgerWriter(folder / "spool", on_event=events.append)
        cleanup.callback(ledger.close)
        config = GatewayConfig(
            upstream=f"http://127.0.0.1:{server.addresses[0][1]}",
            key=KEY,
            model=MODEL,
            turn_limit=turn_limit,
            allow_loopback=True,
            port=0,
            retry=RetryPolicy(max_attempts=2, first_wait=0.01),
            markers=markers or {},
        )
        gateway = Gateway(config, ledger)
        await gateway.start()
        cleanup.push_async_callback(gateway.stop)
        runner = await start_runner(cleanup, home)
        adapter = ClaudeCode(runner, ledger)
        spec = AgentSpec(
            mode=mode,
            version="2.1.140",
            model=MODEL,
            base_url=gateway.base_url,
            token=gateway.token,
            workdir=str(work),
            environ=runner.hello.environ,
            home=str(home),
            program_dir=str(claude_dir),
            state_dir=str(folder / "state"),
        )
        await adapter.start(spec)
        cleanup.push_async_callback(adapter.stop, grace=1.0)
        if watch:
            changes = ChangeWatch(runner, ledger, [f"{work}/**"])
            await changes.start()
            gateway.on_request_accepted = changes.on_turn
        return Stand(provider, gateway, runner, adapter, ledger, events, work, spec)

    try:
        yield begin
    finally:
        await cleanup.aclose()
