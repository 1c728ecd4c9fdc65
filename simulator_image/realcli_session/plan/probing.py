"""One test request per model and wire API a configuration uses: does it answer, and as which model?

The id of the answer is what the gateway expects for the rest of the sweep. Every refusal names field, cause and remedy, and holds
no key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from realcli.api.models import Api, Endpoint, InsecureHttp
from realcli.api.sweep import SweepSpec, UserMode
from realcli_session.gateway.config import GatewayConfig
from realcli_session.gateway.dialects import dialect_of
from realcli_session.gateway.port import Clock, PlainAnswer, SystemClock
from realcli_session.gateway.retry import RETRYABLE
from realcli_session.gateway.upstream import Upstream
from realcli_session.gateway.waits import WaitMeter
from realcli_session.plan.lock import API_OF

JUDGE = "spec.judge.model"
ATTEMPTS = 4
FIRST_WAIT = 2.0  # seconds, tripled each time
ANSWER_SECONDS = 120.0  # a reasoning model may think about "Hi"
AT_ONCE = 8
USER_KEY = "REALCLI_KEY_USER"
JUDGE_KEY = "REALCLI_KEY_JUDGE"


@dataclass(frozen=True, slots=True)
class Target:
    """One endpoint to ask. `where` is how the sweep names it."""

    where: str
    api: Api
    model: str
    endpoint: Endpoint
    key: str = field(repr=False)
    name: str | None = None
    """Of a model under test; None for the instrument's own (simulated user, judge)."""

    @property
    def secret(self) -> str:
        """Where its key comes from, for people."""
        ref = self.endpoint.api_key.secret_ref
        return f"key {ref.key} of Secret {ref.name}"


class Finding(NamedTuple):
    """What a target answered. `problem` None: it did."""

    model: str | None
    problem: str | None
    passing: bool  # the problem may go away by itself


def targets_of(spec: SweepSpec, environ: Mapping[str, str]) -> Iterator[Target]:
    """(model, API) of every configuration, once, and the models of simulated user and judge. The keys were checked before."""
    used = apis_used(spec)
    for index, model in enumerate(spec.models):
        for api, endpoint in model.endpoints.given:
            if api in used:
                yield Target(f"spec.models[{model.name}]", api, model.model, endpoint, environ[key_name(index, api)], model.name)
    user = user_endpoint(spec)
    if user is not None and spec.simulated_user.model is not None:
        api, endpoint = user
        yield Target("spec.simulatedUser.model", api, spec.simulated_user.model.model, endpoint, environ[USER_KEY])
    judge = judge_endpoint(spec)
    if judge is not None and spec.judge.model is not None:
        api, endpoint = judge
        yield Target(JUDGE, api, spec.judge.model.model, endpoint, environ[JUDGE_KEY])


def apis_used(spec: SweepSpec) -> set[Api]:
    """The wire APIs of the sweep's agents."""
    return {api for agent in spec.agents if (api := API_OF.get(agent.resolved_program)) is not None}


def user_endpoint(spec: SweepSpec) -> tuple[Api, Endpoint] | None:
    """The endpoint of the simulated user's model, chat before anthropic; None without such a model."""
    model = spec.simulated_user.model
    if spec.simulated_user.mode is not UserMode.MODEL or model is None or "COLLAB" not in spec.modes:
        return None
    apis: tuple[Api, ...] = ("chat", "anthropic")
    return next(((api, endpoint) for api in apis if (endpoint := model.endpoints.of(api)) is not None), None)


def judge_endpoint(spec: SweepSpec) -> tuple[Api, Endpoint] | None:
    """The endpoint of the model that judges; None without one. Sweeps of EXEC alone ask it too: why runs failed."""
    return None if spec.judge.model is None else spec.judge.model.endpoint


def key_name(index: int, api: Api) -> str:
    """The variable that holds a model's key."""
    return f"REALCLI_KEY_{index}_{api.upper()}"


async def probe_all(
    targets: Sequence[Target], *, cluster_domain: str, allow_loopback: bool = False, clock: Clock | None = None
) -> list[Finding]:
    """Ask all of them, a few at a time. `targets` have passed check_endpoint."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(target: Target) -> Finding:
        async with slots:
            return await _probe(target, cluster_domain, allow_loopback, clock or SystemClock())

    return list(await asyncio.gather(*(one(target) for target in targets)))


async def _probe(target: Target, cluster_domain: str, allow_loopback: bool, clock: Clock) -> Finding:
    config = GatewayConfig(
        upstream=target.endpoint.url,
        key=target.key,
        model=target.model,
        turn_limit=1,
        dialect=target.api,
        insecure_http=target.endpoint.insecure_http is InsecureHttp.IN_CLUSTER,
        cluster_domain=cluster_domain,
        allow_loopback=allow_loopback,
        silence_seconds=ANSWER_SECONDS,
    )
    upstream = Upstream(config, dialect_of(target.api), clock, WaitMeter(clock))
    await upstream.start()
    try:
        answer = await upstream.plain()
        for attempt in range(ATTEMPTS - 1):
            if answer.ok or not _passing(answer):
                break
            await clock.sleep(FIRST_WAIT * 3**attempt)
            answer = await upstream.plain()
    finally:
        await upstream.close()
    return finding_of(target, answer)


def _passing(answer: PlainAnswer) -> bool:
    return (answer.status is None and not answer.final) or answer.status in RETRYABLE


def finding_of(target: Target, answer: PlainAnswer) -> Finding:
    """The answer in words for people."""
    if answer.ok:
        return Finding(answer.model, None, passing=False)
    url = f"{target.where}.endpoints.{target.api}.url: {target.endpoint.url}"
    said = f" It said: {' '.join(answer.message.split())[:300]}" if answer.message else ""
    slash = "without /v1" if target.api == "anthropic" else "with /v1"
    match answer.status:
        case None:
            text = f"{url} does not answer: {answer.message[:300]}; correct the address, or wait until it is back"
        case 200:
            text = f"{url} does not speak the {target.api} API; give the base URL of that API ({slash}).{said}"
        case 401 | 403:
            text = (
                f"{target.where}.endpoints.{target.api}.apiKey: {target.endpoint.url} refuses {target.secret} "
                f"({answer.status}); put a key into the Secret that may use {target.model}.{said}"
            )
        case 404 | 405:
            text = (
                f"{target.where}.model: {target.endpoint.url} knows no model {target.model!r}, or the URL is not the base URL of "
                f"the {target.api} API ({slash}) ({answer.status}); correct one of them.{said}"
            )
        case status if status in RETRYABLE:
            text = f"{url} answers {status} again and again: overloaded, down or out of quota; wait, or raise the quota.{said}"
        case status:
            text = f"{url} refuses a plain request to {target.model} ({status}); a trial would end the same way.{said}"
    return Finding(None, text, _passing(answer))
