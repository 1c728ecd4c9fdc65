"""Settings of one gateway, and the rule for endpoints a key may be sent to."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal
from urllib.parse import urlsplit

from realcli.api.models import Api, Prices

GATEWAY_HOST = "127.0.0.1"
GATEWAY_PORT = 8317
MAX_BODY = 32 << 20  # bytes; the provider's own limit
MAX_REPLY = 128 << 20  # bytes of one answer; what is longer is cut: no model says so much
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class EndpointRefused(ValueError):
    """A key may not be sent to this URL; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retries before the first byte: 408, 429, 5xx, 529, connection errors.

    Waits are `first_wait` doubled each time up to `longest_wait`, or what Retry-After says; the sum of waits of one request is at
    most `total_wait`. The bound is reached when either number is.
    """

    max_attempts: int = 14
    first_wait: float = 1.0
    longest_wait: float = 120.0
    total_wait: float = 900.0


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """One trial's gateway: one agent, one wire API, one model.

    `upstream` is the endpoint as the sweep names it: without /v1 for the Anthropic API, with it for the OpenAI ones.
    """

    upstream: str
    key: str = field(repr=False)
    model: str
    turn_limit: int
    dialect: Api = "anthropic"
    texts: Literal["reply", "adapter"] = "reply"
    """Who records texts and tool calls: the gateway, from replies, or an adapter whose loop is our own (Terminus-2)."""
    resolved_model: str | None = None
    """Id that answered the plan's test request. None: unknown, ids are recorded and not checked."""
    accepted_ids: Sequence[str] = ()
    prices: Prices | None = None
    budget_usd: Decimal | None = None  # limits.trialBudget
    network: bool = False  # the task allows network: the provider's own tools are let through; no task can say so yet
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    insecure_http: bool = False  # `insecureHttp: InCluster`
    cluster_domain: str = "cluster.local"
    allow_loopback: bool = False  # tests only: in a pod the agent could listen there
    markers: Mapping[str, Sequence[str]] = field(default_factory=dict)  # Oracle.markers
    retry: RetryPolicy = RetryPolicy()
    host: str = GATEWAY_HOST
    port: int = GATEWAY_PORT  # 0: any free port
    max_body: int = MAX_BODY
    max_reply: int = MAX_REPLY  # half of it for one that is not streamed and so held
    body_memory: int = 2 * MAX_BODY  # request bodies held at once; more wait
    hold_seconds: float = 1.0  # a reply waits at most this long for the change scan
    connect_seconds: float = 30.0
    silence_seconds: float = 600.0  # no byte from the provider: it stalls

    def __post_init__(self) -> None:
        check_endpoint(
            self.upstream,
            insecure_http=self.insecure_http,
            cluster_domain=self.cluster_domain,
            allow_loopback=self.allow_loopback,
        )
        if not self.key.isascii() or any(c.isspace() for c in self.key) or not self.key:
            raise ValueError("the provider key is empty or holds characters that no HTTP header may hold; check the Secret")
        if self.budget_usd is not None and self.prices is None:
            raise ValueError("a budget without prices cannot be counted; give models[].prices")


def check_endpoint(url: str, *, insecure_http: bool, cluster_domain: str = "cluster.local", allow_loopback: bool = False) -> None:
    """Raise EndpointRefused unless a key may be sent to `url`: https, or http to a Service of this cluster if that is allowed.

    A Service is `<service>`, `<service>.<namespace>.svc` or that with the cluster's domain; an address is not, whoever owns it.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or not host:
        raise EndpointRefused(f"endpoint {url!r} is not an http(s) URL with a host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise EndpointRefused(f"endpoint of host {host} holds credentials, a query or a fragment; give the base URL alone")
    if parts.scheme == "https":
        return
    if allow_loopback and _is_loopback(host):
        return
    if not insecure_http:
        raise EndpointRefused(
            f"{url} is http:// and would show the key to the network; use https, or for a Service insecureHttp: InCluster"
        )
    if not _is_service(host, cluster_domain):
        raise EndpointRefused(
            f"{url} is http:// and {host} is not a Service of this cluster; "
            f"expected <service>, <service>.<namespace>.svc or <service>.<namespace>.svc.{cluster_domain}"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_service(host: str, cluster_domain: str) -> bool:
    labels = host.removesuffix("." + cluster_domain.lower()).split(".")
    if not all(_NAME.fullmatch(label) for label in labels) or host == "localhost":
        return False
    if labels[0][0].isdigit():
        return False  # a Service's name begins with a letter; "0x7f000001" and "2130706433" are addresses
    return host == labels[0] or (len(labels) == 3 and labels[2] == "svc")
