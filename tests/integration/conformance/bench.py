"""One real agent program behind its adapter, a real runner, a real gateway, and a provider that answers by script."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from realcli.api.sweep import Mode
from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli_provider.script import Script
from realcli_provider.server import Provider, serve
from realcli_session.agents.port import AgentAdapter, AgentEvent, AgentSpec, Exit, OwnSetup, Question, Text, Yield
from realcli_session.agents.registry import adapter_class
from realcli_session.gateway.config import GatewayConfig, RetryPolicy
from realcli_session.gateway.server import Gateway
from realcli_session.runner import RunnerClient, listen
from realcli_session.runner.port import ProcInfo
from tests.integration.conformance.drivers import Driver

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk-real-key-0123456789abcdef"
PATIENCE = 60.0  # seconds until a test gives up waiting; nothing is measured by it
E = TypeVar("E", bound=AgentEvent)


@dataclass
class Bench:
    """All parts of one run. `work` is the agent's working directory."""

    driver: Driver
    provider: Provider
    gateway: Gateway
    runner: RunnerClient
    adapter: AgentAdapter
    ledger: LedgerWriter
    events: list[Event]
    work: Path
    spec: AgentSpec
    passed: list[AgentEvent] = field(default_factory=list)
    _typed: AsyncIterator[AgentEvent] = field(init=False)

    def __post_init__(self) -> None:
        self._typed = self.adapter.events()

    async def next(self, kind: type[E]) -> E:
        """The next typed event of a kind; those before it go to `passed`."""
        async with asyncio.timeout(PATIENCE):
            async for event in self._typed:
                self.passed.append(event)
                if isinstance(event, kind):
                    return event
                if isinstance(event, Yield | Question) and kind is not Exit:
                    raise AssertionError(f"{event} came instead of {kind.__name__}; before it: {self.passed[:-1]}")
        raise AssertionError(f"no {kind.__name__}; the program ended: {self.passed}, {self.of('agent_exit')}")

    async def say(self, text: str) -> Yield:
        """Send a message and wait for the hand-over."""
        await self.adapter.send(text)
        return await self.next(Yield)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Data of the ledger's events of a kind."""
        return [event.data for event in self.events if event.kind == kind]

    @property
    def turns(self) -> list[dict[str, Any]]:
        """What the provider was asked: the generation requests, with `headers` and `body`."""
        return [entry for entry in self._requests if not self.driver.confirms(entry)]

    @property
    def accepted(self) -> int:
        """Turns the gateway counted, but for those that only asked the model whether it is sure."""
        return self.gateway.turns - sum(map(self.driver.confirms, self._requests))

    @property
    def messages(self) -> list[str]:
        """The agent's visible texts in the ledger, as far as the script has it say them."""
        return self.driver.spoken([entry["text"] for entry in self.of("agent_message")])

    @property
    def texts(self) -> list[str]:
        """The same, as the adapter told them."""
        return self.driver.spoken([event.text for event in self.passed if isinstance(event, Text)])

    @property
    def _requests(self) -> list[dict[str, Any]]:
        return [entry for entry in self.provider._record.show_full() if "models" not in entry["path"]]

    def seen(self, number: int = -1) -> str:
        """The messages of a request as the provider saw them, as JSON."""
        body = self.turns[number]["body"]
        return json.dumps(body.get("messages", body.get("input")), ensure_ascii=False)

    def tools(self, number: int = -1) -> list[str]:
        """Names of the tools a request offers."""
        listed = self.turns[number]["body"].get("tools") or []
        return [tool.get("name") or tool.get("function", {}).get("name") or tool.get("type") for tool in listed]

    async def commands(self) -> list[str]:
        """Command lines of what runs below the runner, but for the agent program's own processes."""
        return [line for line in map(command_line, await self.runner.procs()) if not self.driver.owns(line)]

    async def own(self) -> list[ProcInfo]:
        """The agent program's own processes."""
        return [proc for proc in await self.runner.procs() if self.driver.owns(command_line(proc))]

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until a plain or async condition is true. The timeout is a way out, not a claim."""
        async with asyncio.timeout(PATIENCE):
            while True:
                value = condition()
                if asyncio.iscoroutine(value):
                    value = await value
                if value:
                    return
                await asyncio.sleep(0.03)
        raise AssertionError(what)

    async def until_ended(self) -> None:
        """Until nothing of the program's own runs: a signal takes its time."""

        async def ended() -> bool:
            return await self.own() == []

        await self.until(ended, "the program has ended")

    async def until_gone(self, part: str) -> None:
        """Until no command holds `part`."""

        async def gone() -> bool:
            return not any(part in line for line in await self.commands())

        await self.until(gone, f"{part} has ended")


def command_line(proc: ProcInfo) -> str:
    return " ".join(proc.argv)


async def start_bench(
    cleanup: contextlib.AsyncExitStack,
    folder: Path,
    driver: Driver,
    script: dict[str, Any],
    *,
    mode: Mode = "EXEC",
    permissions: str = "Bypass",
    exec_permissions: Any = "allow",
    turn_limit: int = 30,
    setup: OwnSetup | None = None,
    effort: str | None = None,
    uid: int | None = None,
    prepare: Callable[[Path], None] = lambda work: None,
) -> Bench:
    """Everything started, the agent waiting for its first message. `folder` must not be below /tmp (see Codex)."""
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    prepare(work)
    program_dir = driver.program_dir()
    if uid is not None:
        program_dir = reachable(program_dir, folder, uid, with_parent=driver.with_parent)
    provider = Provider(KEY, Script.model_validate({"models": [driver.model], **script}), control=True)
    server = await serve(provider, "127.0.0.1", 0)
    cleanup.push_async_callback(server.cleanup)
    events: list[Event] = []
    ledger = LedgerWriter(folder / "spool", on_event=events.append, secrets=[KEY])
    cleanup.callback(ledger.close)
    upstream = f"http://127.0.0.1:{server.addresses[0][1]}"
    config = GatewayConfig(
        upstream=upstream if driver.api == "anthropic" else f"{upstream}/v1",
        key=KEY,
        model=driver.model,
        dialect=driver.api,
        texts=driver.texts,
        turn_limit=turn_limit,
        allow_loopback=True,
        port=0,
        retry=RetryPolicy(max_attempts=2, first_wait=0.01),
    )
    gateway = Gateway(config, ledger)
    await gateway.start()
    cleanup.push_async_callback(gateway.stop)
    runner = await start_runner(cleanup, home)
    adapter = adapter_class(driver.program)(runner, ledger)
    spec = AgentSpec(
        mode=mode,
        version=driver.version,
        model=driver.model,
        base_url=gateway.base_url,
        token=gateway.token,
        workdir=str(work),
        environ=runner.hello.environ,
        home=str(home),
        permissions=permissions,
        exec_permissions=exec_permissions,
        setup=setup,
        effort=effort,
        program_dir=str(program_dir),
        uid=uid,
        gid=uid,
        state_dir=str(folder / "state"),
        witness=gateway.witness,
    )
    await adapter.start(spec)
    cleanup.push_async_callback(adapter.stop, grace=1.0)
    return Bench(driver, provider, gateway, runner, adapter, ledger, events, work, spec)


def reachable(program_dir: Path, folder: Path, uid: int, *, with_parent: bool) -> Path:
    """The program where another user can start it, and folders of that user's own."""
    for part in (folder, *folder.parents[:1]):
        part.chmod(0o755)
    for own in ("work", "home"):
        os.chown(folder / own, uid, uid)
    shutil.copytree(program_dir.parent if with_parent else program_dir, folder / "program", symlinks=True)
    return folder / "program" / program_dir.name if with_parent else folder / "program"


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
