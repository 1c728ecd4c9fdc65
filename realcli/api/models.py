"""Models and their endpoints, as a person names them in a sweep."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from realcli.api.base import DnsLabel, Frozen

Api = Literal["anthropic", "responses", "chat"]
"""A wire API: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions."""
APIS: tuple[Api, ...] = ("anthropic", "chat", "responses")

SecretName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", min_length=1, max_length=253)]
ModelId = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Usd = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$", max_length=20)]
"""An amount in US dollars, a decimal."""


class InsecureHttp(StrEnum):
    """Whether a plain http:// endpoint may be used with a key."""

    NEVER = "Never"
    IN_CLUSTER = "InCluster"


class SecretKeyRef(Frozen):
    """One key of a Secret in the sweep's namespace."""

    name: SecretName = Field(description="Name of the Secret.")
    key: Annotated[str, StringConstraints(min_length=1, max_length=253)] = Field(description="Key inside the Secret.")


class SecretNameRef(Frozen):
    """A Secret in the sweep's namespace."""

    name: SecretName = Field(description="Name of the Secret.")


class ApiKey(Frozen):
    """Where a provider's key comes from."""

    secret_ref: SecretKeyRef = Field(description="Key of a Secret in the sweep's namespace.")


class Endpoint(Frozen):
    """One wire API of a model."""

    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=512)] = Field(
        description="Base URL: without /v1 for the Anthropic API, with it for the OpenAI APIs."
    )
    api_key: ApiKey = Field(description="Key the gateway sends; the agent never holds it.")
    insecure_http: InsecureHttp = Field(
        default=InsecureHttp.NEVER,
        description="InCluster allows http:// to a Service of this cluster; Never refuses http://.",
    )


class Endpoints(Frozen):
    """The wire APIs a model is served on: claude-code needs anthropic, codex responses, terminus-2 chat."""

    anthropic: Endpoint | None = Field(default=None, description="Anthropic Messages API.")
    responses: Endpoint | None = Field(default=None, description="OpenAI Responses API.")
    chat: Endpoint | None = Field(default=None, description="OpenAI Chat Completions API.")

    def of(self, api: Api) -> Endpoint | None:
        """The endpoint of a wire API."""
        found: Endpoint | None = getattr(self, api)
        return found

    @property
    def given(self) -> list[tuple[Api, Endpoint]]:
        """Those that are there, by name."""
        return [(api, endpoint) for api in APIS if (endpoint := self.of(api)) is not None]


class Prices(Frozen):
    """US dollars per million tokens. A kind of token without a price makes the cost of a reply that uses it unknown."""

    input_per_million: Usd = Field(description="Uncached input tokens.")
    cache_read_per_million: Usd | None = Field(default=None, description="Input tokens read from the cache.")
    cache_write_per_million: Usd | None = Field(default=None, description="Input tokens written to the cache.")
    output_per_million: Usd = Field(description="Output tokens, reasoning included.")


class Model(Frozen):
    """A model under test."""

    name: DnsLabel = Field(description="Short name; part of the configuration's name.")
    model: ModelId = Field(description="Model id sent to the provider; any other id the agent asks for is mapped to it.")
    accepted_ids: Annotated[list[ModelId], Field(max_length=20)] = Field(
        default=[], description="Further ids the provider may answer with; the one of the plan's test request always counts."
    )
    endpoints: Endpoints = Field(description="One endpoint per wire API.")
    context_tokens: Annotated[int, Field(ge=16_000, le=100_000_000)] | None = Field(
        default=None,
        description=(
            "Most tokens a request may have. Terminus-2 sums up when 8000 are left; without it 1000000 are taken, and it sums up "
            "after a refused request, which is a turn. claude-code and codex know their models."
        ),
    )
    prices: Prices | None = Field(default=None, description="Without prices the cost is unknown.")
    max_concurrent_trials: Annotated[int, Field(ge=1, le=5000)] | None = Field(
        default=None, description="Most trials with a pod at the same time that use this model; default: parallelism. Mutable."
    )


class InstrumentModel(Frozen):
    """A model the instrument itself uses, never tested. One endpoint: anthropic or chat."""

    model: ModelId = Field(description="Model id sent to the provider.")
    endpoints: Endpoints = Field(description="anthropic or chat; where both are given, chat is used.")
    temperature: Annotated[str, StringConstraints(pattern=r"^[0-2](\.[0-9]{1,3})?$", max_length=5)] = Field(
        default="0", description="Sampling temperature, a decimal."
    )
