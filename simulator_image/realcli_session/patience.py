"""Storage that is away for a while is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from realcli.storage.port import StorageUnavailable

T = TypeVar("T")
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0


async def patiently(call: Callable[[], T], patience: float) -> T:
    """`call()` in a worker thread, again after StorageUnavailable until `patience` seconds are over. It has to be repeatable."""
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    wait = FIRST_WAIT
    while True:
        try:
            return await asyncio.to_thread(call)
        except StorageUnavailable:
            if loop.time() + wait > end:
                raise
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)
