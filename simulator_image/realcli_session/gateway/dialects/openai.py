"""What the two OpenAI dialects share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from realcli.api.trial import Tokens
from realcli_session.gateway.dialects.json_parts import count_of, mapping_of, part_of

MODEL_PATH = re.compile(r"/v1/models(/[A-Za-z0-9._:/@-]{1,256})?")
_FORWARDED = frozenset(
    {"accept", "content-type", "user-agent", "originator", "session-id", "thread-id", "session_id", "x-client-request-id"}
)
_PASSED_BACK = frozenset(
    {"content-type", "x-request-id", "retry-after", "x-should-retry", "openai-processing-ms", "openai-version"}
)
_KINDS = {401: "authentication_error", 408: "timeout_error", 413: "request_too_large"}
FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "invalid_prompt", "cyber_policy_violation"})
"""Codes of errors by which a safety filter declines a request."""


def upstream_url(upstream: str, path: str, query: str) -> str:
    """The endpoint ends with /v1 (or what its provider has instead), which the agent's path holds too."""
    return upstream.rstrip("/") + path.removeprefix("/v1") + (f"?{query}" if query else "")


def forwarded(header: str) -> bool:
    """What tells the program and keeps its cache together; no account, no beta."""
    return header in _FORWARDED or header.startswith("x-stainless-")


def passed_back(header: str) -> bool:
    """What a program reads; not whose account it is."""
    return header in _PASSED_BACK


def error(status: int, message: str, code: str | None) -> dict[str, Any]:
    """An error as both APIs give it."""
    kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def models(model: str) -> dict[str, Any]:
    """A list of one."""
    return {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "provider"}]}


def declined(message: Mapping[str, Any]) -> bool:
    """An error answer names a filter."""
    found = mapping_of(message.get("error"))
    return names_filter(found) or mapping_of(found.get("innererror")).get("code") == "ResponsibleAIPolicyViolation"


def names_filter(found: object) -> bool:
    """The code of an error object is a filter's."""
    code = mapping_of(found).get("code")
    return isinstance(code, str) and code in FILTER_CODES


def tokens_of(usage: Mapping[str, Any], prompt: str, completion: str) -> Tokens | None:
    """Usage of one answer: `prompt` counts all input, cached too. Translators of other APIs add what they wrote to a cache."""
    details = mapping_of(usage.get(f"{prompt}_details"))
    total, output = count_of(usage, prompt), count_of(usage, completion)
    read = part_of(details, "cached_tokens")
    write = part_of(details, "cache_creation_tokens", "cache_write_tokens")
    if write == 0:
        write = part_of(usage, "cache_creation_input_tokens")
    if total is None or output is None or read is None or write is None or read + write > total:
        return None
    return Tokens(input=total - read - write, cache_read=read, cache_write=write, output=output)


def image_refused(url: object, network: bool) -> str | None:
    """An image has to be in the request itself."""
    if isinstance(url, str) and (url.startswith("data:") or network):
        return None
    return "source url" if isinstance(url, str) else "source that is no text"
