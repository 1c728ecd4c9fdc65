"""What the two OpenAI wires share: the body of an error."""

from __future__ import annotations

from realcli_provider.dialects.port import Body

_KINDS = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", None),
    429: ("requests", "rate_limit_exceeded"),
}


def error(status: int, message: str, request_id: str) -> Body:
    """The body of every answer that is an error. The request id is a header only."""
    kind, code = _KINDS.get(status, ("server_error", "server_error"))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
