"""The termination message: how a session, plan, judge or report container tells its result to the operator.

At most 1 KiB for trials (4 KiB for the report Job). The kubelet divides 12 KiB over all containers and cuts mid-JSON, so a
message that does not parse or whose checksum is wrong is *no message*: the next step reads the seal in storage.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from realcli.api.base import Digest, Frozen, canonical_json, sha256_digest
from realcli.api.sweepstatus import ScoreRow
from realcli.api.trial import Checks, Tokens

MAX_TRIAL_BYTES = 1024
MAX_REPORT_BYTES = 4096


class Result(StrEnum):
    """What the container achieved."""

    WORK_SEALED = "WorkSealed"  # the work seal is written; `reason` is how work ended (valid); verify next
    WORK_INVALID = "WorkInvalid"  # the attempt is invalid for `reason`
    VERDICT = "Verdict"  # the verify seal is written; `reward` holds
    NO_VERDICT = "NoVerdict"  # verify ended without a verdict; `reason` says why; may be retried
    CONTROL_PASSED = "ControlPassed"  # the control's seal is written: the reference solution earns reward 1
    CONTROL_FAILED = "ControlFailed"  # it does not: `reason` says how, `reward` holds where the tests left one
    NO_WORK_SEAL = "NoWorkSeal"  # verify found no (intact) work seal: the attempt is lost
    PLANNED = "Planned"
    JUDGED = "Judged"
    REPORTED = "Reported"
    REFUSED = "Refused"  # plan, judge or report could not do it: `reason`, `message`


class Termination(Frozen):
    """The message. `checksum` covers every other field."""

    v: Literal[1] = 1
    phase: Literal["Plan", "Work", "Verify", "Control", "Judge", "Report"]
    result: Result
    reason: str | None = None
    message: Annotated[str, StringConstraints(max_length=400)] | None = None
    work_end: str | None = None  # verify repeats what the work seal says, for an operator that missed the work message
    seal: Digest | None = None  # digest of the seal, plan, group file or summary written
    work_seal: Digest | None = None  # verify: the work seal it restored from
    reward: str | None = None  # decimal
    checks: Checks | None = None
    turns: int | None = None
    tokens: Tokens | None = None
    cost_usd: str | None = None  # decimal; None: unknown
    working_seconds: str | None = None
    throttled: str | None = None  # work: share of the requests to the provider that were answered 429, a decimal
    limit: str | None = None
    node: str | None = None
    scores: list[ScoreRow] = []
    uri: str | None = None
    checksum: str | None = Field(default=None, description="sha256:… of the canonical JSON without this field.")

    def encode(self, limit: int = MAX_TRIAL_BYTES) -> bytes:
        """Canonical JSON with its checksum, at most `limit` bytes (the message text is shortened, then scores dropped)."""
        message = self
        while True:
            body = message.model_copy(update={"checksum": None}).dump()
            encoded = canonical_json({**body, "checksum": sha256_digest(canonical_json(body))})
            if len(encoded) <= limit:
                return encoded
            if message.message:
                message = message.model_copy(update={"message": message.message[: len(message.message) // 2] or None})
            elif message.scores:
                message = message.model_copy(update={"scores": []})
            else:
                raise ValueError(f"a termination message of {len(encoded)} bytes does not fit {limit}")


def parse_termination(text: str | None) -> Termination | None:
    """The message, or None if there is none, it is cut, or its checksum is wrong."""
    if not text:
        return None
    try:
        message = Termination.model_validate_json(text)
    except ValidationError:
        return None
    body = message.model_copy(update={"checksum": None}).dump()
    return message if message.checksum == sha256_digest(canonical_json(body)) else None
