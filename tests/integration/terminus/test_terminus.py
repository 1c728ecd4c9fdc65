"""What Terminus-2 does behind the adapter and the gateway, case by case."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from realcli_session.agents import terminus_launch, terminus_tmux
from realcli_session.agents.port import (
    AgentUnresponsive,
    Error,
    Exit,
    McpServer,
    NotWorking,
    OwnSetup,
    Question,
    Text,
    ToolCall,
    ToolResult,
    Withdrawn,
    Yield,
)
from realcli_session.agents.terminus_wording import load
from realcli_session.runner.errors import SpawnFailed
from tests.integration.terminus.conftest import DONE, KEY, StartStand, Step, reply

WaitFor = Callable[..., Awaitable[Any]]


def ask(question: str, **more: Any) -> Step:
    return reply(message_to_user=question, **more)


def tool_kinds(run: Any) -> list[str]:
    return [event.kind for event in run.events if event.kind not in ("agent_start", "agent_exit")]


async def test_a_command_and_the_claim(stand: StartStand) -> None:
    run = await stand(reply("echo port=80 > made.conf; cat made.conf; env\n"), DONE, markers={"made.conf": ["port=80"]})
    await run.adapter.send("Make the file.")
    assert await run.next(Yield) == Yield("yielded", "")
    assert [type(event) for event in run.passed[:4]] == [Text, Text, ToolCall, ToolResult]
    assert tool_kinds(run) == [
        *("model_request", "model_reply", "agent_message", "agent_message", "tool_call"),
        *("model_request", "file_read", "model_reply", "tool_result", "agent_message", "agent_message"),
        *("model_request", "model_reply", "agent_message", "agent_message"),  # the screen shows nothing new
    ]
    assert [(e.turn, e.data["field"]) for e in run.events if e.kind == "agent_message"][:3] == [
        (1, "analysis"),
        (1, "plan"),
        (2, "analysis"),
    ]
    (call,) = run.of("tool_call")
    assert call == {
        "callId": "call_1",
        "name": "terminal",
        "input": {"command": "echo port=80 > made.conf; cat made.conf; env\n", "durations": [0.3]},
    }
    results = [(event.turn, event.data["callId"]) for event in run.events if event.kind == "tool_result"]
    assert results == [(2, "call_1")]
    seen = run.of("tool_result")[0]["text"]
    assert seen.startswith("New Terminal Output:")
    assert f"HOME={run.spec.home}" in seen
    assert "TASK_VARIABLE=kept" in seen
    assert not any(word in seen for word in ("LOCPATH", "TERMINFO", KEY, run.spec.token))
    assert (run.work / "made.conf").read_text() == "port=80\n"
    assert {headers["authorization"] for headers in run.provider.headers} == {f"Bearer {KEY}"}
    assert run.gateway.turns == 3
    assert "Current Terminal Screen:" in run.provider.prompt(1)
    assert run.provider.prompt(3).startswith("Current terminal state:\n")
    assert os.listdir(run.spec.home) == []

    status = await run.adapter.stop()
    assert status is not None
    assert (status.code, status.signal) == (0, None)
    assert await run.next(Exit) == Exit(0, None)
    (started,) = run.of("agent_start")
    assert (started["program"], started["argv"][-1], len(started["binarySha256"])) == ("terminus-2", "-D", 64)


@pytest.mark.slow
async def test_what_comes_while_it_waits_is_a_result_too(stand: StartStand) -> None:
    slow = reply("until [ -e go ]; do sleep 0.05; done; echo came\n", wait=0.3)
    run = await stand(slow, reply("", wait=0.3), reply("", wait=1.0), DONE)
    await run.adapter.send("Wait.")
    await run.next(ToolResult)
    await run.provider.arrived.get()
    (run.work / "go").touch()
    await run.next(Yield)
    results = [(event.data["callId"], "\ncame" in event.data["text"]) for event in run.events if event.kind == "tool_result"]
    assert results == [("call_1", False), ("call_1", True)]
    assert len(run.of("tool_call")) == 1


async def test_the_claim_has_to_be_made_twice_in_a_row(stand: StartStand) -> None:
    run = await stand(DONE, reply("echo more\n"), DONE, DONE)
    await run.adapter.send("Work.")
    await run.next(Yield)
    assert len(run.provider.bodies) == 4


async def test_what_cannot_be_read_is_told_and_costs_a_turn(stand: StartStand) -> None:
    words = load()
    strange = {"content": 'Sure! {"analysis": "a", "plan": "p", "commands": [{"keystrokes": "echo typed\\n"}]}'}
    run = await stand({"content": "I am done."}, strange, DONE, DONE)
    await run.adapter.send("Work.")
    await run.next(Yield)
    assert words.say("no_json") in run.provider.prompt(2)
    assert words.say("text_before") in run.provider.prompt(3)
    assert words.say("duration_missing", 1) in run.provider.prompt(3)
    assert "\ntyped" in run.provider.prompt(3)
    assert run.provider.bodies[1]["messages"][1] == {"role": "assistant", "content": "I am done."}
    assert not any(entry["text"] == "I am done." for entry in run.of("agent_message"))


async def test_exec_has_no_channel(stand: StartStand) -> None:
    run = await stand(ask("Which colour?"), DONE)
    await run.adapter.send("Work.")
    assert (await run.next(Yield)).how == "yielded"
    assert not any(isinstance(event, Question) for event in run.passed)
    assert "Which colour?" not in json.dumps(run.of("agent_message"))
    assert "message_to_user" not in run.provider.prompt(1)
    assert len(run.provider.bodies) == 3


async def test_a_question_waits_and_a_report_does_not(stand: StartStand) -> None:
    run = await stand(
        reply("echo one\n", message_to_user="I begin."),
        ask("Which colour do you want?"),
        ask("It is blue.", done=True),
        DONE,
        mode="COLLAB",
    )
    await run.adapter.send("Paint it.")
    question = await run.next(Question)
    assert (question.text, len(run.provider.bodies)) == ("Which colour do you want?", 2)
    assert [entry["text"] for entry in run.of("agent_message") if entry["field"] == "message_to_user"] == ["I begin."]
    with pytest.raises(LookupError):
        await run.adapter.answer("q9", "allow", "Blue.")
    with pytest.raises(NotWorking):
        await run.adapter.send("Hurry.", mid_turn=True)
    with pytest.raises(NotWorking):
        await run.adapter.interrupt()
    await run.adapter.answer(question.request_id, "allow", "Blue.")
    assert await run.next(Yield) == Yield("yielded")
    assert run.provider.prompt(3).startswith("<user_message>\nBlue.\n</user_message>\n\nNew Terminal Output:")
    assert [entry["text"] for entry in run.of("agent_message") if entry["field"] == "message_to_user"] == [
        "I begin.",
        "It is blue.",
    ]
    await run.adapter.send("Thanks. Now the door.")
    await run.next(Yield)
    assert run.provider.prompt(5).startswith("<user_message>\nThanks. Now the door.\n</user_message>")
    assert [message["role"] for message in run.provider.bodies[4]["messages"]] == ["user", "assistant"] * 4 + ["user"]
    assert Withdrawn(question.request_id) not in run.passed


@pytest.mark.slow
async def test_another_message_withdraws_a_question(stand: StartStand) -> None:
    run = await stand(ask("Which colour?"), DONE, mode="COLLAB")
    await run.adapter.send("Paint it.")
    question = await run.next(Question)
    await run.adapter.send("Leave it.")
    assert await run.next(Withdrawn) == Withdrawn(question.request_id)
    with pytest.raises(LookupError):
        await run.adapter.answer(question.request_id, "allow", "Blue.")
    await run.next(Yield)


async def test_message_while_a_command_runs_joins_the_response(stand: StartStand) -> None:
    run = await stand(reply("echo wait\n", wait=0.5), DONE, mode="COLLAB")
    await run.adapter.send("Paint it.")
    await run.next(ToolCall)
    await run.adapter.send("Use the blue one.", mid_turn=True)
    assert (await run.next(Yield)).how == "yielded"
    assert len(run.provider.bodies) == 3
    assert run.provider.prompt(2).startswith("<user_message>\nUse the blue one.\n</user_message>\n\nNew Terminal Output:")


@pytest.mark.parametrize("last", [DONE, ask("Shall I?")], ids=["claim", "question"])
async def test_message_during_the_last_answer_prolongs_the_response(stand: StartStand, last: Step) -> None:
    hold = asyncio.Event()
    run = await stand(DONE, {**last, "hold": hold}, DONE, DONE, mode="COLLAB")
    await run.adapter.send("Paint it.")
    for _ in range(2):
        await run.provider.arrived.get()
    await run.adapter.send("And the door.", mid_turn=True)
    hold.set()
    assert await run.next(Yield) == Yield("yielded")
    assert not any(isinstance(event, Question) for event in run.passed)
    assert run.provider.prompt(3).startswith("<user_message>\nAnd the door.\n</user_message>")
    assert len(run.provider.bodies) == 4


LOOPS = {
    "child": 'python3 -c \'import time\nwhile True:\n  print(0, file=open("ticks", "a")); time.sleep(0.1)\'\n',
    "deaf": "sh -c 'trap \"\" INT TERM HUP; while :; do date >> ticks; sleep 0.1; done'\n",
    "shell": "while true; do date >> ticks; sleep 0.1; done\n",
    "deaf shell": "trap '' INT; while true; do date >> ticks; sleep 0.1; done\n",
    "busy deaf shell": "trap '' INT; while true; do echo >> ticks; done\n",
    "deaf grandchild": "(trap '' INT; setsid -w sh -c 'while :; do date >> ticks; sleep 0.1; done')\n",
}
QUICK = ("deaf", "busy deaf shell")


@pytest.mark.parametrize(
    "loop", [pytest.param(loop, id=name, marks=() if name in QUICK else pytest.mark.slow) for name, loop in LOOPS.items()]
)
async def test_interrupt_stops_the_command_and_the_next_message_works(stand: StartStand, wait_for: WaitFor, loop: str) -> None:
    run = await stand(reply(loop, wait=60), reply("echo still $((40 + 2))\n"), DONE, mode="COLLAB")
    await run.adapter.send("Run it.")
    await run.next(ToolCall)
    ticks = run.work / "ticks"
    await wait_for(lambda: ticks.exists() and ticks.stat().st_size > 0, "the command runs")
    await run.adapter.interrupt()
    stopped = time.time()
    assert (await run.next(Yield)).how == "interrupted"
    replaced = any(isinstance(event, Error) for event in run.passed)
    assert replaced == (loop in (LOOPS["deaf shell"], LOOPS["busy deaf shell"]))
    await run.adapter.send("Go on.")
    assert (await run.next(Yield)).how == "yielded"
    assert "still 42" in run.provider.prompt(3)
    assert ticks.stat().st_mtime <= stopped
    assert not any("ticks" in command for command in await run.commands())


async def test_interrupt_of_a_request_loses_no_message(stand: StartStand) -> None:
    hold = asyncio.Event()
    run = await stand({**DONE, "hold": hold}, DONE, mode="COLLAB")
    await run.adapter.send("Paint it.")
    await run.provider.arrived.get()
    await run.adapter.send("Blue.", mid_turn=True)
    await run.adapter.interrupt()
    assert (await run.next(Yield)).how == "interrupted"
    hold.set()
    await run.adapter.send("Go on.")
    assert (await run.next(Yield)).how == "yielded"
    assert "Paint it.\n\nBlue.\n\nGo on." in run.provider.prompt(2)
    assert run.of("model_reply")[0]["aborted"] == "agent"
    assert run.gateway.turns == 3


async def test_turn_limit(stand: StartStand) -> None:
    run = await stand(reply("true\n"), turn_limit=2)
    await run.adapter.send("Work for ever.")
    failed = await run.next(Yield)
    assert (failed.how, "call limit reached" in failed.detail) == ("failed", True)
    assert run.gateway.turn_limit_hit.is_set()
    assert [request["refused"] for request in run.of("model_request") if request.get("refused")] == ["turn_limit"]
    assert len(run.provider.bodies) == 2


async def test_provider_error_ends_the_response_once_the_gateway_gave_up(stand: StartStand) -> None:
    run = await stand({"status": 500, "message": "scripted"})
    await run.adapter.send("Work.")
    assert (await run.next(Yield)).how == "failed"
    assert (run.gateway.provider_failed.is_set(), len(run.provider.bodies)) == (True, 2)


async def test_refused_request_ends_the_response(stand: StartStand) -> None:
    run = await stand({"status": 400, "message": "scripted"}, DONE)
    await run.adapter.send("Work.")
    failed = await run.next(Yield)
    assert (failed.how, "scripted" in failed.detail) == ("failed", True)
    await run.adapter.send("Try again.")
    assert (await run.next(Yield)).how == "yielded"


async def test_leaving_the_shell_is_a_crash(stand: StartStand) -> None:
    run = await stand(reply("exit\n"))
    await run.adapter.send("Work.")
    assert await run.next(Exit) == Exit(0, None)
    (ended,) = run.of("agent_exit")
    assert "terminal" in ended["stderrTail"]
    assert not any(isinstance(event, Yield) for event in run.passed)


async def test_killing_the_terminal_is_a_crash(stand: StartStand) -> None:
    run = await stand(reply("kill -9 $PPID\n"))
    await run.adapter.send("Work.")
    assert await run.next(Exit) == Exit(None, signal.SIGKILL)
    assert run.of("agent_exit")[0]["signal"] == signal.SIGKILL
    with pytest.raises(AgentUnresponsive):
        await run.adapter.interrupt()
    assert (await run.adapter.stop()) is not None


async def test_a_terminal_that_hangs_is_a_crash(stand: StartStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminus_tmux, "CLIENT_SECONDS", 1.0)
    run = await stand(reply("kill -STOP $PPID\n"))
    await run.adapter.send("Work.")
    assert await run.next(Exit) == Exit(None, signal.SIGKILL)
    (error,) = [event for event in run.passed if isinstance(event, Error)]
    assert "does not answer" in error.message


async def test_stop_while_it_works(stand: StartStand) -> None:
    run = await stand(reply("sleep 1000\n", wait=60))
    await run.adapter.send("Work.")
    await run.next(ToolCall)
    assert (await run.adapter.stop()) is not None
    await run.next(Exit)
    assert not any(isinstance(event, Yield) for event in run.passed)


async def test_its_own_shell_is_gone_when_it_has_stopped(stand: StartStand) -> None:
    """Else quiesce would sometimes find it: a shell takes its time to end with its terminal."""
    run = await stand(reply("trap exit HUP; (trap '' HUP; sleep 2)\n"), DONE, DONE)
    await run.adapter.send("Work.")
    await run.next(Yield)
    assert any("bash" in line for line in await run.commands())
    await run.adapter.stop()
    assert not [line for line in await run.commands() if "bash" in line or "tmux" in line]


async def test_rough_output(stand: StartStand) -> None:
    run = await stand(
        reply(r"printf 'a\xff\xfeb \xc3\xa9 \xe2\x82\xac \033[31mred\033[0m\n'" + "\n"),
        reply("head -c 5000000 /dev/zero | tr '\\0' x | fold -w 100; echo end-of-it\n", wait=3),
        reply("(sleep 300; echo late) &\n"),
        DONE,
    )
    await run.adapter.send("Print.")
    assert (await run.next(Yield)).how == "yielded"
    assert "é € red" in run.provider.prompt(2)
    assert "\ufffd" in run.provider.prompt(2) or "b é" in run.provider.prompt(2)
    assert len(run.provider.prompt(3).encode()) < 11_000
    assert "end-of-it" in run.provider.prompt(3)
    assert run.gateway.turns == 5


@pytest.mark.slow
async def test_keys_of_every_kind(stand: StartStand) -> None:
    long = "".join(f"line {n} 'q' ä\n" for n in range(2000))
    run = await stand(
        reply(f"cat > long.txt <<'END'\n{long}END\n", "cat > never.txt\n", "C-c", "", "printf '\\101' > 'a;b'\n", wait=0.5),
        reply("cat > raw.bin\n", "x\0y;", "\x04\x04", wait=0.3),
        DONE,
    )
    await run.adapter.send("Type.")
    assert (await run.next(Yield)).how == "yielded"
    assert (run.work / "long.txt").read_text() == long
    assert (run.work / "a;b").read_text() == "A"
    assert (run.work / "never.txt").read_text() == ""
    assert (run.work / "raw.bin").read_bytes() == b"x\0y;"


@pytest.mark.parametrize("context", [None, 128_000])
async def test_a_full_context_is_handed_over(stand: StartStand, context: int | None) -> None:
    words = load()
    first = {**reply("echo one\n"), "tokens": ((context or 1_000_000) - 10_000, 3_000)}
    answers_ = ({"content": text} for text in ("SUMMARY", "QUESTIONS", "ANSWERS"))
    run = await stand(first, *answers_, DONE, mode="COLLAB", context_tokens=context)
    await run.adapter.send("Opener.")
    await run.next(ToolCall)
    await run.adapter.send("Second wish.", mid_turn=True)
    assert (await run.next(Yield)).how == "yielded"
    summary, question, answers, again, _ = run.provider.bodies[1:]
    asked = words.say("summary", "Opener.\n\nSecond wish.")
    assert [m["content"] for m in summary["messages"]][-1] == asked
    assert len(summary["messages"]) == 3
    assert len(question["messages"]) == 1
    assert "SUMMARY" in question["messages"][0]["content"]
    assert "echo one" in question["messages"][0]["content"]
    assert [m["content"] for m in answers["messages"]][2:] == [asked, "SUMMARY", words.say("answers") + "QUESTIONS"]
    kept = again["messages"]
    assert [m["role"] for m in kept] == ["user", "user", "assistant", "user"]
    assert kept[0] == run.provider.bodies[0]["messages"][0]
    assert kept[1:3] == [question["messages"][0], {"role": "assistant", "content": "QUESTIONS"}]
    assert kept[3]["content"].startswith(
        "<user_message>\nSecond wish.\n</user_message>\n\n" + words.say("handoff_answers") + "ANSWERS"
    )
    assert run.gateway.turns == 6


TOO_LONG = {"status": 400, "message": "This model's maximum context length is 10 tokens", "code": "context_length_exceeded"}


async def test_a_refused_length_is_handed_over(stand: StartStand) -> None:
    words = load()
    run = await stand(reply("echo one\n"), TOO_LONG, {"content": "S"}, {"content": "Q"}, {"content": "A"}, DONE)
    await run.adapter.send("Opener.")
    assert (await run.next(Yield)).how == "yielded"
    assert run.provider.prompt(3) == words.say("summary", "Opener.")
    assert run.provider.prompt(6).startswith(words.say("handoff_answers") + "A")


@pytest.mark.slow
async def test_a_summary_too_long_as_well(stand: StartStand) -> None:
    words = load()
    run = await stand(reply("echo one\n"), TOO_LONG, TOO_LONG, {"content": "SHORT"}, DONE)
    await run.adapter.send("Opener.")
    assert (await run.next(Yield)).how == "yielded"
    assert run.provider.prompt(5) == words.say("short_handoff", "Opener.", "SHORT")


@pytest.mark.slow
async def test_nothing_fits(stand: StartStand) -> None:
    words = load()
    run = await stand(reply("echo one\n"), TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, DONE, DONE)
    await run.adapter.send("Opener.")
    assert (await run.next(Yield)).how == "yielded"
    assert run.provider.prompt(5).startswith("Opener.\n\nCurrent state: ")
    assert words.say("no_json") in run.provider.prompt(6)  # its own stand-in for an answer cannot be read


@pytest.mark.slow
async def test_a_cut_answer_is_asked_for_again(stand: StartStand) -> None:
    words = load()
    limit = words.say("output_limit")
    run = await stand({**reply("echo never\n"), "finish": "length"}, DONE)
    await run.adapter.send("Work.")
    assert (await run.next(Yield)).how == "yielded"
    assert run.provider.prompt(2) == words.say("truncated", limit, limit, limit)
    assert [m["role"] for m in run.provider.bodies[1]["messages"]] == ["user", "assistant", "user"]
    assert run.of("tool_call") == []


async def test_a_teams_servers_are_named(stand: StartStand) -> None:
    setup = OwnSetup("sha256:" + "0" * 64, mcp_servers=(McpServer("notes", ("notes-server", "--stdio"), {"TOKEN": "secret"}),))
    run = await stand(DONE, setup=setup)
    await run.adapter.send("Work.")
    await run.next(Yield)
    assert "Work." + load().say("mcp_heading") + load().say(
        "mcp_stdio", "notes", "notes-server", "--stdio"
    ) in run.provider.prompt(1)
    assert run.of("agent_setup")[0]["mcpServers"] == ["notes"]
    assert run.events[0].kind == "agent_setup"


@pytest.mark.slow
async def test_an_image_without_bash(stand: StartStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminus_launch, "SHELLS", (("no-such-bash", "--login"), ("sh", "-l")))
    run = await stand(reply("echo $0 $SHELL\n"), DONE)
    await run.adapter.send("Work.")
    await run.next(Yield)
    assert "sh /bin/sh" in run.provider.prompt(2)


async def test_an_image_without_a_shell_is_refused(stand: StartStand) -> None:
    with pytest.raises(SpawnFailed, match="neither bash nor sh"):
        await stand(environ={"PATH": "/nowhere"})


async def test_without_its_words_it_is_refused(stand: StartStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REALCLI_TERMINUS_TEMPLATES", "/nowhere")
    with pytest.raises(SpawnFailed, match=r"terminus_templates\.py"):
        await stand()


async def test_permissions_ask_is_refused(stand: StartStand) -> None:
    with pytest.raises(SpawnFailed, match="Bypass"):
        await stand(permissions="Ask")
