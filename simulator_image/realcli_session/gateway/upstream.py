"""The connection to the provider: one request with bounded retries before the first byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.port import Clock, PlainAnswer
from realcli_session.gateway.retry import RETRYABLE, next_wait, retry_after
from realcli_session.gateway.waits import WaitMeter

MAX_JSON = 64 << 20  # bytes of a reply that is not streamed
MAX_ERROR = 1 << 20
_FORWARDED = ("accept", "content-type", "user-agent", "x-app")
_FORWARDED_PREFIXES = ("anthropic-", "x-stainless-")
BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
"""How a connection to the provider fails, at any moment."""


@dataclass
class Effort:
    """What it took so far."""

    attempts: int = 0
    waited: float = 0.0


@dataclass(frozen=True)
class Streaming:
    """A streamed 200 whose first bytes are here."""

    response: aiohttp.ClientResponse
    first: bytes


@dataclass(frozen=True)
class Whole:
    """A complete answer, of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    exhausted: bool = False  # the bound of retries was reached with this one


@dataclass(frozen=True)
class NoAnswer:
    """The bound of retries was reached without an HTTP answer."""

    message: str


Answer = Streaming | Whole | NoAnswer


class Upstream:
    """The only holder of the real key."""

    def __init__(self, config: GatewayConfig, clock: Clock, meter: WaitMeter) -> None:
        self._config = config
        self._clock = clock
        self._meter = meter
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Make the client. No proxy of the environment, no redirects, no cookies: nothing may lead the key elsewhere."""
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._config.connect_seconds, sock_read=self._config.silence_seconds
        )
        self._session = aiohttp.ClientSession(
            timeout=timeout,
            trust_env=False,
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def ask(
        self, path: str, query: str, headers: Mapping[str, str], body: bytes, *, stream: bool, effort: Effort
    ) -> Answer:
        """Send until there is an answer or the bound is reached; `effort` is kept up to date meanwhile."""
        url = f"{self._config.upstream.rstrip('/')}{path}" + (f"?{query}" if query else "")
        while True:
            effort.attempts += 1
            answer = await self._once(url, headers, body, stream=stream)
            if isinstance(answer, Streaming) or (isinstance(answer, Whole) and answer.status not in RETRYABLE):
                return answer
            asked = retry_after(answer.headers) if isinstance(answer, Whole) else None
            wait = next_wait(self._config.retry, effort.attempts, effort.waited, asked)
            if wait is None:
                return (
                    answer if isinstance(answer, NoAnswer) else Whole(answer.status, answer.headers, answer.body, exhausted=True)
                )
            effort.waited += wait
            with self._meter.waiting():
                await self._clock.sleep(wait)

    async def plain(self) -> PlainAnswer:
        """One plain one-token request of our own."""
        body = {"model": self._config.model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        url = f"{self._config.upstream.rstrip('/')}/v1/messages"
        answer = await self._once(url, headers, json.dumps(body).encode(), stream=False)
        if not isinstance(answer, Whole):
            return PlainAnswer(False, None, None, answer.message if isinstance(answer, NoAnswer) else "streamed unasked")
        if answer.status != 200:
            return PlainAnswer(False, answer.status, None, answer.body.decode("utf-8", "replace")[:2000])
        model = _json_object(answer.body).get("model")
        return PlainAnswer(True, 200, model if isinstance(model, str) else None, "")

    def redact(self, body: bytes) -> bytes:
        """An error of the provider's may quote our key; the agent must not read it."""
        return body.replace(self._config.key.encode(), b"[redacted]")

    async def _once(self, url: str, headers: Mapping[str, str], body: bytes, *, stream: bool) -> Answer:
        if self._session is None:
            raise RuntimeError("the gateway was not started")
        sent = {name: value for name, value in headers.items() if _forwarded(name)}
        sent |= {"x-api-key": self._config.key, "accept-encoding": "identity"}
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._session.post(url, data=body, headers=sent, allow_redirects=False)
            if stream and response.status == 200 and response.content_type != "application/json":
                first = await response.content.readany()
                if not first:
                    return self._drop(response, NoAnswer("the provider ended its stream before the first byte"))
                if first.lstrip().startswith(b"event: error"):
                    return self._drop(response, NoAnswer(f"the provider's stream began with {self._shown(first)}"))
                return Streaming(response, first)
            limit = MAX_JSON if response.status == 200 else MAX_ERROR
            data = await _read(response, limit)
            if data is None:
                return self._drop(
                    response, NoAnswer(f"the provider's answer (status {response.status}) is longer than {limit} bytes")
                )
            response.release()
            return Whole(response.status, response.headers, data if response.status == 200 else self.redact(data))
        except BROKEN as error:
            message = f"{type(error).__name__}: {error}".replace(self._config.key, "[redacted]")
            return self._drop(response, NoAnswer(message)) if response is not None else NoAnswer(message)
        except BaseException:
            if response is not None:
                response.close()
            raise

    def _shown(self, data: bytes) -> str:
        return self.redact(data).decode("utf-8", "replace")[:500]

    @staticmethod
    def _drop(response: aiohttp.ClientResponse, answer: NoAnswer) -> NoAnswer:
        response.close()
        return answer


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            return None
        parts.append(chunk)
    return b"".join(parts)


def _forwarded(name: str) -> bool:
    lower = name.lower()
    return lower in _FORWARDED or lower.startswith(_FORWARDED_PREFIXES)


def _json_object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
