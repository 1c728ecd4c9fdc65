"""Records of the simulator audit (measuring.md 3.1): seven checks per COLLAB run, and what they contaminate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from realcli.api.base import Digest, Frozen, Hex64

SimName = Literal[
    "sim_script_fidelity",
    "sim_no_early_disclosure",
    "sim_probe_coverage",
    "sim_goal_stability",
    "sim_knowledge_bounds",
    "sim_no_agent_work",
    "sim_no_harmful_deviation",
]


class Deviation(Frozen):
    """Something the simulated user did that the script does not license."""

    seq: int | None = None  # the event; None: something that is missing
    what: str  # one line for people
    quote: str | None = None
    affected: list[str] = []  # ids of instances it may have changed
    outcome: bool = False  # it may have changed the outcome R
    harmful: bool | None = None  # None: nobody has said yet
    by: Literal["program", "judge"] = "program"


class SimCheck(Frozen):
    """One of the seven."""

    check: SimName
    verdict: Literal["1", "0", "n/a", "unscored"]
    by: Literal["program", "judge", "none"]
    reason: str = ""
    deviations: list[Deviation] = []
    exchanges: list[Hex64] = []  # keys of the judge's requests


class AuditRecord(Frozen):
    """repeat-<r>-<seal8>.audit.json: the COLLAB run of one repeat, audited."""

    schema_: Literal["realcli.dev/audit/1"] = Field(default="realcli.dev/audit/1", alias="schema")
    configuration: str
    task: str
    repeat: int
    ordinal: int
    attempt: int
    work_seal: Digest
    judge: Digest
    checks: list[SimCheck]
    contaminated: dict[str, str] = {}  # instance id -> why; it leaves numerator and denominator whatever its verdicts
    outcome_flag: str | None = None  # why R of this run is shown with and without it
    ask_unmatched: int = 0
    unscripted_answers: int = 0
