"""The connection to the provider: one request with bounded retries before the first byte."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus

import aiohttp

from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.dialects.base import Dialect
from realcli_session.gateway.dialects.json_parts import object_of
from realcli_session.gateway.keys import KeyFilter
from realcli_session.gateway.port import Clock, PlainAnswer
from realcli_session.gateway.retry import RETRYABLE, next_wait, retry_after
from realcli_session.gateway.waits import WaitMeter

MAX_ERROR = 1 << 20
TOO_MANY = HTTPStatus.TOO_MANY_REQUESTS
PLAIN_HEADERS = {"anthropic-version": "2023-06-01"}  # the OpenAI APIs do not mind
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
    """The provider gave no HTTP answer that can be passed on, and the bound of retries was reached."""

    message: str
    final: bool = False  # asking again would end the same way


Answer = Streaming | Whole | NoAnswer


class Upstream:
    """The only holder of the real key."""

    def __init__(self, config: GatewayConfig, dialect: Dialect, clock: Clock, meter: WaitMeter) -> None:
        self._config = config
        self._dialect = dialect
        self._keys = KeyFilter(config.key)
        self._clock = clock
        self._meter = meter
        self._session: aiohttp.ClientSession | None = None
        self._sent = 0
        self._throttled = 0

    @property
    def throttled(self) -> Decimal | None:
        """Share of the requests of `ask`, each try counted, that were answered 429; None before the first."""
        return Decimal(self._throttled) / self._sent if self._sent else None

    async def start(self) -> None:
        """Make the client. No proxy of the environment, no redirects, no cookies: nothing may lead the key elsewhere."""
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._config.connect_seconds, sock_read=self._config.silence_seconds
        )
        self._session = aiohttp.ClientSession(
            timeout=timeout,
            trust_env=False,
            auto_decompress=False,  # a few bytes must not become many; we ask for none
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def ask(
        self, path: str, query: str, headers: Mapping[str, str], body: bytes, *, stream: bool, effort: Effort, pauses: bool
    ) -> Answer:
        """Send until there is an answer or the bound is reached; `effort` is kept up to date meanwhile.

        `pauses`: its waits are no working time.
        """
        url = self._dialect.upstream_url(self._config.upstream, path, query)
        while True:
            effort.attempts += 1
            self._sent += 1
            answer = _json_or_none(await self._once(url, headers, body, stream=stream))
            self._throttled += isinstance(answer, Whole) and answer.status == TOO_MANY
            if isinstance(answer, Streaming) or (isinstance(answer, Whole) and answer.status not in RETRYABLE):
                return answer
            if isinstance(answer, NoAnswer) and answer.final:
                return answer
            asked = retry_after(answer.headers) if isinstance(answer, Whole) else None
            wait = next_wait(self._config.retry, effort.attempts, effort.waited, asked)
            if wait is None:
                return (
                    answer if isinstance(answer, NoAnswer) else Whole(answer.status, answer.headers, answer.body, exhausted=True)
                )
            effort.waited += wait
            with self._meter.waiting() if pauses else contextlib.nullcontext():
                await self._clock.sleep(wait)

    async def plain(self) -> PlainAnswer:
        """One plain short request of our own."""
        answer: Answer = NoAnswer("nothing was asked")
        url = self._dialect.upstream_url(self._config.upstream, self._dialect.plain_path, "")
        for body in self._dialect.plain(self._config.model):
            headers = {"content-type": "application/json", **PLAIN_HEADERS}
            answer = await self._once(url, headers, json.dumps(body).encode(), stream=False)
            if not (isinstance(answer, Whole) and answer.status == 400):
                break
        if not isinstance(answer, Whole):
            message, final = (answer.message, answer.final) if isinstance(answer, NoAnswer) else ("streamed unasked", True)
            return PlainAnswer(False, None, None, message, final)
        text = answer.body.decode("utf-8", "replace")
        if answer.status != 200:
            return PlainAnswer(False, answer.status, None, text[:2000])
        reader = self._dialect.reader()
        reader.whole(object_of(text) or {})
        if not reader.complete:
            return PlainAnswer(False, 200, None, f"the answer is none of the {self._dialect.name} API: {text[:200]}")
        return PlainAnswer(True, 200, reader.model, "")

    async def _once(self, url: str, headers: Mapping[str, str], body: bytes, *, stream: bool) -> Answer:
        if self._session is None:
            raise RuntimeError("the gateway was not started")
        sent = {name: value for name, value in headers.items() if self._dialect.forwarded(name.lower())}
        sent |= {"accept-encoding": "identity", **self._dialect.credentials(self._config.key)}
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._session.post(url, data=body, headers=sent, allow_redirects=False)
            coding = response.headers.get("content-encoding", "identity").lower()
            if coding != "identity":
                return self._drop(
                    response, NoAnswer(f"the answer is compressed ({coding[:32]}), though none was asked for", final=True)
                )
            if stream and response.status == 200 and response.content_type != "application/json":
                first = await response.content.readany()
                if not first:
                    return self._drop(response, NoAnswer("the provider ended its stream before the first byte"))
                if self._dialect.begins_with_error(first):
                    return self._drop(response, NoAnswer(f"the provider's stream began with {self._shown(first)}"))
                return Streaming(response, first)
            limit = self._config.max_reply // 2 if response.status == 200 else MAX_ERROR
            data = await _read(response, limit)
            if data is None:
                return self._drop(
                    response, NoAnswer(f"the provider's answer (status {response.status}) is longer than {limit} bytes")
                )
            response.release()
            return Whole(response.status, response.headers, self._keys.whole(data))
        except BROKEN as error:
            message = self._keys.text(f"{type(error).__name__}: {error}")
            return self._drop(response, NoAnswer(message)) if response is not None else NoAnswer(message)
        except BaseException:
            if response is not None:
                response.close()
            raise

    def _shown(self, data: bytes) -> str:
        return self._keys.whole(data).decode("utf-8", "replace")[:500]

    @staticmethod
    def _drop(response: aiohttp.ClientResponse, answer: NoAnswer) -> NoAnswer:
        response.close()
        return answer


def _json_or_none(answer: Answer) -> Answer:
    """A 200 that is no JSON object counts as an answer that broke off.

    It is half of one whose connection was closed in order, or a page of something in between. A stream that nobody asked for
    stays what it is.
    """
    if not isinstance(answer, Whole) or answer.status != 200:
        return answer
    text = answer.body.decode("utf-8", "replace")
    if answer.headers.get("content-type", "").startswith("text/event-stream") or object_of(text) is not None:
        return answer
    return NoAnswer(f"the provider's answer (status 200) is no JSON object: {text[:200]}")


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            return None
        parts.append(chunk)
    return b"".join(parts)
