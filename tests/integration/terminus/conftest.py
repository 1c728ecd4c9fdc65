"""Terminus-2 with a real runner, a real tmux, a real gateway, and a provider that answers by script."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
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
from realcli_session.agents import terminus_wording
from realcli_session.agents.port import AgentEvent, AgentSpec
from realcli_session.agents.terminus import Terminus2
from realcli_session.gateway.config import GatewayConfig, RetryPolicy
from realcli_session.gateway.server import Gateway
from realcli_session.runner import RunnerClient, listen
from tests.support.terminus import toolkit_folder, words_folder

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-real-key-0123456789abcdef"
MODEL = "gpt-5.2"
E = TypeVar("E", bound=AgentEvent)
Step = dict[str, Any]


def reply(*keys: str, wait: float = 0.3, done: bool = False, **more: Any) -> Step:
    """A well-formed reply that types `keys`, a command each."""
    commands = [{"keystrokes": text, "duration": wait} for text in keys]
    made = {"analysis": "I look.", "plan": "I type.", "commands": commands, **({"task_complete": True} if done else {}), **more}
    return {"content": json.dumps(made)}


DONE = reply(done=True)


class Provider:
    """Answers by script: {"content"}, {"status", "message"}; "finish": the reason; "tokens": (prompt, completion); "hold": what
    is waited for before the answer.
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
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.arrived.put_nowait(body)
        if "hold" in step:
            await step["hold"].wait()
        if "status" in step:
            error = {"error": {"message": step["message"], "type": "invalid_request_error", "code": step.get("code")}}
            return web.json_response(error, status=step["status"])
        prompt, completion = step.get("tokens", (100, 7))
        choice = {
            "index": 0,
            "finish_reason": step.get("finish", "stop"),
            "message": {"role": "assistant", "content": step["content"]},
        }
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        answer = {"id": f"chatcmpl-{len(self.bodies)}", "object": "chat.completion", "created": 1, "model": MODEL}
        return web.json_response({**answer, "choices": [choice], "usage": usage})

    def prompt(self, number: int) -> str:
        """The newest message of the n-th request, from 1."""
        return str(self.bodies[number - 1]["messages"][-1]["content"])


@dataclass
class Stand:
    """All parts of one run. `work` is the agent's working directory."""

    provider: Provider
    gateway: Gateway
    runner: RunnerClient
    adapter: Terminus2
    ledger: LedgerWriter
    events: list[Event]
    work: Path
    spec: AgentSpec
    _typed: AsyncIterator[AgentEvent] = field(init=False)
    passed: list[AgentEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._typed = self.adapter.events()

    async def next(self, kind: type[E], seconds: float = 60) -> E:
        """The next typed event of a kind; others go to `passed`."""
        async with asyncio.timeout(seconds):
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


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = words_folder()
    monkeypatch.setenv(terminus_wording.FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
async def stand() -> AsyncIterator[StartStand]:
    """stand(*steps, mode="EXEC", turn_limit=20, markers={}, **spec) -> Stand, with the agent waiting for its first message"""
    cleanup = contextlib.AsyncExitStack()

    async def begin(
        *steps: Step, mode: Mode = "EXEC", turn_limit: int = 20, markers: dict[str, list[str]] | None = None, **more: Any
    ) -> Stand:
        folder = Path(tempfile.mkdtemp(prefix="rcli-t2-"))  # short: a socket's path has 107 bytes
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
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
            upstream=f"http://127.0.0.1:{server.addresses[0][1]}/v1",
            key=KEY,
            model=MODEL,
            turn_limit=turn_limit,
            allow_loopback=True,
            port=0,
            retry=RetryPolicy(max_attempts=2, first_wait=0.01),
            markers=markers or {},
            dialect="chat",
            texts="adapter",
        )
        gateway = Gateway(config, ledger)
        await gateway.start()
        cleanup.push_async_callback(gateway.stop)
        runner = await start_runner(cleanup, home)
        adapter = Terminus2(runner, ledger)
        spec: dict[str, Any] = {
            "mode": mode,
            "version": "0.26.0",
            "model": MODEL,
            "base_url": gateway.base_url,
            "token": gateway.token,
            "workdir": str(work),
            "environ": runner.hello.environ,
            "home": str(home),
            "program_dir": str(toolkit_folder() / "agent"),
            "state_dir": str(folder / "state"),
        }
        made = AgentSpec(**(spec | more))
        await adapter.start(made)
        cleanup.push_async_callback(adapter.stop, grace=5.0)
        return Stand(provider, gateway, runner, adapter, ledger, events, work, made)

    try:
        yield begin
    finally:
        await cleanup.aclose()


async def start_runner(cleanup: contextlib.AsyncExitStack, home: Path) -> RunnerClient:
    """A runner as an ordinary process with an environment of its own."""
    sockets = Path(tempfile.mkdtemp(prefix="rcli-"))
    cleanup.callback(shutil.rmtree, sockets)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TASK_VARIABLE": "kept"}
    begin = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'runner_image')]}; from realcli_runner.main import main; main()"
    command = [sys.executable, "-c", begin, "--socket", str(sockets / "s"), "--setup-seconds", "60"]
    listener = listen(str(sockets / "s"))
    process = await asyncio.create_subprocess_exec(*command, env=environ, stdin=subprocess.DEVNULL)
    cleanup.push_async_callback(process.wait)
    client = await listener.accept(60)
    cleanup.push_async_callback(client.close)
    return client
