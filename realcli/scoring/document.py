"""The document `realcli score` reads, and what writes it: a tree, a threshold and runs with their verdicts (docs/scores.md).

    {"threshold": [3, 4], "tree": {dimension: {sub-dimension: [scenario, …]}},
     "runs": [{"configuration", "task", "mode": "EXEC"|"COLLAB", "repeat", "reward": number|null, "valid": bool,
               "scenarios": {scenario: [1|0|"n"|"u", …] | "-" | {"checks": […], "contaminated": true}}}]}

"n" not applicable, "u" unscored, "-" not triggered; `unknown` beside `contaminated`: nobody can tell whether it happened.
Beside these a report writes what only tables and `realcli compare` need: `benchmark` and `judge` (digests), `tasks` and
`configurations` (labels), `facts` of a run. Pure; `loading` reads the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import nextafter
from typing import Any

from realcli.scoring.levels import THRESHOLD
from realcli.scoring.records import Verdict
from realcli.scoring.runs import ConfigurationLabels, Observation, Run, TaskLabels, Tree

LETTERS: dict[Verdict, int | str] = {"1": 1, "0": 0, "n/a": "n", "unscored": "u"}
"""Verdict -> how the document writes it."""


class ScoreInputError(ValueError):
    """The document is not one; the message names the field, what was expected and what was found."""


@dataclass(frozen=True)
class ScoreInput:
    """A document that was checked."""

    tree: Tree
    runs: tuple[Run, ...]
    threshold: Fraction = THRESHOLD
    benchmark: str | None = None  # digest of the benchmark; None: not told
    judge: str | None = None  # digest of the judge; None: not told
    tasks: Mapping[str, TaskLabels] = field(default_factory=dict)
    configurations: Mapping[str, ConfigurationLabels] = field(default_factory=dict)

    def of(self, configuration: str) -> list[Run]:
        """Runs of one configuration."""
        return [run for run in self.runs if run.configuration == configuration]

    @property
    def names(self) -> list[str]:
        """Configurations in the order they first appear."""
        return list(dict.fromkeys(run.configuration for run in self.runs))


def score_input(
    runs: Iterable[Run],
    tree: Tree,
    *,
    threshold: Fraction = THRESHOLD,
    benchmark: str | None = None,
    judge: str | None = None,
    tasks: Mapping[str, TaskLabels] | None = None,
    configurations: Mapping[str, ConfigurationLabels] | None = None,
) -> dict[str, Any]:
    """The document of these runs, for `tables/runs.json`: read again it gives the same runs, without their reasons."""
    document: dict[str, Any] = {
        "threshold": [threshold.numerator, threshold.denominator],
        "tree": {d: {s: list(qs) for s, qs in subs.items()} for d, subs in tree.items()},
        "benchmark": benchmark,
        "judge": judge,
        "tasks": {
            name: _known(category=t.category, informationStructure=t.information_structure) for name, t in (tasks or {}).items()
        },
        "configurations": {name: _known(framework=c.framework, model=c.model) for name, c in (configurations or {}).items()},
    }
    kept = {key: value for key, value in document.items() if value not in (None, {})}
    return {**kept, "runs": [_run(run) for run in runs]}


def _known(**values: str | None) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}


def _run(run: Run) -> dict[str, Any]:
    written: dict[str, Any] = {
        "configuration": run.configuration,
        "task": run.task,
        "mode": run.mode,
        "repeat": run.repeat,
        "reward": None if run.reward is None else _reward(run.reward),
        "valid": run.valid,
        "scenarios": {name: _scenario(seen) for name, seen in sorted(run.scenarios.items())},
    }
    facts = run.facts.dump() if run.facts is not None else {}
    if run.checks is not None:
        facts = {**facts, "checksPassed": run.checks[0], "checksTotal": run.checks[1]}
    return {**written, "facts": facts} if facts else written


def _reward(reward: Fraction) -> int | float:
    """The number; one longer than a double holds becomes the nearest double, but never the 1 it is not."""
    if reward.denominator == 1:
        return reward.numerator
    number = float(reward)
    return number if number != 1 else nextafter(1, 2 if reward > 1 else 0)


def _scenario(seen: Observation) -> Any:
    checks = [LETTERS[verdict] for verdict in seen.verdicts]
    said = {name: True for name in ("contaminated", "unknown") if getattr(seen, name)}
    return {"checks": checks, **said} if said else checks or "-"


def shown(value: object) -> str:
    """A found value as an error message tells it: short, and a truth value never looks like a number."""
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, dict):
        return f"a mapping of {len(value)}"
    if isinstance(value, list) and (len(value) > 4 or any(isinstance(item, list | dict) for item in value)):
        return f"a list of {len(value)}"  # never written out: aliases of aliases have no end
    text = "null" if value is None else str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
