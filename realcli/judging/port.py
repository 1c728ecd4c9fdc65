"""Who answers a judge's requests: a provider, recordings, or an emulated judge."""

from __future__ import annotations

from typing import Protocol

from realcli.judging.model import JudgeReply, JudgeRequest


class BackendUnavailable(Exception):
    """The endpoint did not answer after its retries; the Job may be run again."""


class BackendRefused(Exception):
    """It never will as asked: key, model id, request. The message names what, without any key."""


class RequestTooLarge(BackendRefused):
    """The endpoint says that the request is longer than its model reads: that session ends, the Job goes on."""


class Backend(Protocol):
    """One judge. Blocking; may be called from several threads."""

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """The reply. `BackendUnavailable`, `BackendRefused`."""
