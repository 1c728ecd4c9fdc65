"""A session that waits for storage: what `spool.json` in its spool says, and how the spool is copied out.

The file is there exactly while a finished session waits: its container is not ready while it is there (the readiness probe),
and `realcli ledger recover` reads it first.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from realcli.api.base import Frozen
from realcli.ledger.seals import SealedObject, TrialIdentity

SPOOL_FILE: Final = "spool.json"
"""In the spool's folder, and in the copy of a spool."""
NOT_BLOCKED: Final = 3
"""Exit status of `python3 -m realcli_session.spool` where nothing waits."""
CAME_BACK: Final = 4
"""Its exit status where storage came back while the spool was copied."""


class Spool(Frozen):
    """What waits, and what is in storage already."""

    schema_: Literal["realcli.dev/spool/1"] = Field(default="realcli.dev/spool/1", alias="schema")
    trial: TrialIdentity
    place: str  # the attempt's key and its store, for people
    since: str  # UTC, RFC 3339
    message: str  # what storage said
    stored: list[SealedObject]  # in storage already, so not in the spool any more
    files: dict[str, str]  # name below the attempt → path below the spool, for what lies elsewhere in it
