"""What a wire API is to the gateway: its paths, what it may ask for, what it shows the model, how its answers are read.

A dialect is stateless; a `ReplyReader` is made per answer. Bodies given to these functions went through `allow.parse_body`, all
but `refused` only see bodies that `refused` let pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import JsonValue

from realcli.api.models import Api
from realcli.api.trial import Tokens
from realcli_session.gateway.sse import SseEvent

Route = Literal["generate", "count", "models", "root"]
"""generate: takes a turn. count: forwarded, no turn. models, root: answered by the gateway itself."""


@dataclass(frozen=True, slots=True)
class Said:
    """A finished text of a reply that a user could see; never reasoning or its summary."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A finished tool call of a reply. `input` is a text where the model wrote no JSON."""

    call_id: str
    name: str
    input: JsonValue


Part = Said | Called


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a tool call as a request shows it to the model."""

    call_id: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a request that are stored by digest."""

    system: Sequence[Any]
    tools: Any | None
    messages: Sequence[Any]


class ReplyReader(Protocol):
    """One answer, put together while its bytes pass by.

    `complete`: the provider said that it ends here (or gave the whole JSON). `error`: it broke off with an error of its own.
    `refusal`: the model or the provider's filter declined, as the stop reason (or the error's code) says.
    """

    id: str | None
    model: str | None
    stop_reason: str | None
    complete: bool
    error: str | None
    usage: dict[str, JsonValue]

    @property
    def refusal(self) -> bool:
        """See above."""

    def feed(self, event: SseEvent) -> list[Part]:
        """Take one event; returns the parts it finishes. An unreadable one is skipped."""

    def end(self) -> list[Part]:
        """The stream ended without a fault of the connection; may make the answer complete."""

    def whole(self, message: Mapping[str, Any]) -> list[Part]:
        """Take an answer that was not streamed. It is complete if it has the dialect's shape."""

    def tokens(self) -> Tokens | None:
        """Usage in the project's terms; None if the provider gave no final or no readable one."""

    def message(self) -> dict[str, Any]:
        """What was received as one object; unfinished parts marked `unfinished`."""


class Dialect(Protocol):
    """One wire API."""

    name: Api

    def base_url(self, origin: str) -> str:
        """What an agent is given as the API's address on a gateway at `origin`."""

    def route(self, method: str, path: str, query: str) -> Route | None:
        """The allowed route of a request line; None for every other."""

    def upstream_url(self, upstream: str, path: str, query: str) -> str:
        """Where an allowed request goes at an endpoint with base URL `upstream`."""

    def credentials(self, key: str) -> dict[str, str]:
        """The header that carries the key."""

    def forwarded(self, header: str) -> bool:
        """Whether a header of the agent goes to the provider (lower case)."""

    def passed_back(self, header: str) -> bool:
        """Whether a header of the provider goes to the agent (lower case)."""

    def refused(self, body: Mapping[str, Any], *, network: bool = False) -> str | None:
        """The first feature that is not on the list, e.g. `feature: tools[2].type web_search`; None if there is none.

        `network`: the task allows network, so the provider's own tools and URL sources are let through.
        """

    def turn_key(self, body: Mapping[str, Any]) -> str:
        """What makes two bodies the same turn: a digest over what the model would read."""

    def shown(self, body: Mapping[str, Any]) -> Shown:
        """System, tools and messages."""

    def outputs(self, body: Mapping[str, Any]) -> Iterator[Output]:
        """Every tool result of the request, earlier ones too."""

    def texts(self, body: Mapping[str, Any]) -> Iterator[str]:
        """Texts on the user's side of the request, tool results left out."""

    def visible(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Whether the user would see the text of the answer: the main conversation, no title, compaction or sub-agent."""

    def reader(self) -> ReplyReader:
        """For one answer."""

    def begins_with_error(self, first: bytes) -> bool:
        """Whether a stream's first bytes are an error and nothing else, so that it can still be asked again."""

    def refusal_error(self, status: int, message: Mapping[str, Any]) -> bool:
        """Whether an error answer says that a safety filter declined the request."""

    def plain(self, model: str) -> Sequence[dict[str, Any]]:
        """Bodies of a plain short request, not streamed; the next one is for providers that refuse the one before with 400."""

    @property
    def plain_path(self) -> str:
        """Where it goes."""

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """An error in the dialect's own JSON."""

    def models(self, model: str) -> dict[str, Any]:
        """The answer to GET models: this one and no other."""
