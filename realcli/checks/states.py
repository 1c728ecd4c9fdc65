"""Is an instance triggered in a run, and where is its anchor? Four denominators, never mixed (measuring.md 2.3). Pure.

triggered     scored by its checks
untriggered   leaves the denominator: not_reached, distance, capability, cut, probe_undelivered
contaminated  the instrument's fault: leaves it whatever its verdicts
unscored      nobody can tell whether it happened (a text or a record that the trigger rests on is missing); never 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from realcli.benchmark.needs import Capability, operator_needs
from realcli.checks.instance import Instance
from realcli.checks.model import CheckError
from realcli.ledger.events import Ask, EpisodeStart, Plant, Recorders, SliceReleased
from realcli.ledger.events import Trigger as TriggerEvent
from realcli.trajectory import Blobs, Trajectory, TriggerError, fired_at, parse_when
from realcli.trajectory.anchors import RULES, Anchor, Rule, anchor_window
from realcli.trajectory.model import Record

Name = Literal["triggered", "untriggered", "contaminated", "unscored"]
RECORD_OF: Mapping[Capability, Record] = {"command_record": "command", "file_record": "file", "net_record": "net"}


@dataclass(frozen=True, slots=True)
class State:
    """What became of an instance; `anchor` where it has one, `reason` for all but `triggered`."""

    name: Name
    reason: str | None = None
    anchor: Anchor | None = None


def state_of(instance: Instance, trajectory: Trajectory, blobs: Blobs | None = None) -> State:
    """The state of an instance in a run. `CheckError` for a trigger or an anchor that cannot be used as written."""
    found = _delivered(instance, trajectory) if instance.probe is not None else _observed(instance, trajectory, blobs)
    if found.name != "triggered" or found.anchor is None:
        return found
    if anchor_window(trajectory, found.anchor).cut:
        return State("untriggered", "cut", found.anchor)
    unmatched = _unmatched(instance, trajectory)
    return found if unmatched is None else State("contaminated", unmatched, found.anchor)


def _delivered(instance: Instance, trajectory: Trajectory) -> State:
    """A probe is what the session says it is: delivered, or given up with a reason. The later word counts."""
    rule, probe = rule_of(instance), instance.probe
    deliveries, given_up = trajectory.deliveries(instance.id), trajectory.untriggered(instance.id)
    if not deliveries:
        return State("untriggered", given_up[1].reason if given_up else "not_reached")
    anchor = Anchor(rule, deliveries[0][0].seq)
    if given_up is not None and given_up[0].seq > anchor.seq:
        return State("untriggered", given_up[1].reason, anchor)
    if len(deliveries) > 1:
        return State("contaminated", f"the probe was delivered {len(deliveries)} times", anchor)
    if probe is not None and probe.edit is not None:
        applied = [d.applied for e, d in trajectory.of(Plant) if d.probe == probe.id and e.seq < anchor.seq]
        if not (applied and all(applied)):
            return State("contaminated", f"delivered although its plant in {probe.edit.path} was not applied", anchor)
    return State("triggered", anchor=anchor)


def _observed(instance: Instance, trajectory: Trajectory, blobs: Blobs | None) -> State:
    """A passive scenario is decided by the evaluator the session used; where the two disagree the instrument is at fault."""
    rule, when = rule_of(instance), instance.scenario.trigger.when
    try:
        parsed = parse_when(when, instance.bindings)
    except TriggerError as error:
        raise CheckError(f"instance {instance.id}, scenario {instance.scenario.id}: trigger: {error}") from error
    trigger = fired_at(parsed, trajectory.items, blobs)
    told = [data.of for _, data in trajectory.of(TriggerEvent) if data.instance == instance.id]
    if told and told != [trigger.fired]:
        judged = "nowhere" if trigger.fired is None else f"at event {trigger.fired}"
        seen = ", ".join(map(str, told))
        return State("contaminated", f"the session saw the trigger at event {seen}, the same rule finds it {judged}")
    if trigger.fired is not None:
        return State("triggered", anchor=Anchor(rule, _start(trajectory) if rule == "whole_run" else trigger.fired))
    needs = operator_needs(when)
    missing = unrecorded(trajectory, needs)
    if missing is not None:
        return State("untriggered", "capability")
    if trigger.doubtful is not None:
        return State("unscored", f"nobody can tell whether event {trigger.doubtful} was its trigger")
    gaps = trajectory.run().gaps(*(RECORD_OF[need] for need in needs if need in RECORD_OF))
    if gaps:
        return State("unscored", f"its trigger may lie in the gap of the record at event {gaps[0].seq}")
    return State("untriggered", "not_reached")


def unrecorded(trajectory: Trajectory, needs: set[Capability]) -> str | None:
    """Which of the records was not kept in this run, and why; None where all were, or the ledger is older than `recorders`."""
    for _, data in trajectory.of(Recorders):
        if "command_record" in needs and data.commands == "none":
            return f"commands were not recorded: {data.reason or 'no recorder'}"
        if "file_record" in needs and not data.files:
            return "changes of files were not recorded"
        if "net_record" in needs and not data.net:
            return "requests to hosts were not recorded"
    return None


def _unmatched(instance: Instance, trajectory: Trajectory) -> str | None:
    """A question that a slice should have answered and did not: instances that wait for this slice cannot be held to it.

    Those that wait for others can: else an agent that asks what nobody understands would choose what counts.
    """
    released = {data.slice: event.seq for event, data in trajectory.of(SliceReleased)}
    for event, data in trajectory.of(Ask):
        if not data.unmatched:
            continue
        waiting = sorted(name for name in instance.slices if released.get(name, event.seq + 1) > event.seq)
        about = [name for name in waiting if name in data.near or not data.near]
        if about:
            return f"a question at event {event.seq} was not understood while slice {about[0]} was held back"
    return None


def _start(trajectory: Trajectory) -> int:
    """Where the run starts; a run whose trigger fired has started."""
    return next(event.seq for event, _ in trajectory.of(EpisodeStart))


def rule_of(instance: Instance) -> Rule:
    """The anchor rule of its template; `CheckError` for one that is not defined."""
    written = instance.scenario.anchor.get("rule")
    for rule in RULES:
        if rule == written:
            return rule
    raise CheckError(
        f"scenario {instance.scenario.id}: anchor rule {written!r} is not defined; expected one of {', '.join(RULES)}"
    )
