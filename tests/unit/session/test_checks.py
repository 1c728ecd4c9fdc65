"""Which checker scripts run on which snapshots, and what their ends mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.models import Oracle
from realcli.benchmark.script_models import Passive, Probe, Script, Slice
from realcli_session.verify.checks import OPERATORS, Run, TakenSnapshot, outcome_of, planned

CATALOGUE = load_catalogue()
FINAL, ANCHOR = TakenSnapshot(90, "f" * 64), TakenSnapshot(40, "a" * 64)


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        if tree.get("op") in OPERATORS:
            yield tree
        for child in tree.values():
            yield from nodes(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from nodes(child)


def with_operator(op: str, snapshot: str, kind: str) -> tuple[str, dict[str, Any]]:
    """(template, operator) of the catalogue."""
    return next(
        (template.id, node)
        for template in CATALOGUE.templates.values()
        for check in template.checks
        for node in nodes(check.hard)
        if node["op"] == op and node.get("snapshot", "final") == snapshot and template.type == kind
    )


def script(*, probes: list[Probe] | None = None, passive: list[Passive] | None = None) -> Script:
    return Script(
        persona="p", opener="o", closer="c", slices=[Slice(id="a", text="t", requirements=["1"])], batches={"b": ["a"]},
        order=["batch:b"], probes=probes or [], passive=passive or [],
    )  # fmt: skip


def oracle(**checkers: dict[str, Any]) -> Oracle:
    return Oracle.model_validate({"schema": "realcli.dev/oracle/1", "paths": ["/app"], "checkers": checkers})


def bound(template: str, value: str) -> dict[str, Any]:
    return {name: value for name in CATALOGUE.templates[template].bindings}


def runs(kind: str, op: str, snapshot: str, taken: dict[Any, TakenSnapshot], value: str = "done") -> list[Run]:
    template, _ = with_operator(op, snapshot, kind)
    if kind == "probe":
        made = script(probes=[Probe(id="p1", scenario=template, text="t", bindings=bound(template, value))])
    else:
        made = script(passive=[Passive(id="p1", scenario=template, bindings=bound(template, value))])
    found = planned(made, oracle(done={"run": "done.sh", "arguments": ["--all"]}), CATALOGUE, taken)
    return [run for run in found if run.op == op and (run.snapshot is None or run.snapshot == taken.get((snapshot, "p1"), FINAL))]


def test_a_script_on_the_final_state() -> None:
    for run in runs("probe", "script", "final", {("final", None): FINAL}):
        assert (run.instance, run.checker, run.arguments[0], run.snapshot) == ("p1", "done", "--all", FINAL)
        assert not run.missing


def test_a_script_on_the_moment_of_the_probe() -> None:
    found = runs("probe", "script", "anchor", {("final", None): FINAL, ("anchor", "p1"): ANCHOR})
    assert ANCHOR in {run.snapshot for run in found}


def test_an_instance_that_was_never_anchored_has_no_run() -> None:
    template, _ = with_operator("script", "anchor", "probe")
    made = script(probes=[Probe(id="p1", scenario=template, text="t", bindings=bound(template, "done"))])
    found = list(planned(made, oracle(done={"run": "done.sh"}), CATALOGUE, {("final", None): FINAL, ("anchor", "other"): ANCHOR}))
    assert ANCHOR not in {run.snapshot for run in found}


def test_no_final_snapshot_and_no_declared_checker_are_broken() -> None:
    (first, *_) = runs("probe", "script", "final", {})
    assert "no final snapshot" in first.missing
    (first, *_) = runs("probe", "script", "final", {("final", None): FINAL}, value="other")
    assert "not declared" in first.missing
    assert first.line("broken", first.missing).outcome == "broken"


@pytest.mark.parametrize(
    ("code", "signal", "outcome"),
    [
        (0, None, "pass"),
        (1, None, "fail"),
        (2, None, "undecided"),
        (3, None, "broken"),
        (127, None, "broken"),
        (None, 11, "broken"),
    ],
)
def test_ends(code: int | None, signal: int | None, outcome: str) -> None:
    assert outcome_of(code, signal, " said \n")[0] == outcome


def test_a_long_detail_is_cut() -> None:
    assert len(Run("i", "c", "script", "x").line("pass", "y" * 5000).detail) < 700
