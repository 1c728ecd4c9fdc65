"""Answers the gateway gives itself. The shapes are those after which agent programs stop at once (proven with real ones)."""

from __future__ import annotations

import json

from aiohttp import web

from realcli.api.base import canonical_json

NO_RETRY = {"x-should-retry": "false"}
LIMIT_BODY = b'{"type":"error","error":{"type":"invalid_request_error","code":"call_limit","message":"call limit reached"}}'


def limit_reached() -> web.Response:
    """The refusal of request n+1."""
    return web.Response(status=400, body=LIMIT_BODY, content_type="application/json", headers=NO_RETRY)


def refused(reason: str, *, status: int = 400, kind: str = "invalid_request_error") -> web.Response:
    """Any other refusal; the agent reads the reason."""
    body = {"type": "error", "error": {"type": kind, "message": f"refused by the benchmark's gateway: {reason}"}}
    return web.Response(status=status, body=canonical_json(body), content_type="application/json", headers=NO_RETRY)


def unreachable() -> web.Response:
    """The provider gave no HTTP answer within the bound of retries."""
    return refused("the model provider does not answer", status=502, kind="api_error")


def models(model: str) -> web.Response:
    """GET /v1/models: the pinned model and no other."""
    entry = {"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"}
    body = {"data": [entry], "has_more": False, "first_id": model, "last_id": model}
    return web.Response(body=json.dumps(body).encode(), content_type="application/json")
