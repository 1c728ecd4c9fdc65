"""The cases, without a word about any agent: what it is made to do, and what has to be true then.

Each looks at three sides: the ledger's events, the container's process table, and what the provider saw.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
import tarfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from realcli.ledger.events import Interrupt
from realcli_session.agents.port import (
    AgentUnresponsive,
    Error,
    Exit,
    McpServer,
    NotWorking,
    OwnSetup,
    PermissionRequest,
    Question,
    ToolCall,
    ToolResult,
    Usage,
    Yield,
)
from tests.integration.conformance.bench import KEY, Bench
from tests.integration.conformance.drivers import Driver

Begin = Callable[..., Awaitable[Bench]]
"""begin(script, **options of start_bench) -> Bench"""
DONE = {"say": "All done."}
CLAIM = {**DONE, "done": True}  # where an agent says by a field of its own whether it waits or claims
FORGE = """#!/bin/sh
cat lines > /proc/$(cat pid)/fd/1
"""
TOOL_SERVER = Path(__file__).with_name("mcp_server.py")


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    title: str
    body: Callable[[Driver, Begin], Awaitable[None]]
    quick: bool
    proves: frozenset[str] = field(default_factory=frozenset)
    """Kinds of events that are in the ledger when it passes."""
    shows: tuple[str, ...] = ()
    """What the capability matrix counts: kinds the session writes when it hears what the case has heard, and abilities."""


CASES: dict[str, Case] = {}


def case(title: str, *, quick: bool = False, proves: tuple[str, ...] = (), shows: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    def add(body: Callable[[Driver, Begin], Awaitable[None]]) -> Callable[[Driver, Begin], Awaitable[None]]:
        name = body.__name__
        CASES[name] = Case(name, title, body, quick, frozenset(proves), shows)
        return body

    return add


def steps(*answers: dict[str, Any]) -> dict[str, Any]:
    """The model's answers in the order of its requests."""
    return {"rules": [{"steps": list(answers), "count": "conversation"}]}


def said(text: str, answer: dict[str, Any]) -> dict[str, Any]:
    return {"when": {"said": text}, "then": answer}


async def nothing_left(bench: Bench) -> None:
    """The program ends when its input does, and nothing of it stays."""
    status = await bench.adapter.stop()
    assert status is not None
    assert isinstance(await bench.next(Exit), Exit)
    assert len(bench.of("agent_exit")) == 1

    async def empty() -> bool:
        return await bench.runner.procs() == ()

    await bench.until(empty, "nothing of it runs")


# -------------------------------------------------------------------------------------------------------------------- talk
@case(
    "text turn",
    quick=True,
    proves=("agent_start", "agent_message", "model_request", "model_reply", "agent_exit"),
    shows=("agent_message", "yield"),
)
async def text_turn(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps(DONE))
    assert await bench.say("Say that you are done.") == Yield("yielded", "")
    assert bench.messages == ["All done."]
    assert bench.texts == ["All done."]
    assert sum(event.tokens.output for event in bench.passed if isinstance(event, Usage)) > 0
    (started,) = bench.of("agent_start")
    assert len(started["binarySha256"]) == 64
    assert not any(bench.spec.token in word or KEY in word for word in started["argv"])
    assert "Say that you are done." in bench.seen()
    assert bench.accepted == len(bench.turns) == 1
    assert driver.question_tool not in bench.tools()
    assert await bench.own()
    assert await bench.commands() == []
    assert os.listdir(bench.spec.home) == []
    await nothing_left(bench)


@case("tool", quick=True, proves=("tool_call", "tool_result"), shows=("tool_call", "tool_result", "visible_notes"))
async def tool(driver: Driver, begin: Begin) -> None:
    command = "echo port=80 > made.conf; cat made.conf; env"
    bench = await begin(steps({"run": command, "say": "I make it."}, DONE))
    assert (await bench.say("Make the file.")).how == "yielded"
    assert (bench.work / "made.conf").read_text() == "port=80\n"
    (call,) = bench.of("tool_call")
    (result,) = bench.of("tool_result")
    assert call["callId"] == result["callId"]
    assert command in json.dumps(call["input"])
    assert "port=80" in result["text"]
    assert f"HOME={bench.spec.home}" in result["text"]
    assert "TASK_VARIABLE=kept" in result["text"]
    assert bench.messages == ["I make it.", "All done."]
    assert len([event for event in bench.passed if isinstance(event, ToolCall)]) == 1
    assert [event.is_error for event in bench.passed if isinstance(event, ToolResult)] == [False]
    assert KEY not in bench.seen()
    assert KEY.encode() not in b"".join(file.read_bytes() for file in bench.ledger.spool.rglob("*") if file.is_file())
    assert bench.accepted == 2
    assert await bench.commands() == []


@case("question", quick=True, shows=("agent_question",))
async def question(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps({"ask": {"question": "Which colour?", "options": ["Blue", "Red"]}}, CLAIM), mode="COLLAB")
    await bench.adapter.send("Paint it.")
    asked = await bench.next(Question)
    assert asked.text.splitlines()[0] == "Which colour?"
    assert "Blue" in asked.text
    assert asked.parts == ()
    assert len(bench.turns) == 1
    await bench.adapter.answer(asked.request_id, "allow", "Green, please.")
    assert (await bench.next(Yield)).how == "yielded"
    if driver.question_tool:
        assert "Green, please." in bench.of("tool_result")[0]["text"]
    assert "Green, please." in bench.seen()
    with pytest.raises(LookupError):
        await bench.adapter.answer(asked.request_id, "allow", "again")
    assert bench.of("permission_request") == []


# -------------------------------------------------------------------------------------------------------------- permissions
async def _asks(driver: Driver, begin: Begin) -> tuple[Bench, PermissionRequest]:
    rules = {"rules": [{"steps": [{"run": driver.asked_command}, DONE], "count": "conversation"}]}
    bench = await begin(rules, mode="COLLAB", permissions="Ask")
    await bench.adapter.send("Touch the file.")
    request = await bench.next(PermissionRequest)
    assert request.answered is None
    assert driver.asked_command in json.dumps(request.input)
    assert not any("asked.txt" in line for line in await bench.commands())
    assert not (bench.work / "asked.txt").exists()
    assert bench.of("permission_answer") == []  # the user's answer is not the adapter's to record
    return bench, request


@case("permission allowed", quick=True, proves=("tool_call", "tool_result"), shows=("permission_request",))
async def permission_allowed(driver: Driver, begin: Begin) -> None:
    bench, request = await _asks(driver, begin)
    await bench.adapter.answer(request.request_id, "allow")
    assert (await bench.next(Yield)).how == "yielded"
    assert (bench.work / "asked.txt").exists()
    assert bench.accepted == 2


@case("permission denied with a reason", proves=("tool_call", "tool_result"))
async def permission_denied(driver: Driver, begin: Begin) -> None:
    bench, request = await _asks(driver, begin)
    await bench.adapter.answer(request.request_id, "deny", "No: keep the folder as it is.")
    assert (await bench.next(Yield)).how == "yielded"
    assert not (bench.work / "asked.txt").exists()
    assert "No: keep the folder as it is." in bench.seen(1)  # with the very next request
    assert len(bench.of("tool_result")) == 1


@case("permission by the task's policy", proves=("permission_request", "permission_answer"))
async def permission_policy(driver: Driver, begin: Begin) -> None:
    for decision, there in (("allow", True), ("deny", False)):
        bench = await begin(steps({"run": driver.asked_command}, DONE), permissions="Ask", exec_permissions=decision)
        assert (await bench.say("Touch the file.")).how == "yielded"
        (asked,), (answer,) = bench.of("permission_request"), bench.of("permission_answer")
        assert asked["requestId"] == answer["requestId"]
        assert (answer["decision"], answer["by"]) == (decision, "policy")
        assert (bench.work / "asked.txt").exists() is there
        assert [event.answered for event in bench.passed if isinstance(event, PermissionRequest)] == [decision]


# ----------------------------------------------------------------------------------------------------- mid-turn, interrupt
@case("message mid-turn", quick=True, shows=("mid_turn_message",))
async def message_mid_turn(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps({"run": "while [ ! -e go ]; do sleep 0.02; done"}, DONE))
    await bench.adapter.send("Wait for it.")
    await bench.next(ToolCall)
    await bench.adapter.send("Use the blue one.", mid_turn=True)
    (bench.work / "go").touch()
    assert (await bench.next(Yield)).how == "yielded"
    assert len(bench.turns) == 2
    assert "Use the blue one." in bench.seen()
    assert "Use the blue one." not in bench.seen(0)
    with pytest.raises(NotWorking):
        await bench.adapter.send("Too late.", mid_turn=True)
    assert len(bench.turns) == 2


@case("message during the last text")
async def message_during_last_text(driver: Driver, begin: Begin) -> None:
    first = {"say": "First " + "word " * 40 + "end.", "fault": dict(driver.lasting)}
    bench = await begin({"rules": [said("Two", {"say": "Second."}), said("One", first)]})
    await bench.adapter.send("One.")
    await bench.until(lambda: bench.turns, "the answer has begun")
    await bench.adapter.send("Two.", mid_turn=True)
    assert (await bench.next(Yield)).how == "yielded"
    assert bench.messages[-1] == "Second."
    assert len(bench.turns) == 2
    assert not [event for event in bench.passed[:-1] if isinstance(event, Yield)]


TICKS = "while true; do date +%s.%N >> ticks; sleep 0.1; done"


async def _interrupted(driver: Driver, begin: Begin) -> Bench:
    bench = await begin({"rules": [said("Go on", DONE), said("Run it", {"run": f"sh -c '{TICKS}'", "duration": 60})]})
    await bench.adapter.send("Run it.")
    await bench.next(ToolCall)
    await bench.until((bench.work / "ticks").exists, "the command runs")
    await bench.adapter.interrupt()
    event = bench.ledger.emit("session", Interrupt(taken=True))
    assert (await bench.next(Yield)).how == "interrupted"
    taken = datetime.fromisoformat(event.t).timestamp()
    assert not any("ticks" in line for line in await bench.commands())  # at once: `interrupt` returns when it is dead
    before = (bench.work / "ticks").read_text()
    await asyncio.sleep(0.5)  # five lines, if anything wrote still
    assert (bench.work / "ticks").read_text() == before
    assert float(before.split()[-1]) <= taken + 1.0
    return bench


@case("interrupt", quick=True, proves=("interrupt", "tool_call"), shows=("interrupt",))
async def interrupt(driver: Driver, begin: Begin) -> None:
    bench = await _interrupted(driver, begin)
    assert bench.accepted == 1
    assert await bench.commands() == []
    with pytest.raises(NotWorking):
        await bench.adapter.interrupt()


@case("turn after an interrupt")
async def turn_after_interrupt(driver: Driver, begin: Begin) -> None:
    bench = await _interrupted(driver, begin)
    assert (await bench.say("Go on.")).how == "yielded"
    assert bench.messages == ["All done."]
    assert bench.accepted == 2
    assert "Go on." in bench.seen()


@case("interrupt while it answers", proves=("model_reply",))
async def interrupt_while_it_answers(driver: Driver, begin: Begin) -> None:
    endless = {"say": "word " * 20_000, "fault": dict(driver.endless)}
    bench = await begin({"rules": [said("Go on", DONE), said("Talk", endless)]})
    await bench.adapter.send("Talk.")
    await bench.until(lambda: bench.turns, "the answer has begun")
    await bench.adapter.interrupt()
    assert (await bench.next(Yield)).how == "interrupted"
    assert (await bench.say("Go on.")).how == "yielded"
    await bench.until(lambda: len(bench.of("model_reply")) >= 2, "the gateway has noticed")
    assert [reply.get("aborted") for reply in bench.of("model_reply")].count("agent") == 1
    assert bench.accepted == 2


# -------------------------------------------------------------------------------------------------------- limits and faults
@case("limit", quick=True, proves=("model_request",))
async def limit(driver: Driver, begin: Begin) -> None:
    bench = await begin({"otherwise": {"run": "true"}}, turn_limit=2)
    failed = await bench.say("Work for ever.")
    assert failed.how == "failed"
    assert driver.limit_error in failed.detail
    assert bench.gateway.turn_limit_hit.is_set()
    assert (len(bench.turns), bench.accepted) == (2, 2)
    assert next(entry["refused"] for entry in bench.of("model_request") if entry.get("refused")) == "turn_limit"
    assert await bench.commands() == []


@case("yield on the last turn")
async def yield_on_last_turn(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps(DONE), turn_limit=1 + driver.confirmations)
    assert (await bench.say("Say that you are done.")).how == "yielded"
    assert not bench.gateway.turn_limit_hit.is_set()


@case("provider error", proves=("model_reply",))
async def provider_error(driver: Driver, begin: Begin) -> None:
    bench = await begin({"rules": [said("Hello", {"fault": {"status": 529}})]})
    await bench.adapter.send("Hello.")
    await asyncio.wait_for(bench.gateway.provider_failed.wait(), 60)
    assert bench.of("model_reply")[0]["attempts"] == 2  # the gateway's own retries
    assert bench.of("agent_message") == []
    await bench.adapter.stop(grace=0.2)  # as the session does; the program alone would try again for a minute or for ever
    await bench.next(Exit)
    assert bench.accepted == 1  # whatever it tried again is the same turn
    assert not [event for event in bench.passed if isinstance(event, Yield) and event.how != "failed"]


@case("provider error that passes")
async def provider_error_passes(driver: Driver, begin: Begin) -> None:
    bench = await begin({"rules": [said("Hello", {**DONE, "fault": {"status": 503, "times": 1}})]})
    assert (await bench.say("Hello.")).how == "yielded"
    assert (bench.accepted, len(bench.turns)) == (1, 2)
    assert len(bench.of("model_reply")) == 1 + driver.confirmations


@case("stream cut by the provider", proves=("model_reply",))
async def stream_cut(driver: Driver, begin: Begin) -> None:
    bench = await begin({"rules": [said("Hello", {"say": "A text of some length.", "fault": {"cut": True, "times": 1}})]})
    assert (await bench.say("Hello.")).how == "yielded"
    assert [reply.get("aborted") for reply in bench.of("model_reply")] == ["provider", None]
    assert bench.accepted == 1


# ------------------------------------------------------------------------------------------------------- the program itself
async def _working(driver: Driver, begin: Begin) -> Bench:
    bench = await begin(steps({"run": "echo $$ > pid; sleep 600", "duration": 60}, DONE))
    await bench.adapter.send("Work.")
    await bench.next(ToolCall)
    await bench.until((bench.work / "pid").exists, "the command runs")
    return bench


@case("crash", quick=True, proves=("agent_exit",))
async def crash(driver: Driver, begin: Begin) -> None:
    bench = await _working(driver, begin)
    for proc in await bench.own():
        await bench.runner.signal_pid(proc.pid, signal.SIGKILL)
    assert await bench.next(Exit) == Exit(None, signal.SIGKILL)
    assert bench.of("agent_exit")[0]["signal"] == signal.SIGKILL
    assert not [event for event in bench.passed if isinstance(event, Yield)]
    await bench.until_ended()
    with pytest.raises(AgentUnresponsive):
        await bench.adapter.interrupt()


@case("hang", proves=("agent_exit",))
async def hang(driver: Driver, begin: Begin) -> None:
    bench = await _working(driver, begin)
    for proc in await bench.own():
        await bench.runner.signal_pid(proc.pid, signal.SIGSTOP)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in driver.patience:
            patch.setattr(module, name, 0.5)
        with pytest.raises(AgentUnresponsive, match="did not answer"):
            await bench.adapter.interrupt()
    status = await bench.adapter.stop(grace=0.2)
    assert status is not None
    assert status.signal == signal.SIGKILL
    assert bench.of("agent_exit")[0]["signal"] == signal.SIGKILL
    await bench.until_ended()


@case("SIGTERM", proves=("agent_exit",))
async def sigterm(driver: Driver, begin: Begin) -> None:
    bench = await _working(driver, begin)
    for proc in await bench.own():
        await bench.runner.signal_pid(proc.pid, signal.SIGTERM)
    assert await bench.next(Exit) == Exit(*driver.sigterm)
    report = await bench.runner.quiesce(grace=1.0)
    assert report.survivors == ()


# ------------------------------------------------------------------------------------------------------------------- output
@case("output that is no UTF-8", quick=True, proves=("tool_result",))
async def no_utf8(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps({"run": r"printf 'before \377\376\200 caf\303\251 after\n'"}, DONE))
    assert (await bench.say("Print it.")).how == "yielded"
    (result,) = bench.of("tool_result")
    assert "before" in result["text"]
    assert "café after" in result["text"]
    for file in bench.ledger.spool.glob("ledger/*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            json.loads(line)


@case("5 MB of output", proves=("tool_result",))
async def much_output(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps({"run": "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo the end", "duration": 5}, DONE))
    assert (await bench.say("Print much.")).how == "yielded"
    assert len(bench.of("tool_result")) == 1
    assert "xxxxxxxx" in bench.seen()
    assert not [event for event in bench.passed if isinstance(event, Error)]
    assert await bench.commands() == []


@case("background process holding stdout", proves=("tool_result",))
async def background_holds_stdout(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps({"run": "sleep 601 & echo started"}, DONE))
    assert (await bench.say("Start it.")).how == "yielded"
    assert "started" in bench.of("tool_result")[0]["text"]
    assert bench.accepted == 2
    await bench.adapter.stop(grace=5)
    report = await bench.runner.quiesce(grace=1.0)
    assert report.survivors == ()


@case("background task running at the yield", proves=("tool_call", "tool_result"))
async def background_task(driver: Driver, begin: Begin) -> None:
    waits = "while [ ! -e go ]; do sleep 0.05; done; echo finished > result"
    rules = [said("Look again", DONE), said("Start", {"run": waits, "background": True})]
    bench = await begin({"rules": [{"when": {"said": "Start", "step": {"from": 2}}, "then": {"say": "It runs."}}, *rules]})
    assert (await bench.say("Start it.")).how == "yielded"
    assert any("result" in line for line in await bench.commands())  # handed over, though something of it runs
    (bench.work / "go").touch()
    await bench.until((bench.work / "result").exists, "the task ends")
    await bench.until_gone("finished")
    assert (await bench.say("Look again.")).how == "yielded"
    assert bench.messages[-1] == "All done."
    assert [type(event) for event in bench.passed].count(Yield) == 2  # a response of its own is no hand-over


# -------------------------------------------------------------------------------------------------- sub-agents, compaction
@case("sub-agent", proves=("tool_call",))
async def sub_agent(driver: Driver, begin: Begin) -> None:
    prompt = "Look around in the folder."
    inner = {"when": {"opening": prompt}, "steps": [{"run": "echo seen > looked"}, {"say": "For the main agent only."}]}
    bench = await begin({"rules": [inner, *driver.sub_agent(prompt, "All done.")], "capture": dict(driver.capture)})
    assert (await bench.say("Delegate it.")).how == "yielded"
    assert (bench.work / "looked").read_text() == "seen\n"
    assert bench.messages == ["All done."]
    assert bench.texts == ["All done."]
    inner_requests = [entry for entry in bench.turns if entry["rule"] == "rules.0"]
    assert len(inner_requests) == 2
    assert bench.accepted == len(bench.turns) >= 4
    assert await bench.commands() == []


@case("compaction", proves=("model_request",))
async def compaction(driver: Driver, begin: Begin) -> None:
    full = {"run": "echo one", "fault": {"usage": dict(driver.full), "times": 1}}
    summary = "SUMMARY: the first step is done."
    rules = [
        {"when": {"shown": summary}, "then": DONE},
        {"when": {"said": {"contains": "summary"}, "side": None}, "then": {"say": summary}},
        {"when": {"step": 1}, "then": full},
    ]
    bench = await begin({"rules": rules, "otherwise": DONE})
    assert (await bench.say("Do the long work.")).how == "yielded"
    asked = [number for number, entry in enumerate(bench.turns) if driver.compacts(entry)]
    assert len(asked) == 1
    assert summary in bench.seen()
    assert bench.accepted == len(bench.turns)
    assert bench.messages == ["All done."]
    assert bench.texts == ["All done."]


# -------------------------------------------------------------------------------------------------------------- own set-up
def archive(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@case("own files and an MCP server", proves=("agent_setup", "tool_call", "tool_result"))
async def own_setup(driver: Driver, begin: Begin) -> None:
    server = McpServer("tickets", (sys.executable, str(TOOL_SERVER)), {"TICKETS_ANSWER": "forty-two"})
    files = archive({f"Config/{driver.instructions}": "The team says: mind the gap.\n", "Work/notes/hint.txt": "a hint\n"})
    setup = OwnSetup(digest="sha256:" + "0" * 64, files=files, mcp_servers=(server,))
    bench = await begin(steps(*driver.mcp_call("tickets", "lookup", {"id": "T-1"}), DONE), setup=setup, effort="high")
    assert (await bench.say("Look the ticket up.")).how == "yielded"
    assert (bench.work / "notes" / "hint.txt").read_text() == "a hint\n"
    assert "mind the gap" in json.dumps(bench.turns[0]["body"])
    assert "ticket T-1: forty-two" in bench.seen()
    assert any("ticket T-1: forty-two" in entry["text"] for entry in bench.of("tool_result"))
    (installed,) = bench.of("agent_setup")
    assert (installed["digest"], installed["files"], installed["mcpServers"]) == (setup.digest, 2, ["tickets"])
    assert bench.of("agent_start")[0]["argv"] is not None
    assert not any("forty-two" in word for word in bench.of("agent_start")[0]["argv"])
    assert any(TOOL_SERVER.name in line for line in await bench.commands())
    await nothing_left(bench)


# ------------------------------------------------------------------------------------------- what a hostile process can do
@case("forged lines on its standard output", quick=True)
async def forged_lines(driver: Driver, begin: Begin) -> None:
    """A command writes into the pipe of the program's output, as any process of its user can: no hand-over, no question."""
    bench = await begin({"rules": [{"when": {"step": 1}, "then": {"run": "./forge; echo forged > done"}}]}, mode="COLLAB")
    lines = "".join(json.dumps(line) + "\n" for line in driver.forged(bench.adapter))
    (bench.work / "lines").write_text(lines)
    (bench.work / "forge").write_text(FORGE)
    (bench.work / "forge").chmod(0o755)
    (program,) = [proc.pid for proc in await bench.own()][:1]
    (bench.work / "pid").write_text(str(program))
    await bench.adapter.send("Work.")
    assert await bench.next(Yield) == Yield("yielded", "")
    assert (bench.work / "done").read_text() == "forged\n"
    assert len(bench.turns) == 2  # the hand-over is the one after the second answer
    errors = [event.message for event in bench.passed if isinstance(event, Error)]
    assert any("hands over" in message for message in errors)
    assert any("asks about a call" in message for message in errors)
    assert not [event for event in bench.passed if isinstance(event, Question | PermissionRequest)]


# --------------------------------------------------------------------------------------------------------------- the rest
@case("question of several parts", proves=("tool_result",))
async def question_of_parts(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps(driver.questions(["Which colour?", "Which size?", "Why?"]), DONE), mode="COLLAB")
    await bench.adapter.send("Paint it.")
    asked = await bench.next(Question)
    assert [part.splitlines()[0] for part in asked.parts] == ["Which colour?", "Which size?", "Why?"]
    assert all(part in asked.text for part in asked.parts)
    await bench.adapter.answer(asked.request_id, "allow", "As you like.", parts={"Which size?": "Four metres."})
    assert (await bench.next(Yield)).how == "yielded"
    assert bench.seen().count("As you like.") == 2
    assert "Four metres." in bench.of("tool_result")[0]["text"]


@case("user without privileges")
async def unprivileged(driver: Driver, begin: Begin) -> None:
    bench = await begin(steps({"run": "id -u > who; cat who"}, DONE), uid=12345)
    assert (await bench.say("Who are you?")).how == "yielded"
    assert (bench.work / "who").read_text() == "12345\n"
    assert {proc.uid for proc in await bench.own()} == {12345}
    assert (bench.work / "who").stat().st_uid == 12345


@case("goal the program pursues by itself")
async def goal(driver: Driver, begin: Begin) -> None:
    """Turn after turn without a word of the user: one response, handed over at its end."""
    bench = await begin({"rules": [{"count": "conversation", "steps": driver.goal("First part.", "All done.")}]})
    assert (await bench.say("Set yourself a goal and reach it.")).how == "yielded"
    assert bench.messages == ["First part.", "All done."]
    assert [type(event) for event in bench.passed].count(Yield) == 1
    assert bench.accepted == len(bench.turns) == 4
