"""Room on the spool's volume that only the end of an attempt may use: a disk that is full leaves a sealed ledger, not none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

RESERVE: Final = "reserve"
"""In the spool's folder, as long as nothing has needed it."""
RESERVE_BYTES: Final = 64 << 20
"""For the closing events, run.json, and spool.json twice: it lists up to 100,000 objects of 180 bytes."""


class SpoolError(Exception):
    """The disk took no more of the spool. Not an OSError: those are caught where a connection may break."""


class Reserve:
    """A file of `size` bytes that are really there, until `release`. SpoolError where the volume has no room for it."""

    def __init__(self, spool: Path, size: int) -> None:
        self._path = spool / RESERVE
        if not size:
            return
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            self.release()
            raise SpoolError(f"{spool} has no room for the {size} bytes that the end of an attempt may need: {error}") from error
        finally:
            os.close(file)

    def release(self) -> None:
        """Give the room back."""
        self._path.unlink(missing_ok=True)
