"""When and how long to wait before a request is sent to the provider again."""

from __future__ import annotations

import email.utils
import math
from collections.abc import Mapping
from datetime import UTC, datetime

from realcli_session.gateway.config import RetryPolicy

RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
OUR_FAULT = frozenset({401, 402, 403, 404})
"""The provider refuses our key or our model: nothing the agent sends can cause or mend it."""


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds the provider asks us to wait (`retry-after-ms`, or Retry-After as seconds or date), if it says so."""
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    text = headers.get("retry-after")
    if text is None:
        return None
    plain = _number(text)
    if plain is not None:
        return plain
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def next_wait(policy: RetryPolicy, attempts: int, waited: float, asked: float | None) -> float | None:
    """Seconds to wait after `attempts` requests and `waited` seconds in all; None: the bound is reached."""
    if attempts >= policy.max_attempts:
        return None
    wait = asked if asked is not None else min(policy.longest_wait, policy.first_wait * 2 ** (attempts - 1))
    return wait if waited + wait <= policy.total_wait else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
