"""The gateway's server: who may ask, what may be asked, who is counted. One request's way through is in `exchange.py`."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

from aiohttp import web

from realcli.api.trial import Tokens
from realcli.ledger.events import SessionError
from realcli_session.gateway import refusal
from realcli_session.gateway.allow import BodyRefused, parse_body
from realcli_session.gateway.body import BodyBudget, BodyTooLarge, claimed_size, read_body
from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.cost import Account
from realcli_session.gateway.dialects import dialect_of
from realcli_session.gateway.dialects.base import Route
from realcli_session.gateway.exchange import Exchange, Ledgered, ModelCheck
from realcli_session.gateway.listening import Door
from realcli_session.gateway.port import AcceptedHook, Clock, EventSink, PlainAnswer, ProviderFailure, SystemClock
from realcli_session.gateway.record import Recorder, clean
from realcli_session.gateway.turns import TurnCounter
from realcli_session.gateway.upstream import Upstream
from realcli_session.gateway.waits import WaitMeter
from realcli_session.gateway.witness import Witness

MAX_HEADER = 8_190  # bytes of one header line
MAX_HEADERS = 64  # programs send two dozen

_QUIET = logging.getLogger(f"{__name__}.http")
_QUIET.setLevel(logging.CRITICAL)  # an agent's malformed requests; it could fill the log with them


class Gateway:
    """One trial's way to its model; implements `GatewayPort`."""

    def __init__(
        self,
        config: GatewayConfig,
        sink: EventSink,
        clock: Clock | None = None,
        room: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`room` is awaited before a body is read: it holds an agent that fills the ledger faster than storage takes it."""
        self._config = config
        self._sink = sink
        self._room = room
        self._clock: Clock = clock or SystemClock()
        self._meter = WaitMeter(self._clock)
        self._dialect = dialect_of(config.dialect)
        self._turns = TurnCounter(config.turn_limit)
        self._recorder = Recorder(sink, self._dialect, config.markers, texts=config.texts == "reply")
        self._upstream = Upstream(config, self._dialect, self._clock, self._meter)
        self._account = Account(config.prices, config.budget_usd)
        self._bodies = BodyBudget(config.body_memory)
        self._refused = 0
        self._refuse: str | None = None
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._door = Door()
        self._port = config.port
        self._hooks: set[asyncio.Task[None]] = set()
        self._shared = Ledgered(
            config,
            self._dialect,
            self._upstream,
            self._recorder,
            self._turns,
            self._clock,
            self._account,
            ModelCheck(config.resolved_model, config.accepted_ids),
        )
        self.on_request_accepted: AcceptedHook | None = None
        self.turn_limit_hit = asyncio.Event()
        self.budget_hit = asyncio.Event()
        self.model_mismatch = self._shared.models.found
        self.provider_failed = self._shared.provider_failed
        self.broken = asyncio.Event()
        self.breakage: BaseException | None = None

    @property
    def base_url(self) -> str:
        """Address for the agent, as its dialect has it."""
        return self._dialect.base_url(f"http://{self._config.host}:{self._port}")

    @property
    def token(self) -> str:
        """The agent's API key."""
        return self._config.token

    @property
    def turns(self) -> int:
        """Generation requests accepted."""
        return self._turns.used

    @property
    def tokens(self) -> Tokens:
        """Sum of the usage of replies that told theirs."""
        return self._account.tokens

    @property
    def usage_unknown(self) -> int:
        """Replies that did not."""
        return self._account.unknown

    @property
    def cost_usd(self) -> Decimal | None:
        """Cost of all turns."""
        return self._account.cost

    @property
    def throttled(self) -> Decimal | None:
        """Share of the requests to the provider that were answered 429."""
        return self._upstream.throttled

    @property
    def mismatch(self) -> str | None:
        """The first answer of another model."""
        return self._shared.models.mismatch

    @property
    def refused_by_model(self) -> bool:
        """The last main answer was a refusal."""
        return self._shared.refused_by_model

    @property
    def cut_by_provider(self) -> str | None:
        """The last main answer was cut by the provider."""
        return self._shared.cut_by_provider

    @property
    def witness(self) -> Witness:
        """See GatewayPort."""
        return self._shared.witness

    @property
    def open_requests(self) -> int:
        """Requests under way to the provider."""
        return self._meter.open

    @property
    def refused(self) -> int:
        """Requests refused."""
        return self._refused

    @property
    def provider_failure(self) -> ProviderFailure | None:
        """The first failure of the provider."""
        return self._shared.provider_failure

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        await self._upstream.start()
        app = web.Application(client_max_size=self._config.max_body)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app,
            handler_cancellation=True,  # an agent that hangs up ends its request with the provider
            auto_decompress=False,  # a few compressed bytes must not become many
            access_log=None,
            logger=_QUIET,
            keepalive_timeout=3600.0,
            shutdown_timeout=0.1,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
            max_headers=MAX_HEADERS,
        )
        await self._runner.setup()
        if self._runner.server is None:
            raise RuntimeError("the runner was set up and has no server")
        self._listener = await self._door.listen(self._runner.server, self._config.host, self._config.port)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Cut what is open, refuse everything, close the port."""
        self.refuse_all("stopped")
        self._shared.stopping = True
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        hooks = list(self._hooks)
        for hook in hooks:
            hook.cancel()
        await asyncio.gather(*hooks, return_exceptions=True)
        await self._upstream.close()

    def refuse_all(self, reason: str) -> None:
        """Refuse every request from now on; the first reason stands."""
        self._refuse = self._refuse or reason

    def waiting_seconds(self) -> float:
        """Time that does not count as working time."""
        return self._meter.total()

    async def plain_request(self) -> PlainAnswer:
        """One plain request of the session's own; not a turn."""
        return await self._upstream.plain()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            with self._door.answering(request):
                return await self._admit(request)
        except (asyncio.CancelledError, ConnectionError):
            raise  # the agent hung up
        except Exception as error:
            # Nothing may reach the model unrecorded, and the phases must know.
            self.refuse_all("session_error")
            self.breakage = self.breakage or error
            self.broken.set()
            return refusal.refused(self._dialect, "the session failed", status=500)

    async def _admit(self, request: web.Request) -> web.StreamResponse:
        where = self._dialect.route(request.method, request.path, request.query_string)
        if where == "root":
            return web.Response()
        if where is None:
            return self._no(request, f"path: {request.method} {request.path[:256]}")
        if not self._knows(request):
            return self._no(request, "token", status=401)
        if where == "models":
            return refusal.models(self._dialect, self._config.model)
        if (reason := self._refusing()) is not None:
            return self._no(request, reason)
        if request.headers.get("content-encoding", "identity") != "identity":
            return self._no(request, "feature: content-encoding")
        try:
            size = claimed_size(request, self._config.max_body)
        except BodyTooLarge:
            return self._no(request, "size", status=413)
        async with self._bodies.hold(size):
            if self._room is not None:
                await self._room()
            return await self._read(request, where)

    async def _read(self, request: web.Request, where: Route) -> web.StreamResponse:
        try:
            raw = await read_body(request, self._config.max_body)
        except BodyTooLarge:
            return self._no(request, "size", status=413)
        except TimeoutError:
            return self._no(request, "slow", status=408)
        try:
            body = parse_body(raw)
        except BodyRefused as error:
            return self._no(request, str(error), raw)
        reason = self._dialect.refused(body, network=self._config.network) or self._refusing()
        if reason is not None:
            return self._no(request, reason, raw, body)
        exchange = Exchange(self._shared, request, raw, body)
        if where == "generate":
            if self._account.spent:
                self.budget_hit.set()
                self._no(request, "budget", raw, body)
                return refusal.budget_spent(self._dialect)
            if not exchange.accept():
                self.turn_limit_hit.set()
                self._no(request, "turn_limit", raw, body)
                return refusal.limit_reached(self._dialect)
        del body
        exchange.record()
        if where != "generate":  # no turn, so an agent can send any number: their waits must not stop its clock
            return await exchange.run(self._start_hook)
        with self._meter.request():
            return await exchange.run(self._start_hook)

    def _refusing(self) -> str | None:
        return "model_mismatch" if self.mismatch is not None else self._refuse

    def _start_hook(self, turn: int) -> asyncio.Task[None]:
        task = asyncio.create_task(self._run_hook(turn))
        self._hooks.add(task)
        task.add_done_callback(self._hooks.discard)
        return task

    async def _run_hook(self, turn: int) -> None:
        if self.on_request_accepted is None:
            return
        try:
            await self.on_request_accepted(turn)
        except Exception as error:
            self._sink.emit("session", SessionError(where="on_request_accepted", message=f"{type(error).__name__}: {error}"))

    def _knows(self, request: web.Request) -> bool:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = request.headers.get("x-api-key") or bearer
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._config.token.encode())

    def _no(
        self,
        request: web.Request,
        reason: str,
        raw: bytes = b"",
        body: dict[str, Any] | None = None,
        *,
        status: int = 400,
    ) -> web.Response:
        self._refused += 1
        reason = clean(reason)  # it may quote the agent
        self._recorder.refused(self._recorder.next_id(), request.path, raw, (body or {}).get("model"), reason)
        return refusal.refused(self._dialect, reason, status=status)
