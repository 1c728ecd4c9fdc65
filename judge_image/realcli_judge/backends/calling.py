"""One call of a provider: bounded retries, its errors in our words, no key in any of them."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import JsonValue

from realcli.api.trial import Tokens
from realcli.judging.model import JsonObject, JudgeReply
from realcli.judging.port import BackendRefused, BackendUnavailable, RequestTooLarge

R = TypeVar("R")
A = TypeVar("A")
ATTEMPTS = 6
FIRST_WAIT, MAX_WAIT = 1.0, 60.0  # seconds; doubled from one to the other
MAX_RETRY_AFTER = 300.0  # seconds a provider may ask for; longer is as good as away
TIMEOUT = 900.0  # seconds of one request
PASSING = frozenset((408, 409, 425, 429))  # and every 5xx
MAX_TOLD = 400  # characters of a provider's own message
MAX_DEPTH = 64  # of lists and objects in each other; readers of JSON end somewhere above 100
_TOO_LARGE = re.compile(
    r"(?i)too long|too large|maximum context|context (length|window)|max(imum)? (input )?tokens|exceeds? .{0,40}(token|context)"
)
_OUTPUT = re.compile(r"(?i)max_(completion_|output_)?tokens|(output|completion) tokens")
_INPUT = re.compile(r"(?i)context|prompt|input|messages")
"""An answer's limit that the model does not have is a fault of the sweep's spec, not of a run that is too long."""


@dataclass(frozen=True)
class Trouble:
    """What an SDK raised: `status` None where no answer came."""

    status: int | None
    message: str
    retry_after: str | None = None


Reader = Callable[[Exception], Trouble | None]
"""What an SDK's exception says; None: it is none of the SDK's."""


def call(
    do: Callable[[], R],
    read: Reader,
    where: str,
    secret: str,
    sleep: Callable[[float], None] = time.sleep,
    attempts: int = ATTEMPTS,
) -> R:
    """`do()`, again where that may help. `BackendUnavailable`, `BackendRefused`, `RequestTooLarge` name `where` and why."""
    wait = FIRST_WAIT
    for attempt in range(1, attempts + 1):
        try:
            return do()
        except Exception as error:
            trouble = read(error)
            if trouble is None:
                raise
            told = f"{where}: {shown(trouble, secret)}"
            if not passes(trouble):
                if too_large(trouble):
                    raise RequestTooLarge(told) from None
                raise BackendRefused(f"{told}; {_advice(trouble.status)}") from None
            asked = _seconds(trouble.retry_after)
            if attempt == attempts or (asked is not None and asked > MAX_RETRY_AFTER):
                raise BackendUnavailable(f"{told}, after {attempt} attempts") from None
            sleep(wait if asked is None else max(asked, 0.0))
            wait = min(wait * 2, MAX_WAIT)
    raise AssertionError("the last attempt returns or raises")


def passes(trouble: Trouble) -> bool:
    """Asking again may help."""
    return trouble.status is None or trouble.status in PASSING or trouble.status >= 500


def too_large(trouble: Trouble) -> bool:
    """The request is longer than the model reads."""
    if trouble.status == 413:
        return True
    text = trouble.message
    only_output = _OUTPUT.search(text) is not None and _INPUT.search(text) is None
    return trouble.status in (400, 422) and _TOO_LARGE.search(text) is not None and not only_output


def shown(trouble: Trouble, secret: str) -> str:
    """For people, without the key."""
    text = " ".join(re.sub(r"^Error code: \d+ - ", "", redacted(trouble.message, secret)).split())[:MAX_TOLD]
    return f"HTTP {trouble.status}: {text}" if trouble.status is not None else text


def redacted(text: str, secret: str) -> str:
    """The text with the key taken out, whole or as providers repeat it (its ends)."""
    if not secret:
        return text
    text = text.replace(secret, "[key]")
    return re.sub(rf"{re.escape(secret[:4])}\*+\S*", "[key]", text) if len(secret) >= 8 else text


def reply_from(make: Callable[[A], JudgeReply], answer: A) -> JudgeReply:
    """`make(answer)`. SDKs do not hold what a server sends against its types: ValueError for what cannot be read, so that it is a
    broken answer and not the end of the Job."""
    try:
        return make(answer)
    except (TypeError, AttributeError, LookupError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def usage_of(read: object, output: object, cached: object = None, written: object = None) -> Tokens | None:
    """What an answer took, None where the server does not say it in numbers: then it is unknown, and never 0.

    `read`: input tokens that were not cached; absent `cached` and `written` are 0.
    """
    known = [0 if absent is None else absent for absent in (cached, written)]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in (read, output, *known)):
        return None
    return Tokens.model_validate({"input": read, "output": output, "cache_read": known[0], "cache_write": known[1]})


def arguments(text: object) -> JsonObject:
    """A call's arguments; what is no JSON object comes back as one that no schema takes, so that the judge is told."""
    if not isinstance(text, str):
        return as_object(text)
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return {"unparsable": plain(text)}
    return as_object(value)


def as_object(value: Any) -> JsonObject:
    """An object with texts and numbers that can be written; anything else in one that no schema takes."""
    cleaned = _clean(value, MAX_DEPTH)
    return cleaned if isinstance(cleaned, dict) else {"unparsable": cleaned}


def plain(text: str | None) -> str:
    """Text that can be written as UTF-8: lone surrogates become question marks."""
    return (text or "").encode("utf-8", "replace").decode("utf-8")


def _clean(value: Any, depth: int) -> JsonValue:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict | list) and not depth:
        return "nested too deeply"
    if isinstance(value, dict):
        return {plain(str(key)): _clean(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # 1e400 is JSON, and no number that could be written again
    if isinstance(value, bool | int | float) or value is None:
        return value
    return plain(str(value))


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _advice(status: int | None) -> str:
    match status:
        case 401 | 403:
            return "check the Secret of spec.judge.model.endpoints and the key's rights"
        case 404:
            return "check spec.judge.model: the model id and the endpoint's url"
        case _:
            return "the endpoint does not take what is asked; check spec.judge.model"


def _seconds(header: str | None) -> float | None:
    try:
        found = float(header) if header is not None else None
    except ValueError:
        return None  # a date: the usual wait
    return None if found is not None and math.isnan(found) else found
