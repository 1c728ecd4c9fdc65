"""A runner nobody needs is let go, so that its container does not wait out its set-up limit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from realcli_session.release import SocketUse
from realcli_session.runner.errors import RunnerLost


async def connected(path: Path) -> asyncio.StreamWriter:
    """A peer that knocks as the runner does: again until somebody listens."""
    while True:
        try:
            _, writer = await asyncio.open_unix_connection(path)
        except (FileNotFoundError, ConnectionRefusedError):
            await asyncio.sleep(0.005)
        else:
            return writer


@pytest.mark.parametrize("opened", [False, True], ids=["never opened", "opened and closed before anybody waited"])
async def test_a_runner_that_still_waits_is_met(tmp_path: Path, opened: bool) -> None:
    use = SocketUse(str(tmp_path / "s"))
    if opened:
        use.listen().close()
    releasing = asyncio.create_task(use.release(60))
    writer = await asyncio.wait_for(connected(tmp_path / "s"), 30)
    writer.close()
    await asyncio.wait_for(releasing, 30)
    assert not (tmp_path / "s").exists()


async def test_a_runner_that_was_waited_for_is_not_waited_for_again(tmp_path: Path) -> None:
    use = SocketUse(str(tmp_path / "s"))
    listener = use.listen()
    with pytest.raises(RunnerLost):
        await listener.accept(0)
    await asyncio.wait_for(use.release(3600), 30)
