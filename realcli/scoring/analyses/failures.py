"""Why runs fail: one primary label per failed run of either mode (RealCLI 5.7). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from realcli.scoring.analyses.table import Table, share
from realcli.scoring.records import Failure, FailureLabel

LABELS: tuple[FailureLabel, ...] = get_args(FailureLabel)


def failure_taxonomy(failures: Mapping[str, Iterable[Failure]]) -> Table:
    """Label counts per configuration and mode, and over all: share = count / labelled failures of that mode.

    Failures without a label are counted in `unlabelled` and in no share (measuring.md 4.3; paper, functional or boundary error:
    62.7 % of autonomous and 53.8 % of interactive failures). `failures`: configuration -> labels of its failed valid runs.
    """
    found = {name: list(own) for name, own in failures.items()}
    rows = []
    for name, own in [*found.items(), ("all", [one for some in found.values() for one in some])]:
        for mode in ("EXEC", "COLLAB"):
            counts = Counter(failure.label for failure in own if failure.mode == mode)
            missing = counts.pop(None, 0)
            total = sum(counts.values())
            rows += [(name, mode, label, counts[label], total, share(counts[label], total), missing)
                     for label in LABELS if total or missing]  # fmt: skip
    return Table.of("failure_taxonomy", "configuration mode label count labelled share unlabelled", rows)
