"""What a sweep may take and what it is likely to: part of its status."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from realcli.api.base import Frozen

Amount = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?$", max_length=24)]


class Forecast(Frozen):
    """At most: every trial uses up its limits, in one attempt. Expected: as the trials that have ended. Absent: not known."""

    trials: int = Field(ge=0, description="Trials of the plan.")
    pods: int = Field(ge=0, description="Pods of trials and of Jobs, where no attempt is lost.")
    pod_hours_at_most: Amount = Field(
        description="Hours of the pods of trials, if each uses up its limits in one attempt and one verify pod."
    )
    pod_hours_expected: Amount | None = Field(
        default=None, description="The same if the rest is like the trials that have ended."
    )
    usd_at_most: Amount | None = Field(
        default=None,
        alias="usdAtMost",
        description="US dollars of trials and judge by their budgets. Absent also with a simulated user that is a model.",
    )
    usd_expected: Amount | None = Field(
        default=None, alias="usdExpected", description="US dollars of the trials if the rest costs what the ended ones cost."
    )
    trials_usd_at_most: Amount | None = Field(
        default=None, alias="trialsUsdAtMost", description="Part of usdAtMost: the agents', by limits.trialBudget and budget.usd."
    )
    judge_usd_at_most: Amount | None = Field(
        default=None, alias="judgeUsdAtMost", description="Part of usdAtMost: the judge's, by its budget; 0 without a model."
    )
    measured: int = Field(default=0, ge=0, description="Ended trials that the expectation rests on.")
    basis: int = Field(default=0, ge=0, description="Valid trials when it was made; it is made again as more end.")
    unknown: Annotated[list[Annotated[str, StringConstraints(max_length=200)]], Field(max_length=8)] = Field(
        default=[], description="What is not known, and why."
    )
