"""What Claude Code 2.1.140 does behind the adapter and the gateway, case by case."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from realcli_session.agents.port import Exit, Question, Text, ToolCall, ToolResult, Usage, Yield
from tests.integration.agents.conftest import KEY, StartStand

WaitFor = Callable[..., Awaitable[Any]]
DONE = {"text": "All done."}


def bash(command: str, **more: object) -> dict[str, object]:
    return {"tool": "Bash", "input": {"command": command, "description": "scripted"}, **more}


async def test_text_turn(stand: StartStand, claude_dir: Path) -> None:
    run = await stand(DONE)
    await run.adapter.send("Say that you are done.")
    assert await run.next(Yield) == Yield("yielded", "")
    assert Text("All done.") in run.passed
    assert [event.tokens.output for event in run.passed if isinstance(event, Usage)] == [7]
    assert [entry["text"] for entry in run.of("agent_message")] == ["All done."]
    (started,) = run.of("agent_start")
    assert started["binarySha256"] == hashlib.sha256((claude_dir / "claude").read_bytes()).hexdigest()
    assert "--disallowedTools" in started["argv"]
    status = await run.adapter.stop()
    assert status is not None
    assert await run.next(Exit) == Exit(0, None)
    assert run.of("agent_exit") == [{"code": 0, "stderrTail": ""}]
    assert run.gateway.turns == 1


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


async def test_message_while_a_tool_runs_joins_the_response(stand: StartStand) -> None:
    run = await stand(bash("while [ ! -e go ]; do sleep 0.02; done"), DONE)
    await run.adapter.send("Wait for it.")
    await run.next(ToolCall)
    await run.adapter.send("Use the blue one.", mid_turn=True)
    (run.work / "go").touch()
    assert (await run.next(Yield)).how == "yielded"
    assert len(run.provider.bodies) == 2
    assert "Use the blue one." in json.dumps(run.provider.bodies[1]["messages"])


async def test_message_during_the_last_text_is_no_yield_in_between(stand: StartStand) -> None:
    hold, holding = asyncio.Event(), asyncio.Event()
    run = await stand({"text": "First.", "hold": hold, "holding": holding}, {"text": "Second."})
    await run.adapter.send("One.")
    await holding.wait()
    await run.adapter.send("Two.", mid_turn=True)
    hold.set()
    await run.next(Yield)
    assert [event.text for event in run.passed if isinstance(event, Text)] == ["First.", "Second."]
    assert [type(event) for event in run.passed].count(Yield) == 1
    assert len(run.provider.bodies) == 2


async def test_interrupt_kills_the_command_and_the_next_message_works(stand: StartStand, wait_for: WaitFor) -> None:
    run = await stand(bash("while true; do date >> ticks; sleep 0.1; done"), DONE)
    await run.adapter.send("Run it.")
    await run.next(ToolCall)
    await wait_for((run.work / "ticks").exists, "the command runs")
    await run.adapter.interrupt()
    assert (await run.next(Yield)).how == "interrupted"

    async def gone() -> bool:
        return not any("ticks" in command for command in await run.commands())

    await wait_for(gone, "the command is killed")
    await run.adapter.send("Go on.")
    assert (await run.next(Yield)).how == "yielded"
    assert run.gateway.turns == 2


async def test_interrupt_of_a_streaming_answer(stand: StartStand) -> None:
    hold, holding = asyncio.Event(), asyncio.Event()
    run = await stand({"text": "Long.", "hold": hold, "holding": holding}, DONE)
    await run.adapter.send("Talk.")
    await holding.wait()
    await run.adapter.interrupt()
    assert (await run.next(Yield)).how == "interrupted"
    hold.set()
    await run.adapter.send("Go on.")
    assert (await run.next(Yield)).how == "yielded"
    assert run.of("model_reply")[0]["aborted"] == "agent"
    assert run.gateway.turns == 2


async def test_turn_limit(stand: StartStand) -> None:
    run = await stand(bash("true"), turn_limit=2)
    await run.adapter.send("Work for ever.")
    failed = await run.next(Yield)
    assert (failed.how, "call limit reached" in failed.detail) == ("failed", True)
    assert run.gateway.turn_limit_hit.is_set()
    assert (len(run.provider.bodies), run.gateway.turns, run.gateway.refused) == (2, 2, 1)


async def test_yield_on_the_last_turn_is_no_limit(stand: StartStand) -> None:
    run = await stand(DONE, turn_limit=1)
    await run.adapter.send("Say that you are done.")
    assert (await run.next(Yield)).how == "yielded"
    assert not run.gateway.turn_limit_hit.is_set()


async def test_provider_error_ends_in_the_gateway(stand: StartStand) -> None:
    run = await stand({"status": 529})
    await run.adapter.send("Hello.")
    assert (await run.next(Yield)).how == "failed"
    assert run.gateway.provider_failed.is_set()
    assert [reply["attempts"] for reply in run.of("model_reply")] == [2]  # the agent did not retry itself
    assert run.gateway.turns == 1


async def test_provider_error_that_passes_is_not_seen(stand: StartStand) -> None:
    run = await stand({"status": 503}, DONE)
    await run.adapter.send("Hello.")
    assert (await run.next(Yield)).how == "yielded"
    assert (run.gateway.turns, len(run.provider.bodies)) == (1, 2)


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


async def test_crash(stand: StartStand) -> None:
    run = await stand(bash("kill -9 $PPID; sleep 5"), DONE)
    await run.adapter.send("Crash.")
    assert await run.next(Exit) == Exit(None, signal.SIGKILL)
    assert run.of("agent_exit")[0]["signal"] == signal.SIGKILL
    assert not [event for event in run.passed if isinstance(event, Yield)]


async def test_question_is_a_hand_over_in_collab(stand: StartStand) -> None:
    options = [{"label": "Blue", "description": "as the sky"}, {"label": "Red", "description": "as blood"}]
    asked = {"questions": [{"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False}]}
    run = await stand({"tool": "AskUserQuestion", "input": asked}, DONE, mode="COLLAB")
    await run.adapter.send("Paint it.")
    question = await run.next(Question)
    assert question.text == "Which colour?\n- Blue: as the sky\n- Red: as blood"
    await run.adapter.answer(question.request_id, "allow", "Green, please.")
    assert (await run.next(Yield)).how == "yielded"
    assert "Green, please." in run.of("tool_result")[0]["text"]
    assert not [event for event in run.passed[:-1] if isinstance(event, Yield)]


async def test_sub_agent_text_is_not_shown_to_the_user(stand: StartStand) -> None:
    task = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}
    run = await stand({"tool": "Agent", "input": task}, {"text": "For the main agent only."}, DONE)
    await run.adapter.send("Delegate.")
    await run.next(Yield)
    assert [entry["text"] for entry in run.of("agent_message")] == ["All done."]
    assert [event.text for event in run.passed if isinstance(event, Text)] == ["All done."]
    assert run.gateway.turns == 3


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
