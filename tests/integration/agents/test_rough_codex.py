"""What the Codex adapter does when messages cross. The programs are small scripts in the place of `codex app-server`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from realcli.api.sweep import Mode
from realcli.ledger.events import Event
from realcli.ledger.writer import LedgerWriter
from realcli_session.agents.codex import Codex
from realcli_session.agents.port import (
    AgentEvent,
    AgentSpec,
    AgentUnresponsive,
    Error,
    NotWorking,
    PermissionRequest,
    Question,
    Withdrawn,
    Yield,
)
from realcli_session.gateway.dialects.base import Called
from realcli_session.gateway.witness import Witness
from tests.integration.conformance.bench import start_runner

PRELUDE = f"""#!{sys.executable} -u
import json, sys
def say(**line): print(json.dumps(line), flush=True)
def hear(method=None):
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    heard = json.loads(line)
    assert method is None or heard.get("method") == method, (method, heard)
    return heard
def answer(asked, **result): say(id=asked["id"], result=result)
def refuse(asked, message): say(id=asked["id"], error=dict(code=-32600, message=message))
def started(turn): say(method="turn/started", params=dict(threadId="T", turn=dict(id=turn)))
def ended(turn, status="completed"): say(method="turn/completed", params=dict(threadId="T", turn=dict(id=turn, status=status)))
def begin(turn):
    asked = hear("turn/start")
    answer(asked, turn=dict(id=turn))
    started(turn)
    return asked["params"]["input"][0]["text"]
answer(hear("initialize"))
hear("initialized")
answer(hear("thread/start"), thread=dict(id="T"))
"""


class Rough:
    """One script behind the adapter."""

    def __init__(self, adapter: Codex) -> None:
        self.adapter = adapter
        self.events: list[AgentEvent] = []
        self._typed = adapter.events()

    async def next(self, kind: type[AgentEvent]) -> AgentEvent:
        async with asyncio.timeout(30):
            async for event in self._typed:
                self.events.append(event)
                if isinstance(event, kind):
                    return event
        raise AssertionError(f"no {kind.__name__}: {self.events}")

    def texts(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Error)]


Begin = Callable[..., Awaitable[Rough]]


@pytest.fixture
async def rough(tmp_path: Path) -> AsyncIterator[Begin]:
    """rough(script, mode="COLLAB", permissions="Bypass", witness=None) -> Rough, started"""
    cleanup = contextlib.AsyncExitStack()

    async def begin(script: str, mode: Mode = "COLLAB", permissions: str = "Bypass", witness: Witness | None = None) -> Rough:
        program = tmp_path / "codex" / "bin" / "codex"
        program.parent.mkdir(parents=True)
        program.write_text(PRELUDE + script)
        program.chmod(0o755)
        events: list[Event] = []
        ledger = LedgerWriter(tmp_path / "spool", on_event=events.append)
        cleanup.callback(ledger.close)
        runner = await start_runner(cleanup, tmp_path)
        adapter = Codex(runner, ledger)
        cleanup.push_async_callback(adapter.stop, grace=0.2)
        spec = AgentSpec(
            mode=mode,
            version="0.142.0",
            model="m",
            base_url="http://127.0.0.1:1/v1",
            token="t",
            workdir=str(tmp_path),
            environ={},
            home=str(tmp_path),
            permissions=permissions,
            witness=witness,
            program_dir=str(tmp_path),
            state_dir=str(tmp_path / "state"),
        )
        await adapter.start(spec)
        return Rough(adapter)

    try:
        yield begin
    finally:
        await cleanup.aclose()


async def test_message_that_comes_too_late_for_the_turn_goes_on_with_the_response(rough: Begin) -> None:
    run = await rough("""
begin("t1")
late = hear("turn/steer")
ended("t1")
refuse(late, "no active turn to steer")
assert begin("t2") == "two"
ended("t2")
hear()
""")
    await run.adapter.send("one")
    await run.adapter.send("two", mid_turn=True)
    await run.next(Yield)
    with pytest.raises(NotWorking):
        await run.adapter.send("three", mid_turn=True)
    assert [type(event) for event in run.events] == [Yield]


async def test_turn_that_ends_while_a_message_is_taken_is_handed_over_once(rough: Begin) -> None:
    run = await rough("""
begin("t1")
steered = hear("turn/steer")
ended("t1")
answer(steered, turnId="t1")
hear()
""")
    await run.adapter.send("one")
    await run.adapter.send("two", mid_turn=True)
    assert await run.next(Yield) == Yield("yielded", "")
    assert [type(event) for event in run.events] == [Yield]


async def test_turn_that_is_over_before_its_start_was_answered(rough: Begin) -> None:
    run = await rough("""
asked = hear("turn/start")
sys.stdout.write("".join(json.dumps(line) + "\\n" for line in (
    dict(id=asked["id"], result=dict(turn=dict(id="t1"))),
    dict(method="turn/started", params=dict(threadId="T", turn=dict(id="t1"))),
    dict(method="turn/completed", params=dict(threadId="T", turn=dict(id="t1", status="completed"))),
)))
sys.stdout.flush()
assert begin("t2") == "two"
ended("t2")
hear()
""")
    await run.adapter.send("one")
    await run.next(Yield)
    await run.adapter.send("two")
    await run.next(Yield)


async def test_interrupt_hands_over_when_the_commands_are_gone(rough: Begin) -> None:
    run = await rough("""
begin("t1")
stop = hear("turn/interrupt")
ended("t1", "interrupted")
answer(stop)
clean = hear("thread/backgroundTerminals/clean")
say(method="warning", params=dict(threadId="T", message="cleaning"))
answer(clean)
hear()
""")
    await run.adapter.send("one")
    await run.adapter.interrupt()
    assert await run.next(Yield) == Yield("interrupted", "")
    assert run.texts() == ["cleaning"]  # the hand-over waited for it
    with pytest.raises(NotWorking):
        await run.adapter.interrupt()


async def test_interrupt_that_comes_too_late(rough: Begin) -> None:
    run = await rough("""
begin("t1")
stop = hear("turn/interrupt")
ended("t1")
refuse(stop, "no active turn")
answer(hear("thread/backgroundTerminals/clean"))
hear()
""")
    await run.adapter.send("one")
    with pytest.raises(NotWorking):
        await run.adapter.interrupt()
    assert await run.next(Yield) == Yield("yielded", "")


async def test_turn_of_its_own_is_no_hand_over(rough: Begin) -> None:
    run = await rough("""
begin("t1"); ended("t1")
started("own"); ended("own")
assert begin("t2") == "two"
ended("t2")
""")
    await run.adapter.send("one")
    await run.next(Yield)
    await run.adapter.send("two")
    await run.next(Yield)
    with pytest.raises(AssertionError, match="no Yield"):
        await run.next(Yield)


async def test_message_into_a_turn_of_its_own_joins_it(rough: Begin) -> None:
    run = await rough("""
begin("t1"); ended("t1")
started("own")
say(method="warning", params=dict(threadId="T", message="a turn of its own"))
steered = hear("turn/steer")
assert steered["params"]["expectedTurnId"] == "own"
answer(steered, turnId="own")
ended("own")
hear()
""")
    await run.adapter.send("one")
    await run.next(Yield)
    await run.next(Error)  # it has begun
    await run.adapter.send("two")
    assert await run.next(Yield) == Yield("yielded", "")


async def test_prompts_nobody_knows_are_declined_and_told(rough: Begin) -> None:
    run = await rough("""
begin("t1")
say(id=7, method="attestation/generate", params={})
assert hear()["error"]["code"] == -32601
ended("t1")
hear()
""")
    await run.adapter.send("one")
    await run.next(Yield)
    assert run.texts() == ["it asks for attestation/generate, which is not known"]


async def test_denial_with_a_reason_steers_first(rough: Begin) -> None:
    run = await rough(
        """
begin("t1")
say(id=0, method="item/commandExecution/requestApproval", params=dict(threadId="T", itemId="c", command="rm x"))
steered = hear("turn/steer")
assert steered["params"]["input"][0]["text"] == "Keep it."
answer(steered, turnId="t1")
assert hear() == dict(id=0, result=dict(decision="decline"))
say(id=1, method="mcpServer/elicitation/request", params=dict(threadId="T", serverName="s", message="Really?"))
assert hear() == dict(id=1, result=dict(action="accept", content={}))
say(id=2, method="item/fileChange/requestApproval", params=dict(threadId="T", itemId="c"))
say(method="serverRequest/resolved", params=dict(threadId="T", requestId=2))
ended("t1", "interrupted")
hear()
""",
        permissions="Ask",
    )
    await run.adapter.send("one")
    request = await run.next(PermissionRequest)
    assert isinstance(request, PermissionRequest)
    assert (request.tool, request.input) == ("exec_command", {"itemId": "c", "command": "rm x"})
    await run.adapter.answer(request.request_id, "deny", "Keep it.")
    elicited = await run.next(PermissionRequest)
    assert isinstance(elicited, PermissionRequest)
    assert elicited.tool == "mcp:s"
    await run.adapter.answer(elicited.request_id, "allow")
    change = await run.next(PermissionRequest)
    assert isinstance(change, PermissionRequest)
    assert await run.next(Withdrawn) == Withdrawn(change.request_id)
    with pytest.raises(LookupError):
        await run.adapter.answer(change.request_id, "allow")


async def test_question_in_exec_gets_the_fixed_answer(rough: Begin) -> None:
    run = await rough(
        """
begin("t1")
say(id=0, method="item/tool/requestUserInput", params=dict(threadId="T", itemId="c", questions=[dict(id="q", question="Why?")]))
assert hear() == dict(id=0, result=dict(answers=dict(q=dict(answers=["There is nobody to ask."]))))
ended("t1")
hear()
""",
        mode="EXEC",
    )
    await run.adapter.send("one")
    await run.next(Yield)
    assert not [event for event in run.events if isinstance(event, Question)]


async def test_another_version_is_told(rough: Begin) -> None:
    run = await rough("answer(hear('turn/start'), other=1)\nhear()")
    with pytest.raises(AgentUnresponsive, match=r"without turn.id: another version"):
        await run.adapter.send("one")


async def test_denial_that_comes_too_late_loses_no_hand_over(rough: Begin) -> None:
    run = await rough(
        """
begin("t1")
say(id=0, method="item/commandExecution/requestApproval", params=dict(threadId="T", itemId="c", command="rm x"))
steered = hear("turn/steer")
ended("t1", "failed")
refuse(steered, "no active turn to steer")
hear()
hear()
""",
        permissions="Ask",
    )
    await run.adapter.send("one")
    request = await run.next(PermissionRequest)
    assert isinstance(request, PermissionRequest)
    await run.adapter.answer(request.request_id, "deny", "Keep it.")
    assert await run.next(Yield) == Yield("failed", "failed")


async def test_prompts_that_no_answer_of_the_model_bears_out_are_not_asked(rough: Begin) -> None:
    witness = Witness()
    run = await rough(
        """
begin("t1")
def ask(number, method, **more): say(id=number, method=method, params=dict(threadId="T", **more))
ask(0, "mcpServer/elicitation/request", serverName="s")
ask(1, "item/commandExecution/requestApproval", command="no call")
ask(2, "item/tool/requestUserInput", itemId="c", questions=[])
ended("t1", "failed")
begin("t2")
ask(3, "item/tool/requestUserInput", itemId="c", questions=[])
ask(4, "mcpServer/elicitation/request", serverName="s")
ask(5, "item/commandExecution/requestApproval", itemId="c", command="a")
ask("5", "item/commandExecution/requestApproval", itemId="c", command="b")
ended("t2", "failed")
hear()
""",
        permissions="Ask",
        witness=witness,
    )
    await run.adapter.send("one")
    await run.next(Yield)
    witness.asked("r1", main=True)
    witness.said("r1", [Called("c", "exec_command", {})])
    witness.ended("r1", complete=True)
    await run.adapter.send("two")
    await run.next(Yield)
    asked = [event for event in run.events if isinstance(event, PermissionRequest | Question)]
    assert [event.request_id for event in asked] == ["codex-4", "codex-5"]
    assert asked[1] == PermissionRequest("codex-5", "exec_command", {"command": "a", "itemId": "c"}, answered=None)
    assert len(run.texts()) == 5


async def test_calls_that_never_end_are_not_kept(rough: Begin) -> None:
    run = await rough("""
begin("t1")
for n in range(1200):
    item = dict(type="commandExecution", id=f"{n}-" + "x" * 1000)
    say(method="item/started", params=dict(threadId="T", item=item))
ended("t1")
hear()
""")
    await run.adapter.send("one")
    await run.next(Yield)
    kept = run.adapter._thread.reported
    assert (len(kept), max(map(len, kept))) == (1000, 256)
