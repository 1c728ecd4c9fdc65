"""Answers the gateway gives itself, in the dialect's JSON. After 400 with `x-should-retry: false` an agent stops at once."""

from __future__ import annotations

from aiohttp import web

from realcli.api.base import canonical_json
from realcli_session.gateway.dialects.base import Dialect

NO_RETRY = {"x-should-retry": "false"}


def limit_reached(dialect: Dialect) -> web.Response:
    """The refusal of request n+1."""
    return _answer(dialect, 400, "call limit reached", "call_limit")


def budget_spent(dialect: Dialect) -> web.Response:
    """The refusal of a request after the trial's budget is spent."""
    return _answer(dialect, 400, "budget of this session is spent", "budget_spent")


def refused(dialect: Dialect, reason: str, *, status: int = 400) -> web.Response:
    """Any other refusal; the agent reads the reason."""
    return _answer(dialect, status, f"refused by the benchmark's gateway: {reason}", "refused" if status < 500 else None)


def unreachable(dialect: Dialect) -> web.Response:
    """The provider gave no HTTP answer within the bound of retries."""
    return _answer(dialect, 502, "refused by the benchmark's gateway: the model provider does not answer", None)


def models(dialect: Dialect, model: str) -> web.Response:
    """GET models: the pinned model and no other."""
    return web.Response(body=canonical_json(dialect.models(model)), content_type="application/json")


def _answer(dialect: Dialect, status: int, message: str, code: str | None) -> web.Response:
    body = canonical_json(dialect.error(status, message, code))
    return web.Response(status=status, body=body, content_type="application/json", headers=NO_RETRY)
