"""Faults as they happen on the wire, and how often each has happened."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterable

from aiohttp import web

from realcli_provider.conversation import Request
from realcli_provider.script import Fault, Script

GARBAGE = b"\x00\xff\xfe<html>502 Bad Gateway\x00{]}"
LOOK = 0.1  # seconds between two looks whether the client is still there


class Gone(Exception):
    """The connection is broken or the client has left; there is nobody to answer."""


class Due:
    """Which faults a request meets. The one thing this process remembers, because `times` and `nth` count."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._seen: Counter[str] = Counter()
        self._generations = 0

    def of(self, request: Request, own: Fault | None, rule: str) -> Fault | None:
        """The fault of the answer itself, else the first of the script's that holds."""
        self._generations += 1
        if own is not None and self._still(own, request, rule):
            return own
        for number, trouble in enumerate(self._script.faults):
            meant = trouble.when.holds(request) and trouble.nth in (None, self._generations)
            if meant and self._still(trouble.fault, request, f"faults.{number}"):
                return trouble.fault
        return None

    def _still(self, fault: Fault, request: Request, name: str) -> bool:
        """`times` counts the moments of a conversation, not the bytes of a request: agents change headers when they try again."""
        if fault.times is None:
            return True
        talk = request.conversation
        moment = json.dumps([name, talk.opening, [[reply.said, reply.result] for reply in talk.replies]])
        key = hashlib.sha256(moment.encode()).hexdigest()
        self._seen[key] += 1
        return self._seen[key] <= fault.times


def break_off(request: web.Request) -> Gone:
    """Break the connection without a goodbye."""
    if request.transport is not None:
        request.transport.abort()
    return Gone()


async def stall(request: web.Request, seconds: float | None) -> None:
    """Send nothing for so long, or until the client leaves."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while end is None or loop.time() < end:
        if request.transport is None or request.transport.is_closing():
            raise Gone
        await asyncio.sleep(LOOK if end is None else min(LOOK, max(end - loop.time(), 0)))


async def before(request: web.Request, fault: Fault) -> None:
    """What happens before the first byte."""
    if fault.delay:
        await stall(request, fault.delay)
    if fault.reset == "before":
        raise break_off(request)
    if fault.stall == "before":
        await stall(request, fault.stall_seconds)


async def stream(request: web.Request, response: web.StreamResponse, events: Iterable[bytes], fault: Fault, error: bytes) -> None:
    """Send a prepared stream as the fault wants it. `error` is how the wire says that the provider is overloaded."""
    parts = list(events)
    middle = len(parts) // 2
    last = middle if fault.cut is True else int(fault.cut)
    for number, part in enumerate(parts):
        if number == 0 and (fault.reset == "first-byte" or fault.stall == "first-byte"):
            await response.write(part[:1])
            await _first_byte(request, fault)
            part = part[1:]
        if number == middle and fault.stall == "middle":
            await stall(request, fault.stall_seconds)
        if fault.cut is not False and number == last:
            await _cut(request, response, fault, error)
            return
        if fault.slow and number:
            await stall(request, fault.slow)
        await response.write(part)
    await response.write_eof()


async def _first_byte(request: web.Request, fault: Fault) -> None:
    if fault.reset == "first-byte":
        await asyncio.sleep(LOOK)  # an abort would take the byte back that is still in the buffers
        raise break_off(request)
    await stall(request, fault.stall_seconds)


async def _cut(request: web.Request, response: web.StreamResponse, fault: Fault, error: bytes) -> None:
    if fault.error_event:
        await response.write(error)
    if fault.error_event or fault.end:
        await response.write_eof()
        return
    await asyncio.sleep(0)
    raise break_off(request)
