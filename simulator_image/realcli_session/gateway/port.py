"""What the gateway needs from the session (sink, clock) and what the session can ask of the gateway.

Phases take a `GatewayPort`; `realcli_session.gateway.server.Gateway(config, sink, clock)` is the real one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from realcli.api.trial import Tokens
from realcli.ledger.events import Actor, BlobRef, Data, Event
from realcli_session.gateway.witness import Witness


class EventSink(Protocol):
    """Where events go. `LedgerWriter` is the real one; it redacts secrets and turns long texts into blobs."""

    turn: int
    """Highest accepted request. The gateway, and nobody else, moves it forward, before it emits the request."""

    def emit(self, actor: Actor, data: Data, *, turn: int | None = None) -> Event:
        """Write one event. `turn` overrides the envelope's turn (a repeat of an earlier turn)."""

    def blob(self, data: bytes) -> BlobRef:
        """Store bytes once by digest."""


class Clock(Protocol):
    """Monotonic time, and waiting in it."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


AcceptedHook = Callable[[int], Awaitable[None]]
"""Awaited once per new turn, after the request was handed to the provider connection and while the model thinks. The reply is
held until it returns, at most `GatewayConfig.hold_seconds`; so what the hook sees is what the agent had done before the reply."""


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """Why a request got no answer from the provider."""

    turn: int
    status: int | None
    """Status of the last attempt; None if there was no HTTP answer."""
    attempts: int
    message: str


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """How the provider answered a plain one-token request of the session's own (measuring.md 3.3, outage)."""

    ok: bool
    status: int | None
    model: str | None
    message: str
    final: bool = False
    """Asking again would end the same way, though there was no HTTP answer to go by."""


class GatewayPort(Protocol):
    """The gateway as phases see it."""

    turn_limit_hit: asyncio.Event
    """Set when request n+1 was refused: the outcome is TurnLimit."""
    provider_failed: asyncio.Event
    """Set when the bound of retries was reached, or the provider refuses our key. See `provider_failure`."""
    broken: asyncio.Event
    """Set when the gateway itself failed (the ledger could not be written); it refuses everything then. See `breakage`."""
    breakage: BaseException | None
    model_mismatch: asyncio.Event
    """Set when an answer named a model that is neither the plan's nor accepted; everything is refused then. See `mismatch`."""
    budget_hit: asyncio.Event
    """Set when a request was refused because the trial's budget is spent: the outcome is Budget. An agent that yields on its
    last paid answer is Completed, as with turns."""
    on_request_accepted: AcceptedHook | None
    """The change scan; see `AcceptedHook`. What it raises is recorded as a `SessionError` and does not stop the request."""

    @property
    def base_url(self) -> str:
        """What the agent is given as the API's address: with /v1 for the OpenAI APIs, without for Anthropic's."""

    @property
    def token(self) -> str:
        """What the agent is given as its API key: random, of this attempt only."""

    @property
    def turns(self) -> int:
        """Generation requests accepted (the number of the highest turn)."""

    @property
    def tokens(self) -> Tokens:
        """Sum of the usage of all replies that told theirs (see `usage_unknown`)."""

    @property
    def usage_unknown(self) -> int:
        """Replies to turns whose usage nobody told: cut ones, a stream that was not asked for usage."""

    @property
    def cost_usd(self) -> Decimal | None:
        """What the turns cost by the sweep's prices; None without a price, or when the usage of any turn is unknown."""

    @property
    def throttled(self) -> Decimal | None:
        """Share (0 to 1) of the requests to the provider, retries counted, that were answered 429; None if none was sent."""

    @property
    def mismatch(self) -> str | None:
        """Behind `model_mismatch`, for people: which id was answered, which were accepted."""

    @property
    def refused_by_model(self) -> bool:
        """The last finished reply of the main conversation ended by a safety refusal, and no newer request was accepted."""

    @property
    def cut_by_provider(self) -> str | None:
        """The last reply of the main conversation was cut by the provider after its first byte, and no newer request was
        accepted: what happened, for people."""

    @property
    def witness(self) -> Witness:
        """Whose move it is, by what passed the gateway: bears out what an agent program says of itself."""

    @property
    def open_requests(self) -> int:
        """Requests with the provider, or waiting to be sent to it again."""

    @property
    def refused(self) -> int:
        """Requests that were refused, whatever for."""

    @property
    def provider_failure(self) -> ProviderFailure | None:
        """The first failure behind `provider_failed`."""

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""

    async def stop(self) -> None:
        """Cut what is open, refuse everything, close the port. Idempotent."""

    def refuse_all(self, reason: str) -> None:
        """From now on every request is refused with `reason` (ledger: `refused`); open answers go on."""

    def waiting_seconds(self) -> float:
        """Length of the union of all intervals in which requests waited between two retries and no request was with the provider.

        Counts up to now; monotonic. Working time = elapsed - this - the simulated user's time (measuring.md 3.3).
        """

    async def plain_request(self) -> PlainAnswer:
        """One plain one-token request of the session's own, no retry, not a turn. Answered → the agent's request is the cause."""
