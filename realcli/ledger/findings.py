"""What a verification can find: the closed set of names for what was done to a ledger."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What was done to the evidence."""

    CHANGED = "changed"  # something that was sealed has other bytes, or says what the rest of the evidence does not
    MISSING = "missing"  # a line, a segment or a file in the middle is not there
    REORDERED = "reordered"  # lines or segments that are all there stand in another order
    ADDED = "added"  # a line or a file that was never written by the session
    TRUNCATED = "truncated"  # the end is not there: of the ledger, or of a segment in the middle of a line
    SWAPPED = "swapped"  # whole and sound, but of another attempt
    UNSEALED = "unsealed"  # there is no seal
    ANCHOR = "anchor"  # sound in itself, but not what the trial's status anchored


class Finding(NamedTuple):
    """One thing that is wrong."""

    kind: Kind
    where: str  # path, with :line where a line is meant
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.what}"
