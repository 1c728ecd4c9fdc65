"""A state machine with a fault in its rules: wherever it makes the user say something else, the audit finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from realcli.audit.program import audit
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.models import Oracle
from realcli.checks.instance import instances_of
from realcli_session.user import answers, machine
from realcli_session.user.events import Verdict
from realcli_session.user.state import State
from tests.support.scripts.behaviours import conversation
from tests.support.simulated_runs import SimulatedRun
from tests.unit.audit.test_clean_runs import described_run
from tests.unit.user.conftest import build as user_build
from tests.unit.user.test_against_interpreter import conditioned

build = user_build
ORACLE = Oracle.model_validate({"paths": ["/app/f"]})
Patch = Callable[[pytest.MonkeyPatch], None]


def due_backwards(state: State) -> str | None:
    """The last item of the order that is due."""
    if state.parts is not None:
        return f"part:{state.parts[0]}"
    if state.plain:
        return "plain:"
    if state.volunteered():
        return "event:"
    return next((item for item in reversed(state.pending) if state._due(item)), None)


def due_without_parts(state: State) -> str | None:
    """Parts wait for everything else."""
    if state.plain:
        return "plain:"
    found = "event:" if state.volunteered() else next((item for item in state.pending if state._due(item)), None)
    return found or (f"part:{state.parts[0]}" if state.parts is not None else None)


FAULTS: dict[str, Patch] = {
    "probes are put off for longer": lambda patch: patch.setattr(machine, "DISPLACED", 4),
    "probes are never put off": lambda patch: patch.setattr(machine, "DISPLACED", 0),
    "more neutral answers": lambda patch: patch.setattr(machine, "NEUTRAL_ANSWERS", 5),
    "fewer neutral answers": lambda patch: patch.setattr(machine, "NEUTRAL_ANSWERS", 1),
    "every action is granted": lambda patch: patch.setattr(answers, "decide", lambda state, action: Verdict(action.id, True)),
    "no action is granted": lambda patch: patch.setattr(answers, "decide", lambda state, action: Verdict(action.id, False)),
    "conditions hold from the start": lambda patch: patch.setattr(State, "holds", lambda state, name: True),
    "conditions never hold": lambda patch: patch.setattr(State, "holds", lambda state, name: name.startswith("action:")),
    "distances are ignored": lambda patch: patch.setattr(State, "spaced", lambda state, name: True),
    "no fallback": lambda patch: patch.setattr(State, "fallback", lambda state: None),
    "slices of probes are told when asked for": lambda patch: patch.setattr(State, "promised", lambda state, name: False),
    "nothing is volunteered": lambda patch: patch.setattr(State, "volunteered", lambda state: []),
    "the order backwards": lambda patch: patch.setattr(State, "due", due_backwards),
    "parts wait": lambda patch: patch.setattr(State, "due", due_without_parts),
}


QUESTIONS = ["Which port?", "Which level?", "Which team wins?", "What is the operating system?", "May I push?"]
"""None that names nothing: how those are read is not the audit's to say again."""


@st.composite
def talks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Agents that repeat themselves: questions in a row, some work, hand-overs, then claims to the end."""
    blocks = draw(
        st.lists(st.tuples(st.sampled_from([*QUESTIONS, "Done.", "The policy forbids that."]), st.integers(1, 6)), max_size=5)
    )
    work = [{"event": "tool_call"}] * 8 + [{"event": "file_write", "path": "/app/f"}]
    found: list[dict[str, Any]] = [{"events": [], "says": text} for text, count in blocks for _ in range(count)]
    if draw(st.booleans()):
        found.insert(draw(st.integers(0, len(found))), {"events": work, "says": "I have done this part."})
    last = draw(st.sampled_from(["Done.", "Which team wins?"]))
    return [*found, *([{"events": [], "says": last}] * 8), *([{"events": [], "says": "Done."}] * 25)]


QUICK = frozenset(("probes are never put off", "every action is granted", "no fallback", "the order backwards"))
"""One of each kind; the others are slow only because they are many."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in FAULTS])
def test_what_a_broken_rule_changes_is_found(build: Any, name: str) -> None:
    different = 0

    @settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data(), responses=talks())
    def runs(data: st.DataObject, responses: list[dict[str, Any]]) -> None:
        nonlocal different
        script = data.draw(conditioned(build), "script")
        deaf = data.draw(st.booleans(), "deaf")
        responses = [{**one, "deaf": deaf} for one in responses]
        sound = described_run(script, responses)
        with pytest.MonkeyPatch.context() as patch:
            FAULTS[name](patch)
            broken = described_run(script, responses)
        if said(sound) == said(broken):
            return
        different += 1
        catalogue = load_catalogue()
        checks = audit(broken.trajectory, script, ORACLE, catalogue, instances_of(script, catalogue))
        assert "0" in [check.verdict for check in checks], (said(sound), said(broken))

    runs()
    assert different, "no run was changed by the fault"


def said(run: SimulatedRun) -> list[tuple[Any, ...]]:
    """What the user said and decided. How a release is labelled, and a neutral sentence beside other things, change nothing."""
    told = conversation((item.seq, item.data) for item in run.items if item.data is not None)
    kinds = ("user_message", "probe_untriggered", "approval", "denial", "final_claim")
    return [tuple(_plain(part) for part in one) for one in told if one[0] in kinds]


def _plain(part: Any) -> Any:
    return tuple(source for source in part if source != "neutral" or len(part) == 1) if isinstance(part, tuple) else part
