"""The operators this version has, by name. A catalogue entry with another one is refused, never skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from realcli.checks.bindings import substitute
from realcli.checks.model import Arguments, CheckError, Context
from realcli.checks.order import order
from realcli.checks.patch_present import patch_present
from realcli.scoring.records import HardRecord

Operator = Callable[[Arguments, Context], HardRecord]

OPERATORS: dict[str, Operator] = {"order": order, "patch_present": patch_present}


def operator(name: str) -> Operator:
    """The operator; `CheckError` names one that this version does not have."""
    if name not in OPERATORS:
        raise CheckError(f"hard-check operator `{name}` is not in this version; it has {', '.join(sorted(OPERATORS))}")
    return OPERATORS[name]


def run_hard(hard: Mapping[str, JsonValue], bindings: Mapping[str, JsonValue], context: Context) -> HardRecord:
    """Run the `hard` part of a check with its names bound. `CheckError` for what cannot be run as written."""
    name = hard.get("op")
    if not isinstance(name, str):
        raise CheckError(f"`hard` names no operator: {dict(hard)!r}")
    run = operator(name)
    bound = substitute({key: value for key, value in hard.items() if key not in ("op", "decides")}, bindings)
    if not isinstance(bound, dict):
        raise AssertionError("a mapping stays a mapping")
    return run(bound, context)
