"""Part B of one repeat: the whole record, with a judge or by program alone."""

from __future__ import annotations

from dataclasses import dataclass

from realcli.audit.asking import audit_with
from realcli.audit.model import AuditRecord
from realcli.audit.program import audited, contaminated, counts, outcome_flag
from realcli.audit.view import View
from realcli.judging.conversing import Pool, one_by_one
from realcli.judging.port import Backend
from realcli.judging.purse import Purse
from realcli.judging.session import Model


@dataclass(frozen=True)
class Whose:
    """Which run it is, as a record names it."""

    configuration: str
    task: str
    repeat: int
    ordinal: int
    attempt: int
    work_seal: str
    judge: str  # digest


def audit_repeat(
    view: View,
    whose: Whose,
    model: Model | None = None,
    backend: Backend | None = None,
    purse: Purse | None = None,
    pool: Pool = one_by_one,
) -> AuditRecord:
    """The audit of one sealed COLLAB run (`view`: realcli.audit.view.view_of). Without a model what a program cannot settle is
    unscored, and an unscored check contaminates nothing. What the backend raises goes on up.
    """
    checks = audited(view) if model is None or backend is None else audit_with(view, whose.work_seal, model, backend, purse, pool)
    unmatched, unscripted = counts(view.trajectory)
    return AuditRecord(
        configuration=whose.configuration, task=whose.task, repeat=whose.repeat, ordinal=whose.ordinal, attempt=whose.attempt,
        work_seal=whose.work_seal, judge=whose.judge, checks=checks, contaminated=contaminated(checks, view),
        outcome_flag=outcome_flag(checks), ask_unmatched=unmatched, unscripted_answers=unscripted,
    )  # fmt: skip
