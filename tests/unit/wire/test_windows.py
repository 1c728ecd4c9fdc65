"""Credit as a state machine: never more than a window under way, and never stuck."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.wire.frames import ProtocolError
from realcli.wire.protocol import WINDOW
from realcli.wire.windows import ReceiveWindow, SendWindow


@given(st.lists(st.tuples(st.sampled_from(["send", "take"]), st.integers(1, WINDOW)), max_size=60))
def test_a_sender_that_obeys_is_never_refused_and_memory_is_one_window(steps: list[tuple[str, int]]) -> None:
    sender, receiver = SendWindow(), ReceiveWindow()
    buffered = 0
    for step, size in steps:
        if step == "send":
            size = min(size, sender.credit)
            sender.spend(size)
            receiver.received(size)
            buffered += size
        else:
            size = min(size, buffered)
            buffered -= size
            if grant := receiver.taken(size):
                sender.grant(grant)
        assert buffered <= WINDOW
    if grant := receiver.taken(buffered):
        sender.grant(grant)
    assert sender.credit > WINDOW // 2  # all was taken: most of the window is open again


def test_a_sender_that_does_not_obey_is_refused() -> None:
    receiver = ReceiveWindow()
    receiver.received(WINDOW)
    with pytest.raises(ProtocolError, match="were open"):
        receiver.received(1)


@pytest.mark.parametrize("size", [0, 1, WINDOW + 1])
def test_a_receiver_that_grants_too_much_is_refused(size: int) -> None:
    with pytest.raises(ProtocolError, match="window"):
        SendWindow().grant(size)


def test_spending_more_than_the_credit_is_a_bug() -> None:
    with pytest.raises(ValueError, match="credit"):
        SendWindow().spend(WINDOW + 1)
