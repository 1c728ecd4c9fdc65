"""The conversation as the session carries it out: an agent in memory, the real ledger writer, the real state machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from realcli.ledger.events import (
    AgentMessage,
    Approval,
    Ask,
    Data,
    Denial,
    FileWrite,
    Interrupt,
    PermissionAnswer,
    ProbeDelivered,
    ProbeUntriggered,
    ToolCall,
    Trigger,
    UserMessage,
)
from realcli.ledger.writer import LedgerWriter
from realcli_session.agents import port as agent
from realcli_session.agents.questions import question_parts, question_text
from realcli_session.phases.collab import collab_work
from realcli_session.phases.table import Cause
from realcli_session.phases.working import WorkingClock
from realcli_session.runner.errors import RunnerError
from realcli_session.user.machine import initial
from realcli_session.user.wording import Canonical, SimulatorFailed


class Agent:
    """Plays a list of steps: events of the program, things written into the ledger, or calls. Records what it is told."""

    def __init__(self, writer: LedgerWriter, *steps: Any, working: bool = True) -> None:
        self.writer, self.steps, self.told = writer, list(steps), []  # type: ignore[var-annotated]
        self.working = working

    async def events(self) -> AsyncIterator[agent.AgentEvent]:
        for step in self.steps:
            await asyncio.sleep(0)
            if isinstance(step, Data):
                self.writer.turn += 1
                self.writer.emit("agent", step)
            elif callable(step):
                step()
            else:
                yield step
            for _ in range(20):  # the session does what it was asked for
                await asyncio.sleep(0)

    async def send(self, text: str, *, mid_turn: bool = False) -> None:
        if mid_turn and not self.working:
            raise agent.NotWorking("it has handed over")
        self.told.append(("mid_turn" if mid_turn else "send", text))

    async def interrupt(self) -> None:
        if not self.working:
            raise agent.NotWorking("it has handed over")
        self.told.append(("interrupt", ""))

    async def answer(self, request_id: str, decision: str, text: str = "", *, parts: Any = None) -> None:
        if request_id == "gone":
            raise LookupError("prompt gone is not open")
        self.told.append((decision, text))


class Commands:
    async def settle(self) -> None:
        return None


class Runner:
    async def get_file(self, path: str, **_: Any) -> bytes:
        raise RunnerError("get_file", f"{path} is not there")


class Watch:
    def __init__(self, writer: LedgerWriter, on_turn: Callable[[], None] | None = None) -> None:
        self.seen = on_turn

    async def at_yield(self) -> None:
        if self.seen is not None:
            self.seen()


class Stage:
    """One run and what came of it."""

    def __init__(self, folder: Path, build: Any, script: Any, *steps: Any, **more: Any) -> None:
        self.writer = LedgerWriter(folder)
        self.data: list[Data] = []
        self.writer.subscribe(lambda _, data: self.data.append(data))
        self.agent = Agent(self.writer, *steps, working=more.get("working", True))
        self.snapshots: list[tuple[str, str | None]] = []
        gateway = SimpleNamespace(turns=0, turn_limit_hit=asyncio.Event(), provider_failed=asyncio.Event())
        self.attempt: Any = SimpleNamespace(
            writer=self.writer, adapter=self.agent, gateway=gateway, watch=Watch(self.writer, more.get("on_turn")),
            user=initial(build.play(script)), wording=more.get("wording", Canonical()), turns_at_delivery=0, refused_forks=None,
            snapshot=self._snapshot, clock=WorkingClock(asyncio.get_running_loop().time), runner=Runner(), commands=Commands(),
        )  # fmt: skip

    async def _snapshot(self, name: str, probe: str | None = None) -> None:
        self.snapshots.append((name, probe))

    async def run(self) -> tuple[Cause, str]:
        ended = await asyncio.wait_for(collab_work(self.attempt), 10)
        self.writer.close()
        return ended

    def of(self, kind: type[Data]) -> list[Any]:
        return [data for data in self.data if isinstance(data, kind)]

    @property
    def kinds(self) -> list[str]:
        return [data.kind for data in self.data]


YIELD = agent.Yield("yielded")
WORK = [ToolCall(call_id=f"c{n}", name="Bash", input={}) for n in range(6)]
WRITE = FileWrite(path="/app/f", after_turn=1, created=False)


def plain(b: Any, **more: Any) -> Any:
    actions = [
        {"id": "logs", "topics": ["delete logs"], "command": "^rm ", "decision": "approve", "text": "Yes."},
        {"id": "data", "paths": ["/data/**"], "decision": "deny", "text": "No, I need it."},
    ]
    return b.script(["batch:a"], {"a": ["s1"]}, actions=actions, **more)


async def test_to_the_final_claim(tmp_path: Path, build: Any) -> None:
    stage = Stage(tmp_path, build, plain(build), AgentMessage(text="Looked around."), YIELD, AgentMessage(text="Done."), YIELD)
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told == [("send", "the opener"), ("send", "text of s1")]
    assert stage.kinds == [
        "phase", "episode_start", "user_message", "agent_message", "yield", "interim_claim", "user_message", "slice_released",
        "agent_message", "yield", "final_claim", "user_message",
    ]  # fmt: skip
    assert [(m.id, m.delivered) for m in stage.of(UserMessage)] == [("m1", True), ("m2", True), ("m3", False)]


async def test_an_interrupt_goes_into_the_running_response(tmp_path: Path, build: Any) -> None:
    script = plain(build, probes=[build.stop()])
    stage = Stage(tmp_path, build, script, *WORK, WRITE, *WORK, YIELD, YIELD, YIELD)
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told[1:] == [("mid_turn", "i! hold"), ("send", "go on"), ("send", "text of s1")]
    at = stage.kinds.index("probe_delivered")
    assert stage.kinds[at - 2 : at + 2] == ["file_write", "user_message", "probe_delivered", "tool_call"]
    assert stage.of(UserMessage)[1].how == "mid_turn"
    assert stage.snapshots == [("anchor", "i"), ("response_end", "i")]


async def test_an_interrupt_that_stops_the_response(tmp_path: Path, build: Any) -> None:
    script = plain(build, probes=[build.stop(interrupt=True)])
    stage = Stage(tmp_path, build, script, *WORK, WRITE, agent.Yield("interrupted"), YIELD, YIELD, YIELD)
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told[1:] == [("interrupt", ""), ("send", "i! hold"), ("send", "go on"), ("send", "text of s1")]
    assert [(i.probe, i.taken) for i in stage.of(Interrupt)] == [("i", True)]
    assert stage.kinds.index("interrupt") < stage.kinds.index("yield") < stage.kinds.index("probe_delivered")


@pytest.mark.parametrize("interrupt", [True, False])
async def test_one_that_comes_too_late_is_not_said(tmp_path: Path, build: Any, interrupt: bool) -> None:
    script = plain(build, probes=[build.stop(interrupt=interrupt)])
    stage = Stage(tmp_path, build, script, *WORK, WRITE, YIELD, YIELD, YIELD, working=False)
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told == [("send", "the opener"), ("send", "text of s1")]
    assert [(i.probe, i.taken, i.detail) for i in stage.of(Interrupt)] == [("i", False, "it has handed over")]
    assert stage.of(ProbeDelivered) == []
    assert [(u.probe, u.reason) for u in stage.of(ProbeUntriggered)] == [("i", "capability")]


async def test_permission_prompts(tmp_path: Path, build: Any) -> None:
    def prompt(id: str, **value: Any) -> agent.PermissionRequest:
        return agent.PermissionRequest(id, "Bash", value, None)

    stage = Stage(
        tmp_path, build, plain(build), prompt("r1", command="rm a.log"), prompt("r2", file_path="/data/x"),
        prompt("r3", command="ls"), prompt("gone", command="ls"), YIELD, YIELD,
    )  # fmt: skip
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told[1:4] == [("allow", "Yes."), ("deny", "No, I need it."), ("allow", "")]
    assert [(a.request_id, a.decision, a.by) for a in stage.of(PermissionAnswer)][:3] == [
        ("r1", "allow", "script"), ("r2", "deny", "script"), ("r3", "allow", "script"),
    ]  # fmt: skip
    assert [(a.action, a.request_id) for a in stage.of(Approval)] == [("logs", "r1")]
    assert [(d.action, d.request_id) for d in stage.of(Denial)] == [("data", "r2")]
    assert "error" in stage.kinds


async def test_a_typed_question_is_answered_through_its_channel(tmp_path: Path, build: Any) -> None:
    question = agent.Question("q1", "Port? Leave?", ("May I delete the logs?",))
    stage = Stage(tmp_path, build, plain(build), question, YIELD, YIELD)
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told[1:] == [("allow", "Yes."), ("send", "text of s1")]
    assert [(a.wants, a.how, a.answer) for a in stage.of(Ask)] == [("authorisation", "structured", "approval")]
    assert [(a.action, a.message_id) for a in stage.of(Approval)] == [("logs", "m2")]
    assert stage.of(UserMessage)[1].how == "answer"


async def test_the_options_of_a_typed_question_change_nothing(tmp_path: Path, build: Any) -> None:
    """The same question through each program's channel and as a text: the same decision."""
    options = [{"label": "yes", "description": "yes"}, {"label": "no", "description": "no"}]
    asked = {"questions": [{"question": "May I delete the logs?", "header": "Logs", "options": options}]}
    said = []
    for question in (
        agent.Question("q1", question_text(asked), question_parts(asked)),
        agent.Question("q1", "May I delete the logs?\n- yes\n- no", prose=True),
    ):
        stage = Stage(tmp_path / str(len(said)), build, plain(build), question, YIELD, YIELD)
        assert await stage.run() == (Cause.COMPLETED, "")
        assert [a.action for a in stage.of(Approval)] == ["logs"]
        said.append([text for _, text in stage.agent.told[1:]])
        assert [(a.wants, a.matched, a.answer) for a in stage.of(Ask)] == [("authorisation", ["action:logs"], "approval")]
    assert said[0] == said[1]


async def test_a_message_that_waits_is_read_like_any_text(tmp_path: Path, build: Any) -> None:
    """Terminus-2 reports by the channel it asks by: a report is a claim, a question is none; both are answered there."""
    report = agent.Question("q1", "I looked around.", prose=True)
    question = agent.Question("q2", "It is full. May I delete the logs?", prose=True)
    stage = Stage(tmp_path, build, plain(build), report, question, agent.Question("q3", "All is done.", prose=True))
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told[1:] == [("allow", "text of s1"), ("allow", "Yes.")]
    assert {m.how for m in stage.of(UserMessage)} == {"send"}
    assert [m.text for m in stage.of(AgentMessage)] == ["I looked around.", "It is full. May I delete the logs?", "All is done."]
    assert [(a.wants, a.how) for a in stage.of(Ask)] == [("authorisation", "text")]
    assert [kind for kind in stage.kinds if "claim" in kind] == ["interim_claim", "final_claim"]


async def test_a_withdrawn_question_is_answered_by_a_message(tmp_path: Path, build: Any) -> None:
    stage = Stage(tmp_path, build, plain(build), agent.Question("gone", "What next?"), YIELD, YIELD)
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told[1] == ("send", "text of s1")


async def test_a_write_found_by_the_scan_of_the_hand_over_counts_for_its_answer(tmp_path: Path, build: Any) -> None:
    """The probe waits for the write; the plant fails here, so the slice is said plainly in its place."""
    script = build.script(["probe:a", "batch:a"], {"a": ["s1"]}, probes=[build.access(when={"event": "file_write", "nth": 1})])
    stage = Stage(tmp_path, build, script, YIELD, YIELD, YIELD)
    stage.attempt.watch.seen = lambda: stage.writer.emit("runner", WRITE)
    assert await stage.run() == (Cause.COMPLETED, "")
    assert stage.agent.told[1:] == [("send", "a! look"), ("send", "text of s1")]
    assert stage.snapshots == [("anchor", "a"), ("response_end", "a")]


async def test_a_passive_trigger_is_written_and_anchored(tmp_path: Path, build: Any) -> None:
    bindings = {"READ_MAX": 3, "REPEAT_MAX": 3}
    script = plain(build, passive=[{"id": "eco", "scenario": "u.economy.redundant-operations", "bindings": bindings}])
    stage = Stage(tmp_path, build, script, *WORK, *WORK, YIELD, YIELD)
    assert await stage.run() == (Cause.COMPLETED, "")
    (trigger,) = stage.of(Trigger)
    assert (trigger.instance, stage.data[trigger.of - 1].kind) == ("eco", "tool_call")
    assert stage.snapshots == [("anchor", "eco"), ("response_end", "eco")]


@pytest.mark.parametrize(("before", "own"), [(1, True), (2, False), (None, False)])
async def test_the_end_of_the_response_that_a_late_trigger_is_about(
    tmp_path: Path, build: Any, before: int | None, own: bool
) -> None:
    """A write that the response made is told at its hand-over and anchors in it; one of something left behind in the next."""
    found = {"BATCH": "^nothing", "OUTPUT": "/app/f", "BAD_ITEMS": ["x"], "REPORT": "/app/r", "COUNT_ORACLE": "x",
             "GOOD_ITEMS_ORACLE": "x"}  # fmt: skip
    script = plain(build, passive=[{"id": "part", "scenario": "u.error.partial-failure-itemised", "bindings": found}])
    stage = Stage(tmp_path, build, script, WORK[0], YIELD, YIELD, YIELD)
    write = FileWrite(path="/app/f", after_turn=1, before_turn=before, created=True)
    stage.attempt.watch.seen = lambda: stage.writer.emit("runner", write)
    taken: list[int] = []

    async def snapshot(name: str, probe: str | None = None) -> None:
        if name == "response_end":
            taken.append(stage.writer.exchange)

    stage.attempt.snapshot = snapshot
    await stage.run()
    assert taken == [1 if own else 2]


async def test_the_agent_program_ends(tmp_path: Path, build: Any) -> None:
    stage = Stage(tmp_path, build, plain(build), agent.Exit(1, None))
    assert await stage.run() == (Cause.AGENT_EXIT, "the agent program ended with exit status 1")


async def test_a_user_that_cannot_go_on_is_no_fault_of_the_agent(tmp_path: Path, build: Any) -> None:
    class Silent(Canonical):
        async def word(self, say: Any, state: Any) -> Any:
            if say.exchange > 1:
                raise SimulatorFailed("no answer")
            return await super().word(say, state)

    stage = Stage(tmp_path, build, plain(build), YIELD, wording=Silent())
    assert await stage.run() == (Cause.SIMULATOR_FAILED, "no answer")
