"""A small client of the API server for the benchmark's own programs: requests with patience, a watch that never misses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

MERGE = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
"""Nobody here reads the answer to a write."""
LIMIT = 64
"""Connections at once."""
TRIES = 20


class Answer(Exception):
    """An answer that is no success and not worth another try."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:300]}")
        self.status = status


class Http:
    """One session; use as `async with Http(kubeconfig) as http`."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        self.url = document["clusters"][0]["cluster"]["server"]
        self._headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}"}

    async def __aenter__(self) -> Http:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connector = aiohttp.TCPConnector(limit=LIMIT, ssl=context)
        timeout = aiohttp.ClientTimeout(total=None, sock_read=300)
        self._session = aiohttp.ClientSession(self.url, connector=connector, headers=self._headers, timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """JSON of the answer; `Answer` for what is refused. Overload and broken connections are tried again."""
        data = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": content_type} | ({} if method == "GET" else {"Accept": METADATA})
        for number in range(TRIES):
            try:
                async with self._session.request(method, path, data=data, headers=headers) as response:
                    raw = await response.read()
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(min(2.0, 0.1 * 2**number))
                continue
            if response.status < 400:
                return orjson.loads(raw)
            if response.status != 429 and response.status < 500:
                raise Answer(response.status, raw.decode(errors="replace"))
            await asyncio.sleep(min(2.0, 0.1 * 2**number))
        raise Answer(0, f"no answer to {method} {path} in {TRIES} tries")

    async def events(self, path: str, query: str = "") -> AsyncIterator[tuple[str, Any]]:
        """(type, object) of everything that is there (ADDED) and everything that happens, for ever. After a lost watch what is
        there is told again."""
        while True:
            version, token = "", ""
            while True:
                page = await self.send("GET", f"{path}?limit=500&{query}" + (f"&continue={token}" if token else ""))
                version, token = page["metadata"]["resourceVersion"], page["metadata"].get("continue", "")
                for item in page.get("items") or ():
                    yield "ADDED", item
                if not token:
                    break
            try:
                async for type_, item in self._watch(f"{path}?{query}&watch=1&allowWatchBookmarks=true", version):
                    yield type_, item
            except (aiohttp.ClientError, TimeoutError, OSError, Answer):
                await asyncio.sleep(0.2)

    async def _watch(self, path: str, version: str) -> AsyncIterator[tuple[str, Any]]:
        while True:
            rest = b""
            async with self._session.get(f"{path}&resourceVersion={version}&timeoutSeconds=270") as response:
                if response.status >= 400:
                    raise Answer(response.status, await response.text())
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = orjson.loads(line)
                        if event["type"] == "ERROR":
                            raise Answer(event["object"].get("code", 0), event["object"].get("message", ""))
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            yield event["type"], event["object"]
