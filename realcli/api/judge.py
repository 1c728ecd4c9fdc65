"""The judge as a person asks for it: which model, how many votes, what it may cost."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from realcli.api.base import Frozen
from realcli.api.models import Api, Endpoint, Endpoints, ModelId, Prices, Usd


class Calibration(StrEnum):
    """What is asked of the judge before its scores count as calibrated."""

    REQUIRED = "Required"
    OFF = "Off"


class Sessions(StrEnum):
    """What one conversation with the judge is about."""

    TRAJECTORY = "PerTrajectory"
    SCENARIO = "PerScenario"


class Controls(StrEnum):
    """Whether checks that a program settled are asked too: their answers never count, they show how the judge errs."""

    ALL = "All"
    NONE = "None"


class JudgeModel(Frozen):
    """The model that judges; never one under test. One endpoint is used: chat, else anthropic, else responses."""

    model: ModelId = Field(description="Model id sent to the provider.")
    endpoints: Endpoints = Field(description="chat, anthropic or responses; where several are given, the first of these is used.")
    temperature: Annotated[str, StringConstraints(pattern=r"^[0-2](\.[0-9]{1,3})?$", max_length=5)] | None = Field(
        default=None, description="Sampling temperature, a decimal; not sent without one."
    )
    max_output_tokens: Annotated[int, Field(ge=1024, le=1_000_000)] = Field(default=16_000, description="Of one answer.")
    context_tokens: Annotated[int, Field(ge=16_000, le=100_000_000)] = Field(
        default=200_000, description="Most tokens of one request; what does not fit is read by tools."
    )
    prices: Prices | None = Field(
        default=None, description="Without prices the cost is unknown, and a budget has to be in tokens."
    )

    @property
    def endpoint(self) -> tuple[Api, Endpoint] | None:
        """The one that is used."""
        order: tuple[Api, ...] = ("chat", "anthropic", "responses")
        return next(((api, found) for api in order if (found := self.endpoints.of(api)) is not None), None)


class JudgeBudget(Frozen):
    """What judging a sweep may cost; each group gets an equal share. What is not judged then is unscored, never 0."""

    usd: Usd | None = Field(default=None, description="US dollars by the judge's prices.")
    tokens: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Tokens, input and output together.")


class Judge(Frozen):
    """Who judges the collaboration. Without a model what a program decides is scored and the rest is unscored."""

    model: JudgeModel | None = Field(default=None, description="The model that judges what no program decides.")
    votes: Annotated[int, Field(ge=1, le=9)] = Field(
        default=3, description="Independent answers for a check that only the judge decides; the majority counts."
    )
    calibration: Calibration = Field(
        default=Calibration.REQUIRED,
        description="Required: scores are marked uncalibrated until this judge passed `realcli judge calibrate`. Off: no mark.",
    )
    sessions: Sessions = Field(
        default=Sessions.TRAJECTORY, description="PerTrajectory: one conversation per run. PerScenario: one per scenario; dearer."
    )
    controls: Controls = Field(default=Controls.ALL, description="All: settled checks are asked too, to watch the judge.")
    budget: JudgeBudget | None = Field(default=None, description="What judging the whole sweep may cost.")
