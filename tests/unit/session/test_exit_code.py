"""A session that was ended from outside exits with 1: else the kubelet forgets why it did that."""

from __future__ import annotations

import pytest

from realcli.api.termination import Result, Termination
from realcli_session.__main__ import exit_code, main
from realcli_session.release import SocketUse


@pytest.mark.parametrize(
    ("phase", "result", "reason", "code"),
    [
        ("Work", Result.WORK_SEALED, "Completed", 0),
        ("Work", Result.WORK_INVALID, "ProviderUnavailable", 0),
        ("Work", Result.WORK_INVALID, "SessionLost", 1),
        ("Verify", Result.VERDICT, "Completed", 0),
        ("Verify", Result.WORK_INVALID, "SessionLost", 0),  # what the work seal says: a definite result of this pod
        ("Verify", Result.NO_WORK_SEAL, None, 0),
        ("Verify", Result.NO_VERDICT, "VerifierFault", 1),
        ("Plan", Result.REFUSED, "StorageRefused", 0),
    ],
)
def test_the_exit_code_tells_whether_the_message_does(phase: str, result: Result, reason: str | None, code: int) -> None:
    message = Termination.model_validate({"phase": phase, "result": result, "reason": reason})
    assert exit_code(message) == code


def test_a_result_that_cannot_be_handed_over_is_told_in_the_log_and_the_runner_let_go(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released: list[float] = []

    async def release(_: SocketUse, seconds: float) -> None:
        released.append(seconds)

    monkeypatch.setattr(SocketUse, "release", release)
    monkeypatch.setenv("REALCLI_TERMINATION_LOG", "/dev/full")  # a disk without space
    monkeypatch.delenv("REALCLI_STORAGE", raising=False)
    trial = ["--root", "r", "--lock-digest", "sha256:" + "0" * 64, "--ordinal", "0", "--attempt", "1"]
    assert main(["work", *trial]) == 1
    said = capsys.readouterr().err
    assert 'No space left on device; it is {"' in said
    assert '"reason":"SessionLost"' in said.rpartition("it is ")[2]
    assert len(released) == 1
