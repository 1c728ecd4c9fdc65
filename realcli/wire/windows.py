"""Credit: how many bytes may be under way on one stream. Pure bookkeeping, the same at both ends.

A sender starts with `WINDOW` and may send what it holds; the receiver grants again what its consumer has taken. So a
stream nobody reads holds at most one window of memory at each end, whatever is written into it.
"""

from __future__ import annotations

from realcli.wire.frames import ProtocolError
from realcli.wire.protocol import WINDOW


class SendWindow:
    """The sender's side: what may still be sent."""

    def __init__(self) -> None:
        self.credit = WINDOW

    def spend(self, size: int) -> None:
        """Account for bytes about to be sent. More than the credit is a bug of the sender."""
        if size > self.credit:
            raise ValueError(f"{size} bytes to send with a credit of {self.credit}")
        self.credit -= size

    def grant(self, size: int) -> None:
        """Add what the receiver granted. More than a window in total is a broken receiver."""
        if size <= 0 or self.credit + size > WINDOW:
            raise ProtocolError(f"credit of {size} on top of {self.credit} is not within a window of {WINDOW}")
        self.credit += size


class ReceiveWindow:
    """The receiver's side: what the sender may still send, and what was taken but not yet granted again."""

    def __init__(self) -> None:
        self._open = WINDOW
        self._taken = 0

    def received(self, size: int) -> None:
        """Account for bytes that came. More than was open is a broken sender."""
        if size > self._open:
            raise ProtocolError(f"{size} bytes came where {self._open} were open")
        self._open -= size

    def taken(self, size: int) -> int:
        """Account for bytes the consumer took. Returns the credit to grant now, 0 while it is not worth a frame."""
        self._taken += size
        if self._taken * 4 < WINDOW:
            return 0
        grant, self._taken = self._taken, 0
        self._open += grant
        return grant
