"""Numbers of the RealCLI paper, to be read beside ours. They are of another benchmark and never enter a score."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import yaml

_SECTIONS = (
    "main_results",
    "dimension_profile",
    "strict_pass_rates",
    "paired_effect",
    "cost_of_interaction",
    "failures",
    "simulator_audit",
)
_BESIDE = {
    "best_J": "main.j",
    "worst_delta_J": "main.delta_j",
    "range_U": "dimension.U",
    "range_S": "dimension.S",
    "range_OR": "dimension.OR",
    "pass_exec": "main.r_exec",
    "pass_collab": "main.r_collab",
    "fail_to_pass": "flips.fail_to_pass",
    "pass_to_fail": "flips.pass_to_fail",
    "changed": "flips.changed",
    "no_harmful_deviation": "audit.sim_no_harmful_deviation",
    "script_fidelity_range": "audit.sim_script_fidelity",
    "tool_call_ratio_median": "analysis.length_cells",
    "effort_without_gain": "analysis.effort_without_gain",
    "retry_errs_again/MiniMax M3": "analysis.retry_errors",
    "near_miss": "analysis.near_misses",
    "success_with_violation": "analysis.success_with_violation",
    "retention_failure_in_artifact": "analysis.said_against_done",
    "functional_or_boundary_exec": "failures.EXEC",
    "functional_or_boundary_collab": "failures.COLLAB",
}
"""Id in the file -> what of ours it stands beside. A strict pass rate stands beside the scenario it names."""


class Reference(NamedTuple):
    """A number of another benchmark: what of ours it stands beside, as it is written, what it means, section of the paper."""

    beside: str
    text: str
    means: str
    at: str


@cache
def references() -> tuple[Reference, ...]:
    """Those that stand beside something of ours, in the order of the file."""
    text = resources.files("realcli.scoring").joinpath("data/paper_reference.yaml").read_text(encoding="utf-8")
    raw: dict[str, list[dict[str, Any]]] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    found = []
    for section in _SECTIONS:
        for item in raw[section]:
            beside = f"scenario.{item['template']}" if "template" in item else _BESIDE.get(str(item["id"]))
            if beside is not None:
                found.append(Reference(beside=beside, text=_text(item), means=_means(item), at=f"RealCLI paper, {item['at']}"))
    return tuple(found)


def _text(item: dict[str, Any]) -> str:
    unit = {"pct": " %", "pp": " pp"}.get(item.get("unit", ""), "")
    if "range" in item:
        low, high = item["range"]
        return f"{low} to {high}{unit}"
    return f"{item['value']}{unit}"


def _means(item: dict[str, Any]) -> str:
    told = [str(item[key]) for key in ("configuration", "condition", "means") if key in item]
    return "; ".join(told) or str(item["id"]).replace("_", " ")
