"""The gateway under test between a real client and a real provider; its parts are in rig.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli_session.gateway.config import GatewayConfig, RetryPolicy
from realcli_session.gateway.server import Gateway
from tests.unit.gateway.rig import KEY, MODEL, Answer, MakeRig, NoWait, Provider, Rig, message, streams
from tests.unit.gateway.wires import WIRES


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[MakeRig]:
    """rig(*script, **config) -> Rig"""
    rigs: list[tuple[Rig, web.AppRunner]] = []

    async def make(*script: Answer, room: Callable[[], Awaitable[None]] | None = None, **config: Any) -> Rig:
        provider = Provider(list(script) or [streams(message())])
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", provider.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        events: list[Event] = []
        news = asyncio.Event()
        ledger = LedgerWriter(tmp_path / f"spool{len(rigs)}", on_event=lambda event: (events.append(event), news.set()))
        clock = NoWait()
        wire = WIRES[config.get("dialect", "anthropic")]
        upstream = provider.url + ("" if wire.api == "anthropic" else "/v1")
        settings: dict[str, Any] = {"turn_limit": 100, "retry": RetryPolicy(max_attempts=3), "upstream": upstream} | config
        gateway = Gateway(GatewayConfig(key=KEY, model=MODEL, allow_loopback=True, port=0, **settings), ledger, clock, room)
        await gateway.start()
        made = Rig(gateway, provider, ledger, events, aiohttp.ClientSession(), clock, news, wire.path)
        rigs.append((made, runner))
        return made

    yield make
    for made, runner in rigs:
        await made.http.close()
        await made.gateway.stop()
        await runner.cleanup()
        made.ledger.close()
