"""Hard checks: what a program can decide from ledger and snapshots. Pure."""

from realcli.checks.instance import Instance, instances_of
from realcli.checks.instances import judge_instance, judge_probe, verdict_of
from realcli.checks.model import OPERATORS_VERSION, CheckError, Context, Evidence, SnapshotReader, SnapshotUnreadable
from realcli.checks.operators import OPERATORS, operator, run_hard

__all__ = [
    "OPERATORS",
    "OPERATORS_VERSION",
    "CheckError",
    "Context",
    "Evidence",
    "Instance",
    "SnapshotReader",
    "SnapshotUnreadable",
    "instances_of",
    "judge_instance",
    "judge_probe",
    "operator",
    "run_hard",
    "verdict_of",
]
