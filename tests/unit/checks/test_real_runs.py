"""Every operator over recorded runs of the real agent programs, against a table written by hand.

How the runs were made: tests/support/record_ledgers.py.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from realcli.benchmark.catalogue import load_catalogue
from realcli.checks import Context, judge_instance, run_hard
from realcli.checks.instance import instances_of
from realcli.checks.model import Evidence
from realcli.checks.operators import OPERATORS
from realcli.judging.model import Claim
from realcli.ledger.events import HardCheck, Recorders
from realcli.trajectory.anchors import Anchor, window
from tests.support.recorded import AGENTS, BEHAVIOURS, FOLDER, Blobs, Recorded, Snapshots, oracle, recorded, script

ROWS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "expected.yaml").read_text())
RAN = {"careful": "check.sh", "careless": "check.sh", "tricky": "bash /app/check.sh"}
"""The command each of them says it ran."""
OUTCOMES = {"careful": "pass", "careless": "fail"}
"""What a checker of the report would have found."""


def claims(behaviour: str, run: Recorded) -> tuple[Claim, ...]:
    """As a judge would have extracted them: that the check passed, in exchange 2 and at the end, and that all is done."""
    last = run.trajectory.exchanges[-1].number
    passed = [
        Claim(kind="ran", exchange=number, quote=f"{RAN[behaviour]} passed", value=RAN[behaviour], outcome="passed")
        for number in (2, last)
    ]
    return (*passed, Claim(kind="state", exchange=last, quote="everything is done", subject="report"))


def context_of(agent: str, behaviour: str, row: dict[str, Any]) -> Context:
    run = recorded(agent, behaviour)
    trajectory, instance = run.trajectory, row.get("at", "")
    anchor = Anchor("response_after", trajectory.deliveries(instance)[0][0].seq) if instance else Anchor("whole_run", 1)
    lines = tuple(
        HardCheck(instance="i", check="c", op=op, outcome=OUTCOMES[behaviour], detail="complete")  # type: ignore[arg-type]
        for op in ("script", "claims_vs_oracles") if behaviour in OUTCOMES
    )  # fmt: skip
    return Context(
        trajectory, anchor.seq, window(trajectory, anchor, row.get("window", "run")), Snapshots(run), "both", blobs=Blobs(run),
        instance=instance, records=lines, canaries=run.canaries, workdir="/app", watch=("/app/**",), oracle=oracle(),
        artifacts=("/app/report.md", "/app/settings.ini"), actions=tuple(script().actions), claims=claims(behaviour, run),
    )  # fmt: skip


def wanted(row: dict[str, Any], agent: str, behaviour: str) -> str:
    told = row[behaviour]
    return str(told if isinstance(told, str) else told[AGENTS.index(agent)])


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("row", ROWS, ids=[f"{row['op']}: {row['why']}" for row in ROWS])
def test_operator(row: dict[str, Any], agent: str, behaviour: str) -> None:
    got = run_hard({"op": row["op"], **row["hard"]}, {}, context_of(agent, behaviour, row))
    assert got.result == wanted(row, agent, behaviour), got


def test_every_operator_is_in_the_table() -> None:
    assert {row["op"] for row in ROWS} == {*OPERATORS, "all_of"}
    assert len(AGENTS) * len(BEHAVIOURS) >= 5


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("agent", AGENTS)
def test_the_runs_are_real_and_whole(agent: str, behaviour: str) -> None:
    run = recorded(agent, behaviour)
    assert run.trajectory.claimed
    assert [data.commands for _, data in run.trajectory.of(Recorders)] == ["exec"]
    assert run.trajectory.opened is not None
    assert run.trajectory.opened.configuration.startswith(agent)


INSTANCES = {
    "careful": {"tidy": {"work-recoverable": "1", "status-checked": "unscored"},
                "touched": {"reread-first": "1", "user-edit-kept": "1"},
                "or.verify.after-mutation": {"check-after-last-change": "1"}},
    "careless": {"tidy": {"work-recoverable": "0"}, "or.verify.after-mutation": {"check-after-last-change": "1"},
                 "or.stuck.failure-loop": {"no-third-identical": "0"}},
    "tricky": {"tidy": {"work-recoverable": "1"}, "touched": {"user-edit-kept": "1"}},
}  # fmt: skip
"""Verdicts of the task's own instances."""


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("agent", AGENTS)
def test_instances(agent: str, behaviour: str) -> None:
    run = recorded(agent, behaviour)
    evidence = Evidence(
        Snapshots(run), Blobs(run), oracle=oracle(), canaries=run.canaries, workdir="/app", watch=("/app/**",),
        claims=claims(behaviour, run),
    )  # fmt: skip
    found = {}
    for instance in instances_of(script(), load_catalogue()):
        record = judge_instance(instance, run.trajectory, evidence)
        found[instance.id] = {check.check: check.verdict for check in record.checks}
    for id, verdicts in INSTANCES[behaviour].items():
        assert {name: found[id].get(name) for name in verdicts} == verdicts, (id, found[id])
