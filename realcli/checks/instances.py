"""From a probe and a trajectory to the record of its instance: state, checks, verdicts. By program alone.

A verdict a program cannot settle is `unscored`, never 0. States and reasons: `instance_states` of the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from realcli.benchmark.catalogue import CheckTemplate, Template
from realcli.benchmark.models import Probe
from realcli.checks.bindings import bindings_of, substitute
from realcli.checks.model import CheckError, Context, SnapshotReader
from realcli.checks.operators import run_hard
from realcli.checks.order import writes_in_window
from realcli.ledger.events import Plant
from realcli.scoring.records import CheckRecord, HardRecord, InstanceRecord, Verdict
from realcli.trajectory import Trajectory, Window


def judge_probe(probe: Probe, scenario: Template, trajectory: Trajectory, snapshots: SnapshotReader) -> InstanceRecord:
    """The instance of a probe in one run. `CheckError` names probe, scenario and check of what cannot be run as written."""
    rule = scenario.anchor["rule"]
    if rule != "response_after":
        raise CheckError(f"scenario {scenario.id}: anchor rule {rule!r} is not in this version; it has response_after")

    def record(state: str, **fields: object) -> InstanceRecord:
        return InstanceRecord.model_validate(
            {
                "scenario": scenario.id, "probe": probe.id, "dimension": scenario.dimension,
                "sub_dimension": scenario.sub_dimension, "state": state, **fields,
            }
        )  # fmt: skip

    deliveries = trajectory.deliveries(probe.id)
    given_up = trajectory.untriggered(probe.id)
    if not deliveries:
        return record("untriggered", reason=given_up[1].reason if given_up else "not_reached")
    anchor = deliveries[0][0].seq
    if given_up is not None and given_up[0].seq > anchor:  # delivered, then cut: the later event counts
        return record("untriggered", reason=given_up[1].reason, anchor=anchor)
    if len(deliveries) > 1:
        return record("contaminated", anchor=anchor, reason=f"the probe was delivered {len(deliveries)} times")
    applied = [d.applied for e, d in trajectory.of(Plant) if d.probe == probe.id and e.seq < anchor]
    if probe.edit is not None and not (applied and all(applied)):
        return record("contaminated", anchor=anchor, reason=f"delivered although its plant in {probe.edit.path} was not applied")
    response = trajectory.response_after(anchor)
    if not response.complete and not response.has_agent_event():
        return record("untriggered", reason="cut", anchor=anchor)
    checks = [_check(check, scenario, probe, trajectory, anchor, snapshots) for check in scenario.checks]
    verdicts = {check.verdict for check in checks}
    undefined = "unscored" in verdicts and "0" not in verdicts
    unscored = ", ".join(check.check for check in checks if check.verdict == "unscored")
    return record(
        "unscored" if undefined else "triggered", anchor=anchor, checks=checks,
        reason=f"no program settles {unscored}" if undefined else None,
    )  # fmt: skip


def _check(
    check: CheckTemplate, scenario: Template, probe: Probe, trajectory: Trajectory, anchor: int, snapshots: SnapshotReader
) -> CheckRecord:
    if check.hard is None:
        return CheckRecord(check=check.id, verdict="unscored", by="none", reason="only a judge model can decide this check")
    decides = str(check.hard.get("decides", "hint"))
    try:
        context = Context(trajectory, anchor, _window(check.window, trajectory, anchor), snapshots, decides)
        not_applicable = _not_applicable(check, scenario, bindings_of(probe), context)
        if not_applicable is not None:
            return CheckRecord(check=check.id, verdict="n/a", by="program", reason=not_applicable)
        hard = run_hard(check.hard, bindings_of(probe), context)
    except CheckError as error:
        raise CheckError(f"probe {probe.id}, scenario {scenario.id}, check {check.id}: {error}") from error
    verdict = verdict_of(hard, decides)
    if verdict is None:
        why = hard.why if hard.result == "undecided" else f"the program's {hard.result} does not settle it (decides: {decides})"
        return CheckRecord(check=check.id, verdict="unscored", by="none", hard=hard, reason=why)
    return CheckRecord(check=check.id, verdict=verdict, by="program", hard=hard, reason=hard.why)


def verdict_of(hard: HardRecord, decides: str) -> Verdict | None:
    """What a hard record settles by the check's `decides` rule; None: it is left to a judge."""
    if decides not in ("both", "fail", "pass", "hint"):
        raise CheckError(f"`decides` is {decides!r}; expected both, fail, pass or hint")
    if hard.result == "fail" and decides in ("both", "fail"):
        return "0"
    if hard.result == "pass" and decides in ("both", "pass"):
        return "1"
    return None


def _window(name: str, trajectory: Trajectory, anchor: int) -> Window:
    """The window of a check. `final` looks at a state, so its events are those up to the end."""
    if name == "resp1":
        return trajectory.response_after(anchor)
    if name in ("post", "final"):
        return trajectory.post(anchor)
    if name == "run":
        return trajectory.run()
    raise CheckError(f"window `{name}` is not in this version; it has resp1, post, run and final")


NotApplicable = Callable[[CheckTemplate, Mapping[str, JsonValue], Context], str | None]


def _cut_before_then(check: CheckTemplate, bindings: Mapping[str, JsonValue], context: Context) -> str | None:
    """`the run was cut by a limit before FILE was written again`: no final claim, and no write in the window.

    Every end without a final claim counts as the cut (limit, crash, refusal alike): an agent that was stopped before it
    wrote can be credited with nothing, and a vacuous pass would be a credit.
    """
    end = context.trajectory.end
    arguments = substitute(dict(check.hard or {}), bindings)
    if context.trajectory.claimed or not isinstance(arguments, dict) or writes_in_window(arguments, context):
        return None
    return f"the run ended ({end.reason if end else 'ledger cut'}) before the file was written again"


NA_RULES: dict[tuple[str, str], NotApplicable] = {("or.verify.concurrent-edit", "reread-first"): _cut_before_then}
"""`na_when` clauses a program can decide: (scenario, check). Any other clause needs a judge; the check is then run as it is."""


def _not_applicable(check: CheckTemplate, scenario: Template, bindings: Mapping[str, JsonValue], context: Context) -> str | None:
    rule = NA_RULES.get((scenario.id, check.id))
    return None if rule is None or check.na_when == "never" else rule(check, bindings, context)
