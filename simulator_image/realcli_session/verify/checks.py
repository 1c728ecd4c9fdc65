"""Checker scripts on snapshots, after the verdict (RealCLI 3, measuring.md 2.2): operators `script` and `claims_vs_oracles`.

Which script looks at which snapshot for which check is decided here without running anything; `verify.checkers` runs it.
Lines of `checks.jsonl` are canonical `HardCheck` objects, one a line, in the order of instances and checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from realcli.benchmark.catalogue_models import Catalogue
from realcli.benchmark.oracle_models import Checker, Oracle
from realcli.benchmark.script_models import Script
from realcli.checks.bindings import substitute
from realcli.checks.instance import Instance, instances_of
from realcli.checks.model import CheckError
from realcli.ledger.events import Event, HardCheck, Snapshot

OPERATORS = ("script", "claims_vs_oracles")
OF_AN_INSTANCE = frozenset(("anchor", "response_end"))
EXITS = {0: "pass", 1: "fail", 2: "undecided"}
MAX_DETAIL = 600


class TakenSnapshot(NamedTuple):
    """A snapshot that the sealed ledger names. The archive is `snapshots/<seq>.tar.zst` of the attempt."""

    seq: int
    sha256: str


class Run(NamedTuple):
    """One run of one script for one check, or the reason why there is none."""

    instance: str
    check: str
    op: str
    checker: str
    arguments: tuple[str, ...] = ()
    snapshot: TakenSnapshot | None = None
    missing: str = ""

    def line(self, outcome: str, detail: str = "") -> HardCheck:
        """Its line. `broken`: nobody can say (the script, not the agent)."""
        said = f"{self.checker}: {detail}" if detail else self.checker
        by_seq = None if self.snapshot is None else self.snapshot.seq
        return HardCheck.model_validate(
            {
                "instance": self.instance, "check": self.check, "op": self.op, "outcome": outcome, "by_seq": by_seq,
                "detail": said if len(said) <= MAX_DETAIL else said[:MAX_DETAIL] + "…",
            }
        )  # fmt: skip


Taken = Mapping[tuple[str, str | None], TakenSnapshot]


def taken_snapshots(events: Iterable[Event]) -> dict[tuple[str, str | None], TakenSnapshot]:
    """(name, instance) -> the last such snapshot; the instance is None for `s0` and `final`."""
    found: dict[tuple[str, str | None], TakenSnapshot] = {}
    for event in events:
        data = event.typed() if event.kind == Snapshot.kind else None
        if isinstance(data, Snapshot):
            key = (data.name, data.probe if data.name in OF_AN_INSTANCE else None)
            found[key] = TakenSnapshot(event.seq, data.sha256)
    return found


def planned(script: Script, oracle: Oracle, catalogue: Catalogue, taken: Taken) -> Iterator[Run]:
    """Every run that the checks of a script ask for. An instance that was never anchored has no snapshot, so no run."""
    for instance in instances_of(script, catalogue):
        for check in instance.scenario.checks:
            for node in _nodes(check.hard):
                yield from _runs(node, instance, check.id, oracle, taken)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        if tree.get("op") in OPERATORS:
            yield tree
        for child in tree.values():
            yield from _nodes(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from _nodes(child)


def _runs(node: dict[str, JsonValue], instance: Instance, check: str, oracle: Oracle, taken: Taken) -> Iterator[Run]:
    op, name = str(node["op"]), str(node.get("snapshot", "final"))
    snapshot = taken.get((name, instance.id if name in OF_AN_INSTANCE else None))
    try:
        asked = _asked(substitute(node.get("run" if op == "script" else "oracles"), instance.bindings))
    except CheckError as error:
        yield Run(instance.id, check, op, "?", missing=str(error))
        return
    for words in asked:
        id, *more = words or ["?"]
        run = Run(instance.id, check, op, id, tuple(more), snapshot)
        if id not in oracle.checkers:
            yield run._replace(missing="is not declared in oracle_contract.json")
        elif snapshot is not None:
            yield run._replace(arguments=(*oracle.checkers[id].arguments, *more))
        elif name == "final":
            yield run._replace(missing="there is no final snapshot")


def _asked(value: JsonValue) -> list[list[str]]:
    """Checkers that a binding names, each with the words that follow its id: one, a list, or one per kind of claim."""
    if isinstance(value, str):
        return [value.split()]
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [words for item in items for words in _asked(item)]


def outcome_of(code: int | None, signal: int | None, output: str) -> tuple[str, str]:
    """(outcome, detail) of how a checker ended: 0 pass, 1 fail, 2 undecided, everything else is a broken checker."""
    if signal is not None:
        return "broken", f"killed by signal {signal}"
    said = output.strip()
    if code in EXITS:
        return EXITS[code], said
    return "broken", f"exit status {code}{': ' + said if said else ''}"


def script_of(checker: Checker) -> str:
    """Where the script lies in the private bundle."""
    return f"interaction/checks/{checker.run}"
