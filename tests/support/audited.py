"""The program part of the audit on events of a real run, for tests that make one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from realcli.audit.program import audit
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.script import read_oracle, read_script
from realcli.checks.instance import instances_of
from realcli.ledger.events import Event
from realcli.trajectory import Blobs, Trajectory


def audit_events(events: Iterable[Event], task: Path, blobs: Blobs | None = None) -> tuple[dict[str, str], list[str]]:
    """(verdict by check, what was found or not settled) of a COLLAB run of the task in that folder."""
    catalogue, script = load_catalogue(), read_script(task)
    instances = instances_of(script, catalogue)
    traps = task / "interaction/traps"
    planted = [f"/{path.relative_to(traps)}" for path in traps.rglob("*") if path.is_file()]
    checks = audit(Trajectory.from_events(events), script, read_oracle(task), catalogue, instances, blobs, planted)
    found = [deviation.what for one in checks for deviation in one.deviations]
    found += [f"{one.check}: {one.reason}" for one in checks if one.verdict == "unscored"]
    return {one.check: one.verdict for one in checks}, found
