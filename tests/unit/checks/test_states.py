"""From ledger to state: four denominators, for probes and for passive scenarios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.script_models import Closure, Passive, Probe
from realcli.checks.instance import Instance, instances_of, of_passive, of_probe
from realcli.checks.states import state_of
from realcli.ledger.events import (
    AgentMessage,
    Ask,
    Command,
    FileRead,
    ProbeDelivered,
    ProbeUntriggered,
    Recorders,
    RecordGap,
    SliceReleased,
    ToolResult,
    Trigger,
)
from tests.support.ledgers import Ledger

SAYS = AgentMessage(text="done")
BLOCKED = ToolResult(call_id="c", text="mirror unreachable")
ROUTE = "u.plan.replan-after-obstacle"
REFERENT, PARAMETER = "s.clarify.ambiguous-referent", "s.clarify.missing-parameter"
LOST = Ask(wants="information", how="text", answer="neutral", unmatched=True)
AWAY = "untriggered"
DELIVERED = ProbeDelivered(probe="p", scenario=REFERENT, message_id="m")


def probe(scenario: str = REFERENT, **bindings: Any) -> Instance:
    return of_probe(Probe(id="p", scenario=scenario, text="x", bindings=bindings), load_catalogue().template(scenario))


CLOSED = of_probe(
    Probe(id="p", scenario=REFERENT, text="x", closure=Closure(text="t", slice="s")), load_catalogue().template(REFERENT)
)


def passive(scenario: str = ROUTE, **bindings: Any) -> Instance:
    bound = bindings or {"OBSTACLE": "unreachable$", "OLD_ROUTE": "^pip "}
    return of_passive(Passive(scenario=scenario, bindings=bound, id="q"), load_catalogue().template(scenario))


def gives_up(reason: Any) -> ProbeUntriggered:
    return ProbeUntriggered(probe="p", scenario=REFERENT, reason=reason)


def told(of: int) -> Trigger:
    return Trigger(instance="q", scenario=ROUTE, of=of)


Run = Callable[[Ledger], Ledger]
TABLE: list[tuple[str, Instance, Run, str, str | None, int | None]] = [
    # probes
    ("never reached", probe(), lambda b: b.request().yields().ends(), AWAY, "not_reached", None),
    ("given up: distance", probe(), lambda b: b.request().yields().emit(gives_up("distance")).ends(), AWAY, "distance", None),
    ("given up: no channel", probe(), lambda b: b.request().emit(gives_up("capability")).ends(), AWAY, "capability", None),
    ("a part was not said", probe(),
     lambda b: b.yields().says().emit(DELIVERED).request().emit(gives_up("probe_undelivered")).ends(),
     AWAY, "probe_undelivered", 5),
    ("delivered", probe(), lambda b: b.request().yields().says().emit(DELIVERED).request().emit(SAYS).yields().ends(),
     "triggered", None, 6),
    ("delivered into a running response", probe(),
     lambda b: b.request().message(["probe:p"], "mid_turn").emit(DELIVERED).request().yields().ends(),
     "triggered", None, 5),
    ("cut by the limit", probe(), lambda b: b.yields().says().emit(DELIVERED).request("turn_limit").yields("failed")
     .ends("TurnLimit"), AWAY, "cut", 5),
    ("not cut: it worked on it", probe(),
     lambda b: b.yields().says().emit(DELIVERED).request().ends("Deadline"), "triggered", None, 5),
    ("delivered twice", probe(),
     lambda b: b.yields().says().emit(DELIVERED, DELIVERED).request().yields().ends(), "contaminated",
     "the probe was delivered 2 times", 5),
    ("asked for its slice, not understood", probe(PARAMETER, USER_SLICE="s"),
     lambda b: b.yields().says().emit(DELIVERED).request()
     .yields().emit(LOST).says().request().yields().ends(),
     "contaminated", "a question at event 8 was not understood while slice s was held back", 5),
    ("asked for another slice, not understood", probe(PARAMETER, USER_SLICE="s"),
     lambda b: b.yields().says().emit(DELIVERED).request()
     .yields().emit(LOST.model_copy(update={"near": ["t"]})).says().request().yields().ends(), "triggered", None, 5),
    ("asked for the slice of its closure, not understood", CLOSED,
     lambda b: b.yields().says().emit(DELIVERED).request()
     .yields().emit(LOST.model_copy(update={"near": ["s"]})).says().request().yields().ends(),
     "contaminated", "a question at event 8 was not understood while slice s was held back", 5),
    ("asked for its answer slice, not understood", probe("s.conflict.cross-turn-contradiction", RESOLUTION="s"),
     lambda b: b.yields().says().emit(DELIVERED).request()
     .yields().emit(LOST.model_copy(update={"near": ["s"]})).says().request().yields().ends(),
     "contaminated", "a question at event 8 was not understood while slice s was held back", 5),
    ("asked for another one, its own is out", probe(PARAMETER, USER_SLICE="s"),
     lambda b: b.yields().says()
     .emit(SliceReleased(slice="s", how="ask", message_id="m"), DELIVERED).request().yields()
     .emit(LOST).ends(), "triggered", None, 6),
    # passive
    ("its event came", passive(), lambda b: b.request().request().emit(BLOCKED).request().yields().ends(), "triggered", None, 5),
    ("as the session saw it", passive(), lambda b: b.request().emit(BLOCKED).emit(told(4)).request().yields().ends(), "triggered",
     None, 4),
    ("the session saw another", passive(), lambda b: b.request().emit(BLOCKED).emit(told(3)).request().yields().ends(),
     "contaminated", "the session saw the trigger at event 3, the same rule finds it at event 4", None),
    ("the session saw what is not there", passive(), lambda b: b.request().emit(told(3)).yields().ends(), "contaminated",
     "the session saw the trigger at event 3, the same rule finds it nowhere", None),
    ("it never came", passive(), lambda b: b.request().yields().ends(), AWAY, "not_reached", None),
    ("nothing after it", passive(), lambda b: b.request().emit(BLOCKED).ends("Deadline"), AWAY, "cut", 4),
    ("a claim contains its response", passive("u.feedback.structured-handoff", DELIVERABLE="/out"),
     lambda b: b.request().emit(SAYS).yields().ends(), "triggered", None, 6),
    ("the whole run is its anchor", passive("tc.proactive.adjacent-defect", DEFECT_FILE="/a", DEFECT="d", FIX="f"),
     lambda b: b.request().request().emit(FileRead(path="/a", marker="x")).yields().ends(), "triggered", None, 1),
    ("a shell that may have been it", passive("u.error.partial-failure-itemised", BATCH="^source", OUTPUT="/out", REPORT=""),
     lambda b: b.request().emit(Command(id=1, argv=["sh", "-c", "source it"], record="exec")).yields().ends(), "unscored",
     "nobody can tell whether event 4 was its trigger", None),
    ("commands are not recorded", passive("u.error.partial-failure-itemised", BATCH="^make", OUTPUT="/out", REPORT=""),
     lambda b: b.emit(Recorders(commands="none", reason="setuid")).request().yields().ends(), AWAY, "capability", None),
    ("a gap where it may lie", passive("u.error.partial-failure-itemised", BATCH="^make", OUTPUT="/out", REPORT=""),
     lambda b: b.request().emit(RecordGap(record="command", reason="queue full")).yields().ends(), "unscored",
     "its trigger may lie in the gap of the record at event 4", None),
    ("a gap of another record", passive("u.error.partial-failure-itemised", BATCH="^make", OUTPUT="/out", REPORT=""),
     lambda b: b.request().emit(RecordGap(record="net", reason="x")).yields().ends(), AWAY, "not_reached", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "instance", "run", "state", "reason", "anchor"), TABLE, ids=[row[0] for row in TABLE])
def test_state(name: str, instance: Instance, run: Run, state: str, reason: str | None, anchor: int | None) -> None:
    got = state_of(instance, run(Ledger().starts()).trajectory)
    assert (got.name, got.reason, got.anchor and got.anchor.seq) == (state, reason, anchor)


def test_generic_checks_are_of_every_run_that_ended() -> None:
    for generic in load_catalogue().generic.values():
        instance = Instance(generic.id, generic)
        assert instance.sub_dimension == ""
        got = state_of(instance, Ledger().starts().request().yields().ends().trajectory)
        assert (got.name, got.anchor and got.anchor.seq) == ("triggered", 1)
        assert state_of(instance, Ledger().starts().ends("TurnLimit").trajectory).reason == "cut"
        assert state_of(instance, Ledger().starts().request().trajectory).reason == "not_reached"


def test_every_scenario_has_a_state_in_the_smallest_run() -> None:
    """All 57 can be bound, derived and looked at; nothing is refused for what it is."""
    run = Ledger().starts().request().emit(SAYS).yields().ends().trajectory
    names = set()
    for template in load_catalogue().templates.values():
        bindings = {name: 3 if name in ("K", "N_MAX", "REPEAT_MAX", "READ_MAX") else "/x" for name in template.bindings}
        if template.type == "probe":
            names.add(state_of(probe(template.id, **bindings), run).name)
        else:
            names.add(state_of(passive(template.id, **bindings), run).name)
    assert names == {"triggered", "untriggered"}


def test_instances_of_a_script() -> None:
    class Script:
        probes = [Probe(id="p", scenario=REFERENT, text="x", slice="s9")]
        passive = [Passive(scenario=ROUTE, bindings={"OLD_ROUTE": "a"})]

    got = instances_of(Script(), load_catalogue())  # type: ignore[arg-type]
    assert [(i.id, i.dimension, dict(i.bindings), i.probe is None) for i in got] == [
        ("p", "S", {"NEXT_SLICE": "s9"}, False), (ROUTE, "U", {"OLD_ROUTE": "a"}, True),
    ]  # fmt: skip
