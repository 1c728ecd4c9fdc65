"""An exit that was announced and did not happen has no code of its own."""

from __future__ import annotations

import pytest

from realcli_runner import recorder
from realcli_runner.seccomp import EXIT_GROUP, Notification


class Caller:
    """A process that asks for exit_group(0) and is let go on, or was killed meanwhile."""

    def __init__(self, goes_on: bool) -> None:
        self._goes_on = goes_on

    def receive(self) -> Notification:
        return Notification(1, 77, EXIT_GROUP, 8, (0, 0, 0, 0, 0, 0))

    def proceed(self, _: Notification) -> bool:
        return self._goes_on


@pytest.mark.parametrize(("goes_on", "code"), [(True, 0), (False, None)])
def test_a_code_counts_if_the_process_ends_with_it(goes_on: bool, code: int | None) -> None:
    made = recorder.Recorder()
    made._live[77] = live = recorder._Live([1], -1)
    made._on_call(Caller(goes_on))  # type: ignore[arg-type]
    assert live.code == code
