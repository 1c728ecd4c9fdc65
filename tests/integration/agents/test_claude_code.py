"""What Claude Code 2.1.140 alone does behind adapter and gateway; what all agents do is in tests/integration/conformance."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from realcli_session.agents.port import ToolCall, ToolResult, Yield
from tests.integration.agents.conftest import KEY, StartStand

WaitFor = Callable[..., Awaitable[Any]]
DONE = {"text": "All done."}


def bash(command: str, **more: object) -> dict[str, object]:
    return {"tool": "Bash", "input": {"command": command, "description": "scripted"}, **more}


async def test_tool_turn_with_evidence(stand: StartStand) -> None:
    look = "echo port=80 > made.conf; cat made.conf; env"
    run = await stand(bash(look, say="I make it."), DONE, watch=True, markers={"made.conf": ["port=80"]})
    await run.adapter.send("Make the file.")
    await run.next(Yield)
    assert [e.name for e in run.passed if isinstance(e, ToolCall)] == ["Bash"]
    assert [e.is_error for e in run.passed if isinstance(e, ToolResult)] == [False]
    kinds = [event.kind for event in run.events if event.kind not in ("agent_start", "file_write")]
    assert kinds == [
        *("model_request", "agent_message", "tool_call", "model_reply"),
        *("model_request", "tool_result", "file_read", "agent_message", "model_reply"),
    ]
    (write,) = run.of("file_write")
    assert (write["path"], write["afterTurn"], write["beforeTurn"], write["created"]) == (f"{run.work}/made.conf", 1, 2, True)
    output = run.of("tool_result")[0]["text"]
    assert f"HOME={run.spec.home}" in output
    assert "TASK_VARIABLE=kept" in output
    assert KEY not in output
    assert KEY.encode() not in b"".join(file.read_bytes() for file in run.ledger.spool.rglob("*") if file.is_file())
    assert os.listdir(run.spec.home) == []
    assert {headers["x-api-key"] for headers in run.provider.headers} == {KEY}


@pytest.mark.parametrize("how", ["connection", "end", "error"])
async def test_stream_cut_by_the_provider_is_asked_for_again_in_the_same_turn(stand: StartStand, how: str) -> None:
    run = await stand({"text": "Half of", "cut": how}, DONE)
    await run.adapter.send("Hello.")
    assert (await run.next(Yield)).how == "yielded"
    assert [reply.get("aborted") for reply in run.of("model_reply")] == ["provider", None]
    assert (run.gateway.turns, len(run.provider.bodies)) == (1, 2)


async def test_stream_cut_after_a_whole_block_is_one_turn_whether_asked_for_again_or_given_up(stand: StartStand) -> None:
    run = await stand({"text": "Half of", "cut": "after a block"}, DONE)
    await run.adapter.send("Hello.")
    handed_over = await run.next(Yield)
    # the program asks again if the end of the block has not reached it when the connection breaks, else it gives up
    asked = len(run.provider.bodies)
    assert (handed_over.how, asked) in (("yielded", 2), ("failed", 1))
    assert [reply.get("aborted") for reply in run.of("model_reply")] == ["provider", None][:asked]
    assert run.gateway.turns == 1


async def test_a_change_the_program_shows_by_itself_counts_as_shown(stand: StartStand, tmp_path: Path) -> None:
    settings = tmp_path / "site.ini"
    settings.write_text("listen = 80\n")
    look = {"tool": "Read", "input": {"file_path": str(settings)}}
    edit = {"tool": "Edit", "input": {"file_path": str(settings), "old_string": "80", "new_string": "81"}}
    run = await stand(look, edit, DONE, DONE, DONE, mode="COLLAB", markers={"site.ini": ["# Note for Jo"]})
    await run.adapter.send("Set listen to 81.")
    await run.next(Yield)
    settings.write_text("# Note for Jo: keep this\nlisten = 81\n")
    os.utime(settings, ns=(settings.stat().st_atime_ns, settings.stat().st_mtime_ns + 10**9))  # later than the edit, for sure
    for text in ("I have been in the file.", "Thanks."):
        await run.adapter.send(text)
        await run.next(Yield)
    (shown,) = [event for event in run.events if event.kind == "file_read"]
    assert shown.data == {"path": "site.ini", "marker": "# Note for Jo", "callId": ""}
    assert shown.turn == 4
