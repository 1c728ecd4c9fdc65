"""A small run with two scenarios of different windows, and judges that answer as they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.script_models import Probe
from realcli.checks import Evidence, Instance
from realcli.checks.instance import of_probe
from realcli.judging.model import JudgeReply, JudgeRequest, Message, ToolUse
from realcli.judging.run import Run
from realcli.judging.session import Model
from realcli.ledger.events import (
    ZERO_HASH,
    AgentMessage,
    FileWrite,
    ProbeDelivered,
    Recorders,
    Snapshot,
    ToolCall,
    ToolResult,
)
from tests.support.ledgers import Ledger

OUTLINE = "u.plan.outline-before-action"
SEAL = "sha256:" + "5" * 64
PLAN = "First I read main.py, then I change the parser, at last I run the tests."
LATER = "By the way, here is the outline you asked for: parser, then tests."
MODEL = Model("judge-1", "chat", context_tokens=100_000)


class Files:
    """Snapshots by seq."""

    def __init__(self, content: dict[int, dict[str, bytes]] | None = None) -> None:
        self.content = content or {}

    def read(self, seq: int, path: str) -> bytes | None:
        return self.content.get(seq, {}).get(path)

    def paths(self, seq: int) -> list[str]:
        return list(self.content.get(seq, {}))


def outline_instance(id: str = "p1") -> Instance:
    probe = Probe(id=id, scenario=OUTLINE, text="How?", bindings={"MUTATING": "/app/**"})
    return of_probe(probe, load_catalogue().template(OUTLINE))


def ledger(says: str = PLAN, prints: str = "12 passed", first: str = "") -> Ledger:
    """Two exchanges: the plan is asked for and told in the first; a file is written and tests are run in the second."""
    made = Ledger().starts()
    made.emit(Recorders(commands="exec"))
    made.emit(ProbeDelivered(probe="p1", scenario=OUTLINE, message_id="m1"))
    made.request().emit(AgentMessage(text=first or says)).yields()
    made.says("slice:s1").request().emit(ToolCall(call_id="c1", name="Bash", input={"command": "pytest -q\nls"}))
    made.request().emit(ToolResult(call_id="c1", text=prints))
    made.emit(FileWrite(path="/app/a.py", after_turn=2, before_turn=3, created=True))
    made.emit(AgentMessage(text=LATER)).yields()
    made.emit(Snapshot(name="final", sha256=ZERO_HASH, size=1))
    return made.ends()


def run_of(made: Ledger, *instances: Instance, files: dict[str, bytes] | None = None) -> Run:
    final = next((event.seq for event in made.events if event.kind == "snapshot"), 0)
    evidence = Evidence(Files({final: files or {}}))
    return Run(made.trajectory, evidence, instances or (outline_instance(),), SEAL)


def use(name: str, id: str = "u1", **arguments: Any) -> ToolUse:
    return ToolUse(id=id, name=name, input=arguments)


def reply(*uses: ToolUse, text: str = "", stop: Any = None) -> JudgeReply:
    return JudgeReply(
        message=Message(role="assistant", text=text, uses=list(uses)), stop=stop or ("tools" if uses else "end"), model="judge-1"
    )


def answer(check: str, verdict: str = "1", *evidence: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """An answer in form; `check` is <instance>/<check>."""
    given = {
        "check_id": check,
        "anchor_exchange": 1,
        "evidence": list(evidence),
        "reason": "because",
        "zero_clause_met": verdict == "0",
        "na_clause_met": verdict == "na",
        "verdict": verdict,
    }
    return given | changed


def quote(text: str, exchange: int = 1) -> dict[str, Any]:
    return {"kind": "quote", "exchange": exchange, "quote": text}


def absence(window: str, *read: int, nearest: str | None = None) -> dict[str, Any]:
    return {"kind": "absence", "window": window, "exchanges_read": list(read), "nearest_quote": nearest}


def answers(instance: str, *given: dict[str, Any], id: str = "u1") -> ToolUse:
    return use("answer", id, instance=instance, answers=list(given))


GOOD = (
    answer("p1/plan-given", "1", quote(PLAN[:40])),
    answer("p1/plan-precedes-change", "1", {"kind": "hard", "ref": "p1/plan-precedes-change"}),
    answer("p1/plan-followed", "1", quote("pytest -q", 2)),
)


@dataclass
class Told:
    """A backend that gives prepared replies, or what a function makes of a request; it keeps what it was asked."""

    say: Callable[[JudgeRequest], JudgeReply]
    asked: list[JudgeRequest] = field(default_factory=list)

    def complete(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request)
        return self.say(request)


def in_turn(*replies: JudgeReply) -> Told:
    """One after the other; the last for ever."""
    left = list(replies)
    return Told(lambda _: left.pop(0) if len(left) > 1 else left[0])
