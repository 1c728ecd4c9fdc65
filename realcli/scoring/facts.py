"""Counts of one run, read off its ledger: what the cost and effort tables are made of (measuring.md 4.3). Pure."""

from __future__ import annotations

from decimal import Decimal

from realcli.api.trial import Checks
from realcli.ledger.events import AgentMessage, Ask, Command, ModelReply, Recorders, RecordGap
from realcli.ledger.seals import WorkSeal
from realcli.scoring.records import RunFacts
from realcli.scoring.retries import retries
from realcli.trajectory import Trajectory


def facts_of(trajectory: Trajectory, seal: WorkSeal | None = None, checks: Checks | None = None) -> RunFacts:
    """Facts of one sealed run. What the ledger cannot tell is None and never 0.

    A gap of the ledger itself makes every count of its events unknown. `questions` and `ask_unmatched` are those of COLLAB: in
    EXEC nobody reads what the agent asks. `checks` is the verifier's own summary, `seal` the work seal (turns, tokens, time).
    """
    gaps = {data.record for _, data in trajectory.of(RecordGap)}
    opened = trajectory.opened
    whole = "ledger" not in gaps
    talks = whole and opened is not None and opened.mode == "COLLAB"
    recorded = [data.commands for _, data in trajectory.of(Recorders)]
    commands = whole and "command" not in gaps and bool(recorded) and recorded[-1] != "none"
    asks = [data for _, data in trajectory.of(Ask)]
    again = retries(trajectory) if whole and "command" not in gaps else None
    return RunFacts(
        turns=seal.turns if seal is not None else max((item.turn for item in trajectory.items), default=0) if whole else None,
        exchanges=len(trajectory.exchanges) if whole else None,
        tool_calls=len(trajectory.calls) if whole else None,
        commands=sum(1 for _ in trajectory.of(Command)) if commands else None,
        retries=again.again if again is not None else None,
        failing_retries=again.failing if again is not None else None,
        questions=len(asks) if talks else None,
        ask_unmatched=sum(ask.unmatched for ask in asks) if talks else None,
        messages=sum(1 for _ in trajectory.of(AgentMessage)) if whole else None,
        tokens=seal.tokens if seal is not None else None,
        cost_usd=seal.cost_usd if seal is not None else _cost(trajectory) if whole else None,
        working_seconds=seal.working_seconds if seal is not None else None,
        checks_passed=checks.passed if checks is not None else None,
        checks_total=checks.total if checks is not None else None,
    )


def _cost(trajectory: Trajectory) -> str | None:
    """Sum over all replies; unknown as soon as one is."""
    costs = [data.cost_usd for _, data in trajectory.of(ModelReply)]
    known = [Decimal(cost) for cost in costs if cost is not None]
    return format(sum(known, Decimal(0)), "f") if costs and len(known) == len(costs) else None
