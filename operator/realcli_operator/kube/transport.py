"""HTTP to the API server on the session and credentials of `kubernetes.aio`: retries, write rate limit, typed errors."""

from __future__ import annotations

import os
import random
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import orjson
import structlog
from kubernetes.aio import client as kube_client
from kubernetes.aio import config as kube_config
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME

from realcli_operator.kube.clock import Clock, SystemClock
from realcli_operator.kube.errors import KubeError, ServerError, TransientError, error_for
from realcli_operator.kube.metrics import Metrics
from realcli_operator.kube.rate import RateLimit

log = structlog.get_logger(__name__)

JSON_PATCH: Final = "application/json-patch+json"
JSON: Final = "application/json"
METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
"""An answer without spec and status."""
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Limits of the client; seconds and requests per second."""

    request_timeout: float = 30.0
    connect_timeout: float = 10.0
    writes_per_second: float = 50.0
    write_burst: int = 50
    max_connections: int = 64
    tries: int = 5
    retry_base: float = 0.5
    retry_cap: float = 10.0
    chunk_bytes: int = 2**16


async def load_configuration(kubeconfig: Path | None = None, context: str | None = None) -> kube_client.Configuration:
    """Credentials: the given kubeconfig, else the pod's service account, else ``KUBECONFIG`` or ``~/.kube/config``."""
    configuration = kube_client.Configuration()
    if kubeconfig is None and os.environ.get(SERVICE_HOST_ENV_NAME):
        kube_config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
    else:
        await kube_config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig) if kubeconfig else None, context=context, client_configuration=configuration
        )
    return configuration


class Transport:
    """One session to one API server. `request` retries, `stream` does not (its caller resumes)."""

    def __init__(
        self,
        configuration: kube_client.Configuration,
        settings: ClientSettings | None = None,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
        wrote: Callable[[], None] | None = None,
    ) -> None:
        """``wrote`` is called after each write that the API server has answered with success; dry runs are none."""
        self.settings = settings or ClientSettings()
        self._wrote = wrote
        self._metrics = metrics or Metrics()
        self._clock: Clock = clock or SystemClock()
        configuration.connection_pool_maxsize = self.settings.max_connections
        if not _behind_a_proxy():
            # Else aiohttp looks for a password in ~/.netrc before every request, in a thread: a sixth of the operator's CPU.
            configuration.client_session_kwargs = {"trust_env": False}
        configuration.retries = None  # our own retries know Retry-After and count each try
        self._client = kube_client.ApiClient(configuration)
        given = {
            "server_hostname": configuration.tls_server_name,
            "proxy": configuration.proxy,
            "proxy_headers": configuration.proxy_headers,
        }
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value}
        self._limit = RateLimit(self.settings.writes_per_second, self.settings.write_burst, self._clock)

    async def close(self) -> None:
        """Close the session."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def request(
        self,
        method: str,
        path: str,
        *,
        resource: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """One request with retries on 429, 5xx and broken connections. A POST that is retried after a broken
        connection may meet its own first try as `AlreadyExists`."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._once(method, path, resource, query, body, content_type, accept)
            except TransientError as error:
                if tries >= self.settings.tries:
                    raise
                backoff = min(self.settings.retry_cap, self.settings.retry_base * 2 ** (tries - 1))
                delay = max(error.retry_after or 0.0, backoff * random.uniform(0.8, 1.2))
                log.warning("api request failed, trying again", verb=method, path=path, error=str(error), delay=delay)
                await self._clock.sleep(delay)

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET whose body is read in chunks as they come, without a limit on its length or duration."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.settings.connect_timeout)
        response = await self._send("GET", path, query, None, JSON, timeout)
        try:
            if response.status >= 400:
                raise _error(response.status, response.headers.get("Retry-After"), await response.read())
            yield _chunks(response)
        finally:
            response.close()  # not released: the rest of an endless body is never read

    async def _once(
        self, method: str, path: str, resource: str, query: Mapping[str, str] | None, body: Any, content_type: str, accept: str
    ) -> bytes:
        if method in _WRITES:
            await self._limit.acquire()
        timeout = aiohttp.ClientTimeout(total=self.settings.request_timeout, sock_connect=self.settings.connect_timeout)
        code = "none"
        try:
            response = await self._send(method, path, query, body, content_type, timeout, accept)
            async with response:
                code = str(response.status)
                data = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(error) from error
        finally:
            if method in _WRITES:
                self._metrics.writes.labels(method, resource, code).inc()
            else:
                self._metrics.reads.labels(resource, code).inc()
        if response.status >= 400:
            raise _error(response.status, response.headers.get("Retry-After"), data)
        if self._wrote is not None and method in _WRITES and "dryRun" not in (query or {}):
            self._wrote()
        return data

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
        accept: str = JSON,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": "realcli-operator"}
        try:
            await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            url = self._client.configuration.host + path + (f"?{urlencode(query)}" if query else "")
            data = None if body is None else orjson.dumps(body)
            return await self._pool().request(method, url, headers=headers, data=data, timeout=timeout, **self._options)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _no_answer(error) from error

    def _pool(self) -> aiohttp.ClientSession:
        """The client's session (its certificates, its limit of connections), made when an event loop runs. The client's own way
        to it writes JSON at a third of the speed."""
        rest = self._client.rest_client
        if rest.pool_manager is None:
            rest.pool_manager = rest._create_pool_manager()
        session: aiohttp.ClientSession = rest.pool_manager
        return session


def _behind_a_proxy() -> bool:
    """Whether the environment names a proxy, by any of the names aiohttp knows."""
    return bool(urllib.request.getproxies_environment())


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise _no_answer(error) from error


def _no_answer(error: BaseException) -> ServerError:
    return ServerError(f"{type(error).__name__}: {error}", reason="NoAnswer")


def _error(status: int, retry_after: str | None, body: bytes) -> KubeError:
    """The typed error of an answer; its body is a Status object unless something in between answered."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    if not isinstance(document, dict):
        return error_for(status, "", body[:500].decode(errors="replace"), seconds)
    return status_error(document, status, seconds)


def status_error(document: Mapping[str, Any], status: int = 0, retry_after: float | None = None) -> KubeError:
    """The typed error of a ``Status`` object, from an answer or from an ERROR event of a watch."""
    details = document.get("details") or {}
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = float(details["retryAfterSeconds"])
    return error_for(document.get("code") or status, document.get("reason") or "", document.get("message") or "", retry_after)
