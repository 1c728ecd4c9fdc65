"""What an ATIF file may hold: the part of the Agent Trajectory Interchange Format, version 1.8, that a ledger can fill.

Source: harbor 0.26.0 (the release pinned in hack/). Keys are the format's own. Fields a ledger never fills (reasoning, token ids,
log probabilities, sub-agents' trajectories, media files) are left out of the models, so they cannot be written.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from realcli.ledger.show import printable_json

VERSION: Literal["ATIF-v1.8"] = "ATIF-v1.8"
Extra = dict[str, JsonValue]
Count = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """Immutable, snake_case as the format has it, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class AtifCall(Part):
    """One tool call of a step."""

    tool_call_id: str
    function_name: str
    arguments: Extra
    extra: Extra | None = None


class AtifResult(Part):
    """What came back. `source_call_id` names a call of the same step; None: no call of the ledger has that id."""

    source_call_id: str | None = None
    content: str
    extra: Extra | None = None


class AtifObservation(Part):
    """All that came back to a step."""

    results: tuple[AtifResult, ...]


class AtifMetrics(Part):
    """Tokens and cost of a step's replies. What the provider did not tell is None."""

    prompt_tokens: Count | None = None  # the cached ones too
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None  # read from the cache
    cost_usd: float | None = None
    extra: Extra | None = None


class AtifStep(Part):
    """A message of the user, a turn of the agent, or an event around them (`system`)."""

    step_id: Annotated[int, Field(ge=1)]
    timestamp: str | None = None  # ISO 8601
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    reasoning_effort: str | None = None
    message: str
    tool_calls: tuple[AtifCall, ...] | None = None
    observation: AtifObservation | None = None
    metrics: AtifMetrics | None = None
    llm_call_count: Annotated[int, Field(ge=1)] | None = None
    extra: Extra | None = None

    @model_validator(mode="after")
    def _belongs_together(self) -> AtifStep:
        of_agents = (self.model_name, self.reasoning_effort, self.tool_calls, self.metrics)
        if self.source != "agent" and any(value is not None for value in of_agents):
            raise ValueError(f"step {self.step_id} is of the {self.source}: model, effort, calls and metrics are an agent's")
        ids = [call.tool_call_id for call in self.tool_calls or ()]
        if len(ids) != len(set(ids)):
            raise ValueError(f"step {self.step_id} names two calls alike: {ids}")
        named = {result.source_call_id for result in (self.observation.results if self.observation else ())} - {None}
        if not named <= set(ids):
            raise ValueError(f"step {self.step_id} has results of calls it did not make: {sorted(map(str, named - set(ids)))}")
        return self


class AtifAgent(Part):
    """Who ran."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: tuple[Extra, ...] | None = None  # as OpenAI's function calling has them
    extra: Extra | None = None


class AtifTotals(Part):
    """Sums over the steps. None where one of them is not known."""

    total_prompt_tokens: Count | None = None
    total_completion_tokens: Count | None = None
    total_cached_tokens: Count | None = None
    total_cost_usd: float | None = None
    total_steps: Count
    extra: Extra | None = None


class AtifDocument(Part):
    """One trajectory, a file of its own."""

    schema_version: Literal["ATIF-v1.8"] = VERSION
    session_id: str
    trajectory_id: str
    agent: AtifAgent
    steps: Annotated[tuple[AtifStep, ...], Field(min_length=1)]
    notes: str
    final_metrics: AtifTotals
    extra: Extra

    @model_validator(mode="after")
    def _in_order(self) -> AtifDocument:
        if [step.step_id for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError("steps are not numbered from 1 on")
        return self

    def file(self) -> bytes:
        """The file's bytes: JSON, indented, fields without a value left out, what a terminal would obey as an escape."""
        return printable_json(self.model_dump_json(indent=2, exclude_none=True)).encode() + b"\n"
