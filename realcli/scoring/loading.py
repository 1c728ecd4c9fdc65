"""From JSON or YAML text to a checked `ScoreInput`. Strict: whatever is not understood is refused with its place. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from realcli.api.base import POOLED
from realcli.api.sweep import Mode
from realcli.scoring.document import LETTERS, ScoreInput, ScoreInputError, shown
from realcli.scoring.levels import THRESHOLD
from realcli.scoring.lines import line_of
from realcli.scoring.records import RunFacts, Verdict
from realcli.scoring.runs import ConfigurationLabels, Observation, Run, TaskLabels, Tree
from realcli.scoring.text import parse

_VERDICTS: dict[object, Verdict] = {letter: verdict for verdict, letter in LETTERS.items()}
_DIGITS = 64
"""Most digits a number may have, before and after the point: a reward is a short decimal."""


def load_score_input(text: str | bytes, name: str) -> ScoreInput:
    """Read a document; `name` (a file) decides the language: .json, .yaml or .yml, else what the text looks like.

    `ScoreInputError` says where: `runs.yaml: line 12: runs[3].reward: …`; of JSON, which programs write, without the line.
    """
    try:
        document = parse(text, name)
    except ScoreInputError as error:
        raise ScoreInputError(f"{name}: {error}") from error.__cause__
    try:
        return read_score_input(document)
    except ScoreInputError as error:
        line = None if name.lower().endswith(".json") else line_of(text, str(error))
        raise ScoreInputError(f"{name}: {'' if line is None else f'line {line}: '}{error}") from error.__cause__


def read_score_input(document: object) -> ScoreInput:
    """Check what was parsed. Numbers may be int, Decimal or float."""
    top = _mapping(document, "the document", {"tree", "runs"}, {"threshold", "benchmark", "judge", "tasks", "configurations"})
    tree = _tree(top["tree"])
    scenarios = {q for subs in tree.values() for qs in subs.values() for q in qs}
    listed = top["runs"]
    if not isinstance(listed, list):
        raise _wrong("runs", "a list of runs", listed)
    runs: list[Run] = []
    seen: dict[tuple[str, str, str, int], int] = {}
    for number, item in enumerate(listed):
        run = _run(item, f"runs[{number}]", scenarios)
        cell = (run.configuration, run.task, run.mode, run.repeat)
        if cell in seen:
            said = f"{run.configuration}, {run.task}, {run.mode}, repeat {run.repeat}"
            raise ScoreInputError(
                f"runs[{number}] is the cell of runs[{seen[cell]}] again ({said}); expected each once: remove one"
            )
        seen[cell] = number
        runs.append(run)
    return ScoreInput(
        tree=tree,
        runs=tuple(runs),
        threshold=_threshold(top["threshold"]) if "threshold" in top else THRESHOLD,
        benchmark=_optional_text(top, "benchmark", "benchmark"),
        judge=_optional_text(top, "judge", "judge"),
        tasks=_labels(top, "tasks", {"category": "category", "informationStructure": "information_structure"}, TaskLabels),
        configurations=_labels(top, "configurations", {"framework": "framework", "model": "model"}, ConfigurationLabels),
    )


# -- the parts ------------------------------------------------------------------------------------------------------------


def _threshold(value: object) -> Fraction:
    where = "threshold"
    if not isinstance(value, list) or len(value) != 2:
        raise _wrong(where, "[numerator, denominator], such as [3, 4]", value)
    top, bottom = (_integer(part, f"{where}[{at}]") for at, part in enumerate(value))
    if bottom <= 0 or not 0 < Fraction(top, bottom) <= 1:
        raise _wrong(where, "a fraction above 0 and at most 1, such as [3, 4]", value)
    return Fraction(top, bottom)


def _tree(value: object) -> Tree:
    tree: dict[str, dict[str, tuple[str, ...]]] = {}
    scenario_at: dict[str, str] = {}
    sub_at: dict[str, str] = {}
    for dimension, subs in _named(value, "tree", "at least one dimension"):
        found: dict[str, tuple[str, ...]] = {}
        for sub, scenarios in _named(subs, f"tree.{dimension}", None):
            where = f"tree.{dimension}.{sub}"
            if sub in sub_at:
                raise ScoreInputError(f"{where} stands also in {sub_at[sub]}; expected every sub-dimension once: rename one")
            sub_at[sub] = f"tree.{dimension}"
            if not isinstance(scenarios, list):
                raise _wrong(where, "a list of scenarios", scenarios)
            for at, scenario in enumerate(scenarios):
                name = _text(scenario, f"{where}[{at}]")
                if name in scenario_at:
                    raise ScoreInputError(f"{where}[{at}]: scenario {name} stands also in {scenario_at[name]}; expected it once")
                scenario_at[name] = where
            found[sub] = tuple(scenarios)
        tree[dimension] = found
    if not scenario_at:
        raise ScoreInputError("tree: expected at least one scenario in it, found none")
    return tree


def _run(value: object, where: str, scenarios: set[str]) -> Run:
    needed = {"configuration", "task", "mode", "repeat", "reward", "valid"}
    row = _mapping(value, where, needed, {"scenarios", "facts"})
    mode, valid = row["mode"], row["valid"]
    if mode not in ("EXEC", "COLLAB"):
        raise _wrong(f"{where}.mode", '"EXEC" or "COLLAB"', mode)
    if not isinstance(valid, bool):
        raise _wrong(f"{where}.valid", "true or false", valid)
    repeat = _integer(row["repeat"], f"{where}.repeat")
    if repeat < 1:
        raise _wrong(f"{where}.repeat", "an integer from 1", repeat)
    observed = row.get("scenarios", {})
    if not isinstance(observed, dict):
        raise _wrong(f"{where}.scenarios", "a mapping of scenarios to verdicts", observed)
    seen: dict[str, Observation] = {}
    for key, item in observed.items():
        name = _text(key, f"{where}.scenarios")
        if name not in scenarios:
            raise ScoreInputError(
                f"{where}.scenarios.{name}: no scenario of the tree; expected one that `tree` lists: add it there"
            )
        seen[name] = _observation(item, f"{where}.scenarios.{name}")
    if mode == "EXEC" and any(one.verdicts or one.contaminated for one in seen.values()):
        raise ScoreInputError(f'{where}.scenarios: an EXEC run has no user, so nothing can trigger; expected {{}} or only "-"')
    facts = _facts(row["facts"], f"{where}.facts") if "facts" in row else None
    passed, total = (facts.checks_passed, facts.checks_total) if facts is not None else (None, None)
    known: Mode = "EXEC" if mode == "EXEC" else "COLLAB"
    return Run(
        configuration=_own(_text(row["configuration"], f"{where}.configuration"), f"{where}.configuration"),
        task=_own(_text(row["task"], f"{where}.task"), f"{where}.task"),
        mode=known,
        repeat=repeat,
        valid=valid,
        reward=None if row["reward"] is None else _number(row["reward"], f"{where}.reward"),
        scenarios=seen,
        checks=None if passed is None or total is None else (passed, total),
        facts=facts,
    )


def _observation(value: object, where: str) -> Observation:
    if value == "-":
        return Observation()
    if isinstance(value, dict):
        row = _mapping(value, where, {"checks"}, {"contaminated", "unknown"})
        contaminated, unknown = (row.get(name, False) for name in ("contaminated", "unknown"))
        for name, said in (("contaminated", contaminated), ("unknown", unknown)):
            if not isinstance(said, bool):
                raise _wrong(f"{where}.{name}", "true or false", said)
        checks = () if row["checks"] == "-" else _verdicts(row["checks"], f"{where}.checks", empty=contaminated)
        if unknown and set(checks) != {"unscored"}:
            raise _wrong(f"{where}.checks", 'only "u" of an instance of which nobody knows whether it happened', row["checks"])
        return Observation(checks, contaminated, unknown=unknown)
    return Observation(_verdicts(value, where))


def _verdicts(value: object, where: str, *, empty: bool = False) -> tuple[Verdict, ...]:
    if not isinstance(value, list):
        raise _wrong(where, 'a list of verdicts, "-" (not triggered) or {"checks": […], "contaminated": true}', value)
    if not value and not empty:
        raise _wrong(where, 'at least one verdict; an instance that did not trigger is written "-"', value)
    found = []
    for at, item in enumerate(value):
        if isinstance(item, bool) or not isinstance(item, int | str) or item not in _VERDICTS:
            bare = ' (in YAML a bare - begins a list; for not triggered quote it: "-")' if item is None else ""
            raise _wrong(f"{where}[{at}]", f'1, 0, "n" (not applicable) or "u" (unscored){bare}', item)
        found.append(_VERDICTS[item])
    return tuple(found)


def _facts(value: object, where: str) -> RunFacts:
    if not isinstance(value, dict):
        raise _wrong(where, "a mapping of counts", value)
    try:
        return RunFacts.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        raise ScoreInputError(
            f"{where}.{at}: {first['msg']}; expected the facts a report writes ({len(error.errors())} problems)"
        ) from error


def _labels(top: Mapping[str, Any], name: str, fields: Mapping[str, str], make: Callable[..., Any]) -> dict[str, Any]:
    found = {}
    for key, value in _named(top.get(name, {}), name, None):
        row = _mapping(value, f"{name}.{key}", set(), set(fields))
        _own(row.get("category"), f"{name}.{key}.category")
        found[key] = make(**{fields[field]: _optional_text(row, field, f"{name}.{key}.{field}") for field in row})
    return found


# -- the kinds ------------------------------------------------------------------------------------------------------------


def _mapping(value: object, where: str, needed: set[str], allowed: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, "a mapping", value)
    for key in value:
        if key not in needed | allowed:
            raise ScoreInputError(
                f"{where}: unknown key {shown(key)}; expected {', '.join(sorted(needed | allowed))}: remove or rename it"
            )
    for key in sorted(needed - set(value)):
        raise ScoreInputError(f"{where}: {key} is missing; expected {', '.join(sorted(needed))}: add it")
    return value


def _named(value: object, where: str, least: str | None) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or (least is not None and not value):
        raise _wrong(where, f"a mapping with {least}" if least is not None else "a mapping", value)
    for key, item in value.items():
        yield _text(key, where), item


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(where, "a text that is not empty (in YAML, quote names that look like numbers or yes and no)", value)
    if any("\ud800" <= character <= "\udfff" for character in value):  # half a character: cannot be printed
        raise _wrong(where, "a text of Unicode characters", value)
    return value


def _optional_text(row: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if row.get(key) is None else _text(row[key], where)


def _own(name: Any, where: str) -> Any:
    """A name of one thing, not of all of them."""
    if name == POOLED:
        raise ScoreInputError(f'{where}: "{POOLED}" is the name of the rows over all of them in tables; choose another')
    return name


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(where, "an integer", value)
    return value


def _number(value: object, where: str) -> Fraction:
    """Exactly what is written: 0.99999999999999999999 is not 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _wrong(where, "a number or null", value)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite() or number.adjusted() > _DIGITS or int(number.as_tuple().exponent) < -_DIGITS:
        raise _wrong(where, f"a finite number of at most {_DIGITS} digits before and after the point", value)
    return Fraction(number)


def _wrong(where: str, expected: str, found: object) -> ScoreInputError:
    return ScoreInputError(f"{where}: expected {expected}, found {shown(found)}")
