"""Typed errors of the Kubernetes API, so that callers decide by class and never by number."""

from __future__ import annotations

from typing import Final


class KubeError(Exception):
    """A request that the API server (or the way to it) did not fulfil.

    ``status`` is the HTTP status, 0 when there was no answer; ``message`` the server's own words.
    """

    def __init__(self, message: str, *, status: int = 0, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.status} {self.reason}: {self.message}"


class TransientError(KubeError):
    """Worth trying again later, nothing about the request itself is wrong."""


class TooManyRequests(TransientError):
    """429: throttled, or the storage behind a kind is still (re)initializing."""


class ServerError(TransientError):
    """5xx, or no answer at all (connection refused, reset, timed out)."""


class Conflict(KubeError):
    """409 Conflict: the object (its uid or resourceVersion) is not the one that was meant."""


class Stale(TransientError):
    """The object has changed since it was read: look again, then decide."""


class AlreadyExists(KubeError):
    """409 AlreadyExists: an object of that name is there; read it back and compare uid and spec."""


class NotFound(KubeError):
    """404: no such object."""


class Gone(KubeError):
    """410: the resourceVersion or continue token is too old; list again."""


class PermanentError(KubeError):
    """The same request will be refused again; the message is for a person."""


class Invalid(PermanentError):
    """400, 413 or 422: the object is malformed or breaks the schema."""


class Forbidden(PermanentError):
    """401 or 403: no permission, quota used up, or refused by admission."""


_BY_STATUS: Final[dict[int, type[KubeError]]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: PermanentError,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooManyRequests,
}


def error_for(status: int, reason: str, message: str, retry_after: float | None = None) -> KubeError:
    """The typed error of an HTTP status and the ``reason`` of the server's Status object."""
    cls: type[KubeError]
    if status == 409:
        cls = AlreadyExists if reason == "AlreadyExists" else Conflict
    elif reason in {"Expired", "Gone"}:
        cls = Gone
    elif status >= 500:
        cls = ServerError
    else:
        cls = _BY_STATUS.get(status, PermanentError)
    return cls(message, status=status, reason=reason, retry_after=retry_after)
