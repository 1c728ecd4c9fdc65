"""Small scripts over the real catalogue, and a run of them written as short lines."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.play import Play, ready
from realcli.benchmark.script_models import Script
from realcli_session.user.events import (
    AnswerPrompt,
    Asked,
    Close,
    Interim,
    PutPlant,
    Say,
    Stop,
    Triggered,
    Untriggered,
)
from realcli_session.user.rehearsal import Rehearsal

EDIT = {"path": "/app/f", "insert": ["a line of the user"]}


def a_slice(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "text": f"text of {id}", "requirements": ["1"], **more}


def a_script(order: list[str], batches: dict[str, list[str]], **more: Any) -> Script:
    """Slices that are named and not given are made up."""
    given = more.pop("slices", [])
    probes = more.get("probes", [])
    named = [name for ids in batches.values() for name in ids]
    named += [probe["slice"] for probe in probes if probe.get("slice")]
    named += [probe["closure"]["slice"] for probe in probes if probe.get("closure", {}).get("slice")]
    have = {part["id"] for part in given}
    return Script.model_validate(
        {
            "persona": "p", "opener": "the opener", "closer": "the closer", "order": order, "batches": batches,
            "slices": [*given, *(a_slice(name) for name in named if name not in have)], **more,
        }
    )  # fmt: skip


def concurrent(id: str = "p", slice: str = "s4", path: str = "/app/f") -> dict[str, Any]:
    """Waits for a write and puts a plant."""
    edit = {**EDIT, "path": path}
    bindings = {"FILE": path, "NEXT_SLICE": slice, "USER_EDIT": edit, "EDIT_MARKER": "a line of the user"}
    return {"id": id, "scenario": "or.verify.concurrent-edit", "text": f"{id}! text of {slice}", "slice": slice, "edit": edit,
            "bindings": bindings}  # fmt: skip


def quality(id: str = "q", **more: Any) -> dict[str, Any]:
    """exchange_at_least 4, fallback."""
    return {
        "id": id,
        "scenario": "tc.boundary.unverifiable-quality",
        "text": f"{id}! sure?",
        "bindings": {"QUALITY": "x"},
        **more,
    }


def access(id: str = "a", **more: Any) -> dict[str, Any]:
    """exchange_at_least 2, fallback."""
    return {"id": id, "scenario": "tc.boundary.unavailable-access", "text": f"{id}! look", "bindings": {"THING": "x"}, **more}


def stop(id: str = "i", **more: Any) -> dict[str, Any]:
    """mid_turn: six tool calls and a write."""
    return {"id": id, "scenario": "s.interrupt.mid-task-stop", "text": f"{id}! hold", "parts": ["go on"],
            "bindings": {"STATE": "/app/**"}, **more}  # fmt: skip


def policy(id: str = "r", **more: Any) -> dict[str, Any]:
    """exchange_at_least 3, fallback, withdrawn."""
    closure = {"text": f"{id}: never mind", "told": {"topics": ["policy"]}}
    bindings = {"POLICY_FILE": "/app/POLICY", "RULE": "no", "VIOLATION": "break-rule", "VIOLATION_PATH": "/app/x"}
    return {"id": id, "scenario": "s.conflict.user-vs-repo-policy", "text": f"{id}! break it", "closure": closure,
            "bindings": bindings, **more}  # fmt: skip


def early(id: str = "e", **more: Any) -> dict[str, Any]:
    """exchange_at_least 5 and four responses since s1, fallback."""
    names = ("CONSTRAINT", "TEMPT", "RULE_ORACLE", "TEMPT_ORACLE")
    bindings = dict.fromkeys(names, "x") | {"CONSTRAINT_SLICE": "s1"}
    return {"id": id, "scenario": "s.retain.early-constraint-late-artifact", "text": f"{id}! tempt", "bindings": bindings, **more}


def play_of(script: Script) -> Play:
    return ready(script, load_catalogue())


def brief(run: Rehearsal) -> list[str]:
    """What the user did, one line each."""
    out: list[str] = []
    for action in run.done:
        match action:
            case Say():
                verdicts = [f" {'+' if v.granted else '-'}{v.action}" for v in action.verdicts]
                how = "!" if action.mid_turn else ""
                out.append(f"{action.message_id}/{action.exchange}{how} {'+'.join(action.source_ids)}{''.join(verdicts)}")
            case Asked():
                near = f" near {'+'.join(action.near)}" if action.near else ""
                out.append(f"ask {action.wants} {action.answer} {'+'.join(action.matched)}".rstrip() + near)
            case PutPlant():
                out.append(f"plant {action.probe}")
            case Stop():
                out.append(f"stop {action.probe}")
            case Interim():
                out.append(f"interim {action.slices_pending} {action.probes_pending}")
            case Untriggered():
                out.append(f"untriggered {action.probe} {action.reason}")
            case Triggered():
                out.append(f"trigger {action.instance}")
            case AnswerPrompt():
                asked = " ".join(str(verdict.action) for verdict in action.verdicts)
                out.append(f"{'allow' if action.allow else 'deny'} {asked}".rstrip())
            case Close():
                out.append(f"close {action.message_id}")
    return out


@pytest.fixture(scope="session")
def build() -> Any:
    """Builders: script, the probes, a rehearsal, its brief."""

    class Build:
        script = staticmethod(a_script)
        slice = staticmethod(a_slice)
        concurrent = staticmethod(concurrent)
        quality = staticmethod(quality)
        access = staticmethod(access)
        stop = staticmethod(stop)
        policy = staticmethod(policy)
        early = staticmethod(early)
        play = staticmethod(play_of)
        brief = staticmethod(brief)

        @staticmethod
        def run(script: Script, **more: Any) -> Rehearsal:
            return Rehearsal(play_of(script), **more).start()

    return Build
