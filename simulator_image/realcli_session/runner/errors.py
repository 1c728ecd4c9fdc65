"""What can go wrong between the session and its runner, as types the phases can decide on.

`RunnerLost` means that there is no runner any more: the work is over (architecture.md 7). Every other error is an answer
of a living runner to one request and leaves the connection as it was.
"""

from __future__ import annotations

from realcli.wire.protocol import ErrorCode


class RunnerLost(Exception):
    """The runner is gone: end of stream, a broken frame, or silence beyond the limit. Nothing more can be asked.

    `reason` is one line for the ledger, e.g. ``end of stream`` or ``no answer to ping within 120 s``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"runner lost: {reason}")
        self.reason = reason


class RunnerError(Exception):
    """The runner refused or failed one request. `code` is from the closed set, `detail` holds machine-readable facts."""

    def __init__(self, code: ErrorCode, message: str, detail: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail or {}


class SpawnFailed(RunnerError):
    """The program could not be started; `errno` is the kernel's answer (`ENOENT`, `EACCES`, `EAGAIN`, …)."""

    @property
    def errno(self) -> int | None:
        """Kernel error number, or None if the runner did not get as far as the kernel."""
        value = self.detail.get("errno")
        return value if isinstance(value, int) else None


class StateTooLarge(RunnerError):
    """A snapshot or archive is over one of its limits; `limit` names it (``bytes``, ``entries``, ``depth``)."""

    @property
    def limit(self) -> str:
        """Which limit was hit."""
        return str(self.detail.get("limit", "bytes"))

    @property
    def path(self) -> str:
        """The entry at which it was hit, printable."""
        return str(self.detail.get("path", ""))


class PathRefused(RunnerError):
    """A path leads through a symbolic link, a `..`, a non-directory, or out of the destination."""


class FileMissing(RunnerError):
    """There is no such file."""


class NotRegular(RunnerError):
    """The path names something else than a regular file."""


class FileTooLarge(RunnerError):
    """The file is longer than the caller's limit."""


class ArchiveInvalid(RunnerError):
    """The archive cannot be read: damaged, cut short, or holding entries that are not allowed."""


_BY_CODE: dict[ErrorCode, type[RunnerError]] = {
    ErrorCode.SPAWN_FAILED: SpawnFailed,
    ErrorCode.STATE_TOO_LARGE: StateTooLarge,
    ErrorCode.PATH_REFUSED: PathRefused,
    ErrorCode.NOT_FOUND: FileMissing,
    ErrorCode.NOT_REGULAR: NotRegular,
    ErrorCode.FILE_TOO_LARGE: FileTooLarge,
    ErrorCode.BAD_ARCHIVE: ArchiveInvalid,
}


def error_for(code: ErrorCode, message: str, detail: dict[str, object] | None = None) -> RunnerError:
    """The typed error of a code."""
    return _BY_CODE.get(code, RunnerError)(code, message, detail)
