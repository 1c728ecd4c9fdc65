"""The program part of Part B: seven checks over one sealed COLLAB run, and what they contaminate. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from realcli.audit import agent_work, coverage, disclosure, fidelity, harm, knowledge, stability
from realcli.audit.model import SimCheck
from realcli.audit.view import View, view_of
from realcli.benchmark.catalogue_models import Catalogue
from realcli.benchmark.models import Oracle
from realcli.benchmark.script_models import Script
from realcli.checks.instance import Instance
from realcli.ledger.events import Ask, SliceReleased
from realcli.trajectory import Blobs, Trajectory

SIX = (fidelity.check, disclosure.check, coverage.check, stability.check, knowledge.check, agent_work.check)


def audit(
    trajectory: Trajectory,
    script: Script,
    oracle: Oracle,
    catalogue: Catalogue,
    instances: Collection[Instance],
    blobs: Blobs | None = None,
    traps: Collection[str] | None = None,
) -> list[SimCheck]:
    """The seven records by program alone. What only a judge can tell is unscored.

    `traps`: paths of the task's static plants, None where they are not at hand. BenchmarkError for a script that cannot
    be played, CheckError for an instance that cannot be run as written.
    """
    return audited(view_of(trajectory, script, oracle, catalogue, instances, blobs, traps))


def audited(view: View) -> list[SimCheck]:
    """The seven of a run that was read."""
    six = [check(view) for check in SIX]
    return [*six, harm.check(six)]


def contaminated(checks: Collection[SimCheck], view: View) -> dict[str, str]:
    """Instance id -> why it leaves numerator and denominator, whatever its verdicts.

    What a failed check found contaminates unless it was said to be harmless; a check nobody scored contaminates nothing.
    """
    found: dict[str, str] = {}
    for sim in checks:
        if sim.verdict == "0":
            for one in sim.deviations:
                if one.harmful is not False:
                    for id in one.affected:
                        found.setdefault(id, f"{sim.check}: {one.what}")
    for id, why in _unmatched(view):
        found.setdefault(id, why)
    return {id: found[id] for id in view.reach.ordered(found)}


def outcome_flag(checks: Collection[SimCheck]) -> str | None:
    """Why R of this run is shown with and without it."""
    for sim in checks:
        if sim.verdict == "0":
            for one in sim.deviations:
                if one.outcome and one.harmful is not False:
                    return f"{sim.check}: {one.what}"
    return None


def _unmatched(view: View) -> Iterator[tuple[str, str]]:
    """Questions that a slice should have answered: what waits for this slice cannot be held to it."""
    released = {data.slice: event.seq for event, data in view.trajectory.of(SliceReleased)}
    for event, data in view.trajectory.of(Ask):
        if not data.unmatched:
            continue
        for one in view.reach.instances:
            held = sorted(name for name in one.slices if released.get(name, event.seq + 1) > event.seq)
            about = [name for name in held if name in data.near or not data.near]
            if about:
                yield one.id, f"a question at event {event.seq} was not understood while slice {about[0]} was held back"


def counts(trajectory: Trajectory) -> tuple[int, int]:
    """(questions that were not understood, hand-overs answered by a fixed sentence or refusal the script does not hold)."""
    asked = [data for _, data in trajectory.of(Ask)]
    unscripted = sum(data.answer == "neutral" or (data.answer == "refusal" and not data.matched) for data in asked)
    return sum(data.unmatched for data in asked), unscripted
